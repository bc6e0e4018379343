"""A base by its name."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from annealz.bases.bernoulli import BernoulliBase, smoothed_means, smoothed_rates
from annealz.bases.mixture import MixtureBase
from annealz.core.errors import InputError
from annealz.core.names import BASES


class Layered(Protocol):
    """A model with a layer of binary visible units."""

    @property
    def num_visible(self) -> int: ...
    @property
    def visible_bias(self) -> Any: ...
    @property
    def visible_means(self) -> Any: ...


def named_bases(model: Layered) -> dict[str, Callable[[], BernoulliBase]]:
    """Uniform, and the model's visible bias."""
    return {
        "uniform": lambda: BernoulliBase.uniform(model.num_visible),
        "visible-bias": lambda: BernoulliBase.from_logits(np.asarray(model.visible_bias)),
    }


def choose_base(model: Layered, base: str | BernoulliBase | MixtureBase = "auto", data=None) -> Any:
    """The base of this name for this model.

    `data` gives the base rate: rows of data (rows, visible), or their means (visible,). Without it
    the means stored with the model are used. "auto" is the base rate where means are known and
    the model's visible bias elsewhere.
    """
    if isinstance(base, BernoulliBase | MixtureBase):
        if data is not None:
            raise InputError(
                "data", "serve to build a base, and a base is given", remedy="leave one of them out"
            )
        return base
    if base == "fitted":
        raise ValueError(
            "the base fitted is found by pilots, of an estimate: name another one here."
        )
    if base not in BASES:
        raise InputError("base", f"must be one of {', '.join(BASES)}", base)
    if data is not None and base not in ("auto", "base-rate"):
        raise InputError("data", f"serve the base-rate base only, and the base is {base}")
    means = _means(model, data)
    if base in ("uniform", "visible-bias"):
        return named_bases(model)[base]()
    if base == "auto" and means is None:
        return named_bases(model)["visible-bias"]()
    if means is None:
        raise InputError(
            "",
            "the base-rate base needs the training data or their means, and this model file carries none",
            remedy="give {data}, or choose the base visible-bias or uniform",
        )
    return BernoulliBase.from_means(means)


def _means(model: Layered, data) -> np.ndarray | None:
    if data is None:
        means = model.visible_means
        return None if means is None else smoothed_rates(np.asarray(means, np.float64))
    array = np.asarray(data, np.float64)
    if array.shape[-1:] != (model.num_visible,):
        raise ValueError(
            f"data for a model of {model.num_visible} visible units must have shape "
            f"(rows, {model.num_visible}) or ({model.num_visible},), got {array.shape}."
        )
    return smoothed_rates(array) if array.ndim == 1 else smoothed_means(array)


def choose_named(
    options: Mapping[str, Callable[[], Any]], base: Any, data: Any, kind: type, num_units: int
) -> Any:
    """The base of one of these names, "auto" the first, or one of this kind and size that is given."""
    if isinstance(base, MixtureBase):  # the path says whether it fits
        chosen = base
    elif isinstance(base, kind):
        if base.num_units != num_units:
            raise ValueError(f"the base has {base.num_units} units and the model {num_units}.")
        chosen = base
    elif isinstance(base, str) and base in ("auto", *options):
        chosen = options[next(iter(options)) if base == "auto" else base]()
    else:
        names = ", ".join(("auto", *options))
        raise InputError("base", f"must be a {kind.__name__} or one of {names}", base)
    if data is not None:
        raise InputError(
            "data", "serve to build a base rate, which this model has not", remedy="leave them out"
        )
    return chosen
