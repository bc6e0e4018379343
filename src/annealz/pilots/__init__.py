"""What runs before a schedule is frozen: surveys, plans, sizes, bases."""
