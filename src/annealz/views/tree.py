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

from annealz.diagnostics.islands import IslandJudgement
from annealz.io.reading import need

if TYPE_CHECKING:
    import xarray as xr

    from annealz.engine.run import Run
    from annealz.methods.annealing.estimate import Estimate
    from annealz.methods.posterior import Posterior

__all__ = ["estimate_tree"]

_NATS, _CHAINS, _ONE = "nats", "chains", "1"


def estimate_tree(estimate: Estimate) -> xr.DataTree:
    """Return all that an estimate holds; of the states of its chains what is the posterior of a density."""
    xarray = need("xarray", "trees are made", "notebook")
    posterior = estimate.posterior
    groups = {
        "/": xarray.Dataset(attrs=_attributes(estimate)),
        **({} if posterior is None else _posterior_groups(xarray, posterior, estimate.seed)),
        **_run_groups(xarray, estimate.run, ""),
        "schedule": xarray.Dataset(
            {"beta": ("step", estimate.schedule.betas, {"units": _ONE})},
            coords={"step": np.arange(estimate.num_steps + 1)},
            attrs={"name": estimate.schedule.name, "digest": estimate.schedule.digest},
        ),
        "diagnostics": _diagnostics(xarray, estimate),
    }
    if estimate.reverse is not None:
        groups |= _run_groups(xarray, estimate.reverse, "reverse_")
    return xarray.DataTree.from_dict(groups, name="annealz")


def _posterior_groups(xarray: Any, posterior: Posterior, seed: int) -> dict[str, Any]:
    count = posterior.num_draws
    coordinates = {"chain": [0], "draw": np.arange(count)}
    attributes = {"status": posterior.status.value, "ess": posterior.ess}

    def variables(values: Mapping[str, np.ndarray]) -> dict[str, Any]:
        found = {}
        for parameter in posterior.names:
            name, array = parameter.replace("/", "_"), values[parameter]
            dims = ("chain", "draw", *(f"{name}_dim_{i}" for i in range(array.ndim - 1)))
            found[name] = (dims, array[None])
        return found

    own = variables(posterior.values)
    own["log_weight"] = (("chain", "draw"), posterior.log_weights[None], {"units": _NATS})
    return {
        "posterior": xarray.Dataset(
            variables(posterior.resampled(seed=seed)), coords=coordinates, attrs=attributes
        ),
        "posterior_weighted": xarray.Dataset(own, coords=coordinates, attrs=attributes),
    }


def _run_groups(xarray: Any, run: Run, prefix: str) -> dict[str, Any]:
    trace = run.trace
    sample_dims = ("chain", "draw")
    samples = {
        "log_weight": (sample_dims, run.log_weights[None], {"units": _NATS}),
        "weight": (sample_dims, run.shares[None], {"units": _ONE}),
    }
    if run.island_size is not None:
        islands = np.arange(run.num_chains) // run.island_size
        samples["island"] = (sample_dims, islands[None], {"units": _ONE})
    coordinates = {"chain": [0], "draw": np.arange(run.num_chains)}
    variables: dict[str, Any] = {
        "log_z": ("record", trace.log_z, {"units": _NATS}),
        "ess": ("record", trace.ess, {"units": _CHAINS}),
    }
    for observed, mean in trace.means.items():
        name = observed.replace("/", "_")  # which would be a path in the tree
        dims = ("record", *(f"{name}_dim_{i}" for i in range(mean.ndim - 1)))
        unit = {"units": _NATS} if name == "slope" else {}
        squared = {"units": f"{_NATS}^2"} if name == "slope" else {}
        variables[f"{name}_mean"] = (dims, mean, unit)
        variables[f"{name}_variance"] = (dims, trace.variances[observed], squared)
    beside = {
        "step": ("record", trace.steps, {"units": "steps"}),
        "beta": ("record", trace.betas, {"units": _ONE}),
    }
    return {
        f"{prefix}sample_stats": xarray.Dataset(samples, coords=coordinates),
        f"{prefix}annealing": xarray.Dataset(variables, coords=beside),
    }


def _diagnostics(xarray: Any, estimate: Estimate) -> Any:
    values = {
        "log_z": (estimate.log_z, _NATS),
        "std_err": (estimate.std_err, _NATS),
        "ess": (estimate.ess, _CHAINS),
    }
    if not isinstance(estimate.judgement, IslandJudgement):
        values |= {
            "pareto_k": (estimate.judgement.pareto_k, _ONE),
            "log_weight_variance": (estimate.judgement.variance, f"{_NATS}^2"),
        }
    if estimate.two_sided is not None:
        log_z0, sides = estimate.run.log_z0, estimate.two_sided
        values |= {
            "lower_bound": (log_z0 + sides.lower, _NATS),
            "upper_bound": (log_z0 + sides.upper, _NATS),
            "overlap": (sides.overlap, _ONE),
        }
    variables: dict[str, Any] = {
        name: ((), value, {"units": unit}) for name, (value, unit) in values.items()
    }
    variables["interval"] = ("bound", list(estimate.interval()), {"units": _NATS, "level": 0.95})
    return xarray.Dataset(variables, coords={"bound": ["low", "high"]})


def _attributes(estimate: Estimate) -> dict[str, Any]:
    """Return what a file can hold: numbers and words."""
    known = {} if estimate.exact_log_z is None else {"exact_log_z": estimate.exact_log_z}
    return {
        "model": estimate.model,
        "status": estimate.status.value,
        "messages": "\n".join(estimate.messages),
        **known,
        "base": estimate.base,
        "schedule": estimate.schedule.name,
        "seed": estimate.seed,
        "num_steps": estimate.num_steps,
        "num_chains": estimate.num_chains,
        "pilot_sweeps": estimate.sweeps["pilot"],
        "main_sweeps": estimate.sweeps["main"],
        "sampling_time": estimate.seconds,
        "inference_library": "annealz",
        "inference_library_version": estimate.plan.versions["annealz"],
    }
