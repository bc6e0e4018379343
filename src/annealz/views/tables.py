"""Results as tables of pandas and trees of xarray, for those who have them.

Nothing is computed here. A tree has the groups

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
from annealz.io.storage.optional import need

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from annealz.engine.run import Run, Trace
    from annealz.methods.annealing.estimate import Estimate
    from annealz.methods.posterior import Posterior
    from annealz.results.compare import Comparison
    from annealz.results.likelihood import Likelihood
    from annealz.results.model_table import ModelTable
    from annealz.schedules.schedule import Schedule
    from annealz.schedules.terrain import Terrain

__all__ = [
    "comparison_table",
    "estimate_tree",
    "likelihood_table",
    "model_table",
    "run_table",
    "schedule_table",
    "terrain_table",
    "trace_table",
]

_NATS, _CHAINS, _ONE = "nats", "chains", "1"


def _table(columns: dict[str, Any], index: str | None = None) -> pd.DataFrame:
    pandas = need("pandas", "tables are made", "notebook")
    frame = pandas.DataFrame(columns)
    return frame if index is None else frame.rename_axis(index)


def run_table(run: Run) -> pd.DataFrame:
    """One row per chain: log w, and its share of the sum of weights."""
    return _table(
        {"log_weight": run.log_weights, "weight": _shares(run.log_weights)}, index="chain"
    )


def trace_table(trace: Trace) -> pd.DataFrame:
    """One row per recorded step; of what was observed only numbers, not arrays."""
    columns = {
        "step": trace.steps,
        "beta": trace.betas,
        "log_z": trace.log_z,
        "ess": trace.ess,
    }
    for name, mean in trace.means.items():
        if mean.ndim == 1:
            columns[f"{name}_mean"] = mean
            columns[f"{name}_variance"] = trace.variances[name]
    return _table(columns)


def schedule_table(schedule: Schedule) -> pd.DataFrame:
    """One row per step: beta."""
    return _table({"beta": schedule.betas}, index="step")


def terrain_table(terrain: Terrain) -> pd.DataFrame:
    """One row per beta."""
    columns = {
        "beta": terrain.betas,
        "mean": terrain.mean,
        "variance": terrain.variance,
        "ess": terrain.ess,
    }
    if terrain.tau is not None:
        columns |= {"tau": terrain.tau, "tau_is_bound": terrain.tau_is_bound}
    return _table(columns)


def comparison_table(comparison: Comparison) -> pd.DataFrame:
    """A row a schedule."""
    found = comparison.contenders
    bounds = [one.variance_interval() for one in found]
    return _table(
        {
            "schedule": [one.name for one in found],
            "log_z": [one.log_z for one in found],
            "std_err": [one.std_err for one in found],
            "status": [one.status.value for one in found],
            "mean_ess": [one.ess.mean() for one in found],
            "least_ess": [one.ess.min() for one in found],
            "largest_ess": [one.ess.max() for one in found],
            "variance": [one.variance.mean() for one in found],
            "variance_low": [low for low, _ in bounds],
            "variance_high": [high for _, high in bounds],
            "num_steps": [one.num_steps for one in found],
            "pilot_sweeps": [one.sweeps["pilot"] for one in found],
            "main_sweeps": [one.sweeps["main"] for one in found],
        }
    )


def likelihood_table(likelihood: Likelihood) -> pd.DataFrame:
    """One row per example."""
    return _table(
        {
            "log_density": likelihood.log_densities,
            "log_likelihood": likelihood.log_likelihoods,
        },
        index="example",
    )


def model_table(models: ModelTable) -> pd.DataFrame:
    """One row per model, the best first."""
    rows = models.to_dict()["models"]
    numbers = [name for name in rows[0] if name not in ("model", "status")]
    columns = {"model": [row["model"] for row in rows]}
    columns |= {
        name: [np.nan if row[name] is None else row[name] for row in rows] for name in numbers
    }
    return _table({**columns, "status": [row["status"] for row in rows]})


def estimate_tree(estimate: Estimate) -> xr.DataTree:
    """All that an estimate holds; of the states of its chains what is the posterior of a density."""
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
        "weight": (sample_dims, _shares(run.log_weights)[None], {"units": _ONE}),
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
    """What a file can hold: numbers and words."""
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


def _shares(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()
