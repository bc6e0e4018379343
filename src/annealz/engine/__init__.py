"""One run of chains: compiled steps, blocks, checkpoints, statistics."""
