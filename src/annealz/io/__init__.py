"""Files: reading, storing, registries."""
