"""Paths from a tractable distribution to the target."""
