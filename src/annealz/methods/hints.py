"""What to do with something that is not a model: the sentence that names the way.

Nothing is imported to see what it is: an object of a library was made by that library.
"""

import inspect
from collections.abc import Mapping
from typing import Any


def hint(given: Any) -> str:
    """Return how to make a model of it, as the end of a sentence."""
    module, kinds = type(given).__module__, type(given).__mro__
    names = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in kinds}
    if "pymc.Model" in names:
        return "a PyMC model: give annealz.from_pymc(model)"
    if type(given).__name__ == "BernoulliRBM":
        return "scikit-learn's BernoulliRBM: give annealz.RBM.from_sklearn(rbm)"
    if module.startswith("sklearn."):
        return (
            "a model of scikit-learn that is not an unnormalised density over its variables: write its "
            "log likelihood as a function, annealz.from_prior(log_likelihood, prior=...)"
        )
    if module.startswith(("numpyro.distributions", "scipy.stats")):
        return (
            "a distribution, whose log Z is 0: with a likelihood it is a prior, "
            "annealz.from_prior(log_likelihood, prior=...)"
        )
    if isinstance(given, Mapping):
        return (
            "a dictionary: give the log density as a function of one, annealz.LogDensity(fn, example), or "
            "distributions by name as annealz.from_prior(log_likelihood, prior=...)"
        )
    if callable(given) and not inspect.isclass(given):
        if _calls_numpyro(given):
            return "a function of NumPyro: give annealz.from_numpyro(model, *args)"
        return (
            "a function: give annealz.LogDensity(fn, dim), or annealz.from_prior(log_likelihood, "
            "prior_transform, num_dims)"
        )
    return f"{type(given).__name__}: derive it from annealz.AbstractModel"


def _calls_numpyro(function: Any) -> bool:
    """Check whether its code reads something of NumPyro's that its module imported."""
    own = inspect.unwrap(function)
    names = getattr(getattr(own, "__code__", None), "co_names", ())
    there = getattr(own, "__globals__", {})
    used = [there[name] for name in names if name in there]
    homes = [getattr(thing, "__module__", None) or getattr(thing, "__name__", "") for thing in used]
    return any(str(home).partition(".")[0] == "numpyro" for home in homes)
