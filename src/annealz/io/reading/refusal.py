"""What is wrong with a file, in a sentence that is ready; what packages raise is yet to be put into one."""

__all__ = ["Refusal"]


class Refusal(ValueError):
    """A ValueError that names the file."""
