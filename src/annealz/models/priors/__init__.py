"""Priors as exact bases: of SciPy's and NumPyro's distributions, and of transforms of the unit cube."""
