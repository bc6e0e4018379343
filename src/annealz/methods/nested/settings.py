"""What an estimate by nested sampling was asked for."""

import dataclasses

__all__ = ["NestedSettings"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NestedSettings:
    """The settings of all its runs."""

    model: str
    """What the model is called."""
    model_digest: str
    asked: str | None
    """The model as it was asked for, by name or file; None of an object."""
    base: str
    base_digest: str
    is_given: bool
    """Whether the base was given as a Python object."""
    asked_base: str | None
    num_live: int
    """In all runs together."""
    num_runs: int
    num_delete: int
    """Live points that die at once, in each run."""
    num_inner_steps: int
    """Slices from a live point to a new one."""
    tolerance: float
    max_evaluations: int | None
    seed: int
    exact_log_z: float | None
    versions: dict[str, str]
    num_checked: int = 0
    """Evaluations that the check of the model took."""
