"""What a user asks for: an estimate, a comparison, a likelihood."""
