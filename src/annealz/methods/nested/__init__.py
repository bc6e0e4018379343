"""Nested sampling."""
