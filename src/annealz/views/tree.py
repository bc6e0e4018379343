"""An estimate as a tree of xarray, for those who have it.

    posterior      chain, draw   draws of the parameters, resampled to equal weight: of densities
    posterior_weighted           the draws themselves, with their log_weight
    sample_stats   chain, draw   what ArviZ reads: every annealed chain is a draw, of one chain
    annealing      record        log Z, ESS and what was observed, at the recorded betas and steps
    schedule       step          beta
    diagnostics                  log Z, its error and interval, ESS, k-hat
    reverse_…                    the same of the reverse run, where there is one

with the unit of every variable in its attributes, settings and status in those of the tree. Draws of
`sample_stats` and `posterior_weighted` have weights: an average over them is weighted by exp(log_weight).
Those of `posterior` have none, because ArviZ takes all draws as equal; copies of a draw lie next to each
other, so that its ESS and its errors count them as one (`methods/posterior.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from annealz.diagnostics.diagnostics import IslandJudgement
from annealz.io.reading import need

if TYPE_CHECKING:
    import xarray as xr

    from annealz.engine.run import Run
    from annealz.methods.annealing.estimate import Estimate
    from annealz.methods.posterior import Posterior

_DRAWS, _RECORDS = ("chain", "draw"), ("record",)
_NATS, _SQUARED, _CHAINS, _ONE = "nats", "nats^2", "chains", "1"
Group = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""Variables, coordinates and attributes."""


def estimate_tree(estimate: Estimate) -> xr.DataTree:
    """Return all that an estimate holds; of the states of its chains what is the posterior of a density."""
    xarray = need("xarray", "trees are made", "notebook")
    posterior, reverse, schedule = estimate.posterior, estimate.reverse, estimate.schedule
    names = {"name": schedule.name, "digest": schedule.digest}
    groups: dict[str, Group] = {
        "/": ({}, {}, _attributes(estimate)),
        **({} if posterior is None else _posterior_groups(posterior, estimate.seed)),
        **_run_groups(estimate.run, ""),
        "schedule": (
            {"beta": _variable(("step",), schedule.betas, _ONE)},
            {"step": np.arange(estimate.num_steps + 1)},
            names,
        ),
        "diagnostics": _diagnostics(estimate),
        **({} if reverse is None else _run_groups(reverse, "reverse_")),
    }
    sets = {name: xarray.Dataset(*group) for name, group in groups.items()}
    return xarray.DataTree.from_dict(sets, name="annealz")


def _variable(dims: tuple[str, ...], values: Any, unit: str = "", name: str = "") -> Any:
    """Return a variable of the tree; its further axes are named after it."""
    further = (f"{name}_dim_{i}" for i in range(np.ndim(values) - len(dims)))
    return (*dims, *further), values, {"units": unit} if unit else {}


def _posterior_groups(posterior: Posterior, seed: int) -> dict[str, Group]:
    coordinates = {"chain": [0], "draw": np.arange(posterior.num_draws)}
    attributes = {"status": posterior.status.value, "ess": posterior.ess}

    def variables(values: Mapping[str, np.ndarray]) -> dict[str, Any]:
        names = {parameter: _name(parameter) for parameter in posterior.names}
        return {new: _variable(_DRAWS, values[old][None], "", new) for old, new in names.items()}

    log_weight = _variable(_DRAWS, posterior.log_weights[None], _NATS)
    own = variables(posterior.values) | {"log_weight": log_weight}
    return {
        "posterior": (variables(posterior.resampled(seed=seed)), coordinates, attributes),
        "posterior_weighted": (own, coordinates, attributes),
    }


def _run_groups(run: Run, prefix: str) -> dict[str, Group]:
    trace = run.trace
    samples = {
        "log_weight": _variable(_DRAWS, run.log_weights[None], _NATS),
        "weight": _variable(_DRAWS, run.shares[None], _ONE),
    }
    if run.island_size is not None:
        islands = np.arange(run.num_chains) // run.island_size
        samples["island"] = _variable(_DRAWS, islands[None], _ONE)
    records = {
        "log_z": _variable(_RECORDS, trace.log_z, _NATS),
        "ess": _variable(_RECORDS, trace.ess, _CHAINS),
    }
    for observed, mean in trace.means.items():
        name, variance = _name(observed), trace.variances[observed]
        units = (_NATS, _SQUARED) if name == "slope" else ("", "")
        records[f"{name}_mean"] = _variable(_RECORDS, mean, units[0], name)
        records[f"{name}_variance"] = _variable(_RECORDS, variance, units[1], name)
    places = {
        "step": _variable(_RECORDS, trace.steps, "steps"),
        "beta": _variable(_RECORDS, trace.betas, _ONE),
    }
    return {
        f"{prefix}sample_stats": (samples, {"chain": [0], "draw": np.arange(run.num_chains)}, {}),
        f"{prefix}annealing": (records, places, {}),
    }


def _name(given: str) -> str:
    """Return a name without slashes, which would be paths in the tree."""
    return given.replace("/", "_")


def _diagnostics(estimate: Estimate) -> Group:
    numbers = {
        "log_z": (estimate.log_z, _NATS),
        "std_err": (estimate.std_err, _NATS),
        "ess": (estimate.ess, _CHAINS),
    }
    judgement, sides = estimate.judgement, estimate.two_sided
    if not isinstance(judgement, IslandJudgement):
        numbers["pareto_k"] = judgement.pareto_k, _ONE
        numbers["log_weight_variance"] = judgement.variance, _SQUARED
    if sides is not None:
        log_z0 = estimate.run.log_z0
        numbers["lower_bound"] = log_z0 + sides.lower, _NATS
        numbers["upper_bound"] = log_z0 + sides.upper, _NATS
        numbers["overlap"] = sides.overlap, _ONE
    variables = {name: _variable((), *number) for name, number in numbers.items()}
    variables["interval"] = ("bound", list(estimate.interval()), {"units": _NATS, "level": 0.95})
    return variables, {"bound": ["low", "high"]}, {}


def _attributes(estimate: Estimate) -> dict[str, Any]:
    """Return what a file can hold: numbers and words."""
    record = estimate.to_dict().items()
    return {
        **{name: value for name, value in record if isinstance(value, str | int | float)},
        **{f"{name}_sweeps": count for name, count in estimate.sweeps.items()},
        "messages": "\n".join(estimate.messages),
        "sampling_time": estimate.seconds,
        "inference_library": "annealz",
        "inference_library_version": estimate.plan.versions["annealz"],
    }
