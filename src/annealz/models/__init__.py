"""Unnormalised distributions."""
