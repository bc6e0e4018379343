"""Which layer to anneal, by the survey.

Summing out either layer leaves an unnormalised distribution of the other with the same log Z, a path of its
own and chains of the same cost. The shorter path, by the (∫ √(g tau) dbeta)^2 of a small survey of each,
needs fewer steps for the same variance of log w. Surveys of that size scatter by a third, so the hidden
layer is taken only where its path is shorter by more than that.
"""

from typing import NamedTuple

from annealz.bases.abstract import AbstractBase
from annealz.models.abstract import AbstractModel
from annealz.schedules.mixing import mixing
from annealz.survey_mixing import survey_mixing

__all__ = ["Choice", "choose_marginal"]

_BUDGET = 100_000  # sweeps a survey
_CLEARLY_SHORTER = 0.67


class Choice(NamedTuple):
    """The layer, and what the choice cost."""

    marginal: str
    lengths: dict[str, float]
    """(∫ √(g tau))^2 by layer."""
    sweeps: int
    seconds: float


def choose_marginal(base: AbstractBase, model: AbstractModel, *, seed: int = 0) -> Choice:
    """The model's first marginal, or its second one where it has one and its path is clearly shorter."""
    first, *others = model.marginals
    if not others:
        return Choice(first, {}, 0, 0.0)
    second = others[0]
    terrains = {
        name: survey_mixing(model.path(base, name), model.kernel(), budget=_BUDGET, seed=seed)
        for name in (first, second)
    }
    lengths = {
        name: mixing(terrain, 1).provenance["predicted_variance"]
        for name, terrain in terrains.items()
    }
    return Choice(
        second if lengths[second] < _CLEARLY_SHORTER * lengths[first] else first,
        lengths,
        sum(terrain.sweeps for terrain in terrains.values()),
        sum(terrain.seconds for terrain in terrains.values()),
    )
