"""What the messages of an estimate advise to try next, as numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from annealz.status import Status

if TYPE_CHECKING:
    from annealz.estimate import Estimate
    from annealz.replicas.estimate import ExchangeEstimate

__all__ = ["advice_of"]


def advice_of(estimate: Estimate | ExchangeEstimate) -> dict[str, int]:
    """Steps and chains, those that are advised.

    Nothing where the estimate is ok, or where a wanted error or a time decided about both.
    """
    wishes = (estimate.settings["target_std_err"], estimate.settings.get("max_seconds"))
    if estimate.status is Status.OK or wishes != (None, None):
        return {}
    told = re.findall(r"--(steps|chains) (\d+)", " ".join(estimate.messages))
    return {name: int(number) for name, number in told}
