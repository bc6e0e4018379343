"""Chains on several devices and processes."""
