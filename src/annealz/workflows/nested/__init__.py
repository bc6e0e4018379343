"""An estimate by nested sampling: its runs and its result."""
