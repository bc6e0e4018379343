"""What replica exchange is asked for."""

import dataclasses
from typing import Annotated, ClassVar

from annealz.core.errors import InputError
from annealz.io.records import optional, whole
from annealz.methods.request import PathRequest, option


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

    def __post_init__(self):
        from annealz.diagnostics.exchange import LEAST_ENSEMBLES
        from annealz.methods.exchange.rounds import LEAST_SWEEPS, MOST_SWEEPS

        super().__post_init__()
        least = {"num_rungs": 2, "num_ensembles": LEAST_ENSEMBLES, "num_draws": 0}
        self.check_whole({**least, "num_steps": LEAST_SWEEPS})
        if self.num_steps is not None and self.num_steps > MOST_SWEEPS:
            raise InputError("num_steps", f"must be at most {MOST_SWEEPS:,}", self.num_steps)
