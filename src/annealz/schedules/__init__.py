"""Annealing schedules, `io/schedules.py` lists them by name."""
