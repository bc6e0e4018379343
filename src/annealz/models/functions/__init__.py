"""Functions of one position that users write: in JAX, or in NumPy."""
