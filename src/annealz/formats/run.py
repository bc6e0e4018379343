"""A run as named arrays and a JSON record."""

from typing import Any

import numpy as np

from annealz.run import Run, Trace
from annealz.schedules.schedule import Schedule

__all__ = ["run_from_arrays", "run_to_arrays"]


def run_to_arrays(run: Run) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Everything of a run but its schedule and what observers carried."""
    trace = run.trace
    arrays = {
        "log_weights": run.log_weights,
        "states": run.states,
        "trace:steps": trace.steps,
        "trace:betas": trace.betas,
        "trace:log_z": trace.log_z,
        "trace:ess": trace.ess,
        **{f"mean:{name}": value for name, value in trace.means.items()},
        **{f"variance:{name}": value for name, value in trace.variances.items()},
    }
    if run.ancestors is not None:
        arrays["ancestors"] = run.ancestors
    meta = {
        "log_z0": run.log_z0,
        "seed": run.seed,
        "purpose": run.purpose,
        "seconds": run.seconds,
        "messages": list(run.messages),
        "is_reverse": run.is_reverse,
        "island_size": run.island_size,
        "num_resamplings": run.num_resamplings,
    }
    return arrays, meta


def run_from_arrays(arrays: dict[str, np.ndarray], meta: dict[str, Any], schedule: Schedule) -> Run:
    """The run (without what observers carried)."""
    named = {
        kind: {k.removeprefix(kind): v for k, v in arrays.items() if k.startswith(kind)}
        for kind in ("trace:", "mean:", "variance:")
    }
    trace = Trace(**named["trace:"], means=named["mean:"], variances=named["variance:"])
    return Run(
        log_weights=arrays["log_weights"],
        log_z0=meta["log_z0"],
        schedule=schedule,
        seed=meta["seed"],
        purpose=meta["purpose"],
        trace=trace,
        states=arrays["states"],
        carries={},
        seconds=meta["seconds"],
        messages=tuple(meta["messages"]),
        is_reverse=meta.get("is_reverse", False),
        island_size=meta.get("island_size"),
        num_resamplings=meta.get("num_resamplings", 0),
        ancestors=arrays.get("ancestors"),
    )
