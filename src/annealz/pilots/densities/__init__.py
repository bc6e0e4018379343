"""Where a density has its mass, and a base to start from: what runs before a density is annealed."""
