"""Results that are made of several estimates."""
