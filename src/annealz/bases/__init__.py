"""Tractable distributions to start from: exact samples and exact log Z."""
