"""Ways to estimate log Z, each with its plan, its run and its diagnosis."""
