"""What people see: progress while it runs, and results in a notebook."""
