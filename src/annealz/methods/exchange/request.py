"""What replica exchange is asked for."""

import dataclasses
from typing import Annotated, ClassVar

from annealz.io.records import optional, whole
from annealz.methods.request import PathRequest, option

__all__ = ["ExchangeRequest"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExchangeRequest(PathRequest):
    """The arguments of `estimate_log_z` for replica exchange."""

    method: ClassVar[str] = "exchange"

    num_steps: Annotated[int | None, optional(whole)] = option(
        None, "Sweeps of every replica, in all rounds together (default: 10000)."
    )
    num_rungs: Annotated[int, whole] = option(32, "Temperatures of a ladder, of exchange.")
    num_ensembles: Annotated[int, whole] = option(32, "Independent ladders, of exchange.")
    num_draws: Annotated[int, whole] = option(0, is_in_cli=False)
