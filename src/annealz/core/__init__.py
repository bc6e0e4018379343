"""Arithmetic, random bits, files: what knows nothing of annealing."""
