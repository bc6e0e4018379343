"""Replica exchange (parallel tempering) along a path: engine, result, verdict, workflow."""
