"""The estimate of several processes together."""
