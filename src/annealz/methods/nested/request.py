"""What nested sampling is asked for."""

import dataclasses
from typing import Annotated, ClassVar

from annealz.core.errors import InputError
from annealz.io.records import finite, optional, whole
from annealz.methods.request import Request, option


@dataclasses.dataclass(frozen=True, kw_only=True)
class NestedRequest(Request):
    """The arguments of `estimate_log_z` for nested sampling."""

    method: ClassVar[str] = "nested"

    num_live: Annotated[int | None, optional(whole)] = option(
        None, "Live points in all runs, of nested (default: 500)."
    )
    num_runs: Annotated[int, whole] = option(4, "Independent runs, of nested.")
    num_delete: Annotated[int | None, optional(whole)] = option(None, is_in_cli=False)
    num_inner_steps: Annotated[int | None, optional(whole)] = option(
        None, "Slices per new point, of nested (default: 5 per variable)."
    )
    tolerance: Annotated[float, finite] = option(1e-2, is_in_cli=False)
    max_evaluations: Annotated[int | None, optional(whole)] = option(
        None, "Evaluations of the density at most, of nested."
    )

    def __post_init__(self):
        super().__post_init__()
        self.check_whole({"num_runs": 1, "num_delete": 1, "num_inner_steps": 1})
        if not 0 < self.tolerance < 1:
            raise InputError("tolerance", "must lie between 0 and 1", self.tolerance)
