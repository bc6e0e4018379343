"""Replica exchange (parallel tempering) along a path."""
