"""What people see: plots, pages, tables, live displays, and the command line."""
