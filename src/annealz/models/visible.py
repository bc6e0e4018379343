"""What one example of a model's visible variables is: how many units, and of how many states.

It is read from the flat base, which has the same units as the model; of a density from its dimension.
"""

from typing import NamedTuple

from annealz.bases.bernoulli import BernoulliBase
from annealz.bases.categorical import CategoricalBase
from annealz.bases.gaussian import GaussianBase
from annealz.models.abstract import AbstractModel


class Visible(NamedTuple):
    """The shape of an example; None for what is not known."""

    num_units: int | None
    num_states: int | None
    """Of every unit, counted from 0; None of real ones."""
    is_real: bool


def visible_of(model: AbstractModel) -> Visible:
    """The visible variables of a model."""
    base = model.flat_base()
    if isinstance(base, BernoulliBase):
        return Visible(base.num_units, 2, False)
    if isinstance(base, CategoricalBase):
        num_units, num_states = base.logits.shape
        return Visible(num_units, num_states, False)
    if isinstance(base, GaussianBase):
        return Visible(base.dim, None, True)
    dim = getattr(model, "dim", None)
    return Visible(dim, None, dim is not None)
