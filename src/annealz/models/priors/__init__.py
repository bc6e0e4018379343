"""Priors: pytrees of distributions of SciPy and NumPyro, and transforms of the unit cube."""
