"""Replica exchange."""
