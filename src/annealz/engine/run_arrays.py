"""A run as named arrays and a JSON record."""

from typing import Any

import numpy as np

from annealz.engine.run import Run, Trace
from annealz.io.archive import real_numbers
from annealz.io.records import Record, finite, flag, list_of, optional, text, whole
from annealz.schedules.schedule import Schedule

RUN = Record(
    "the record of a run",
    {
        "log_z0": finite,
        "seed": whole,
        "purpose": text,
        "seconds": finite,
        "messages": list_of(text),
        "is_reverse": flag,
        "island_size": optional(whole),
        "num_resamplings": whole,
    },
    {"num_filling": whole},
)

_WHAT = "a stored run"


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
        "num_filling": run.num_filling,
    }
    return arrays, meta


def run_from_arrays(arrays: dict[str, np.ndarray], meta: dict[str, Any], schedule: Schedule) -> Run:
    """The run (without what observers carried); a ValueError says what is wrong with it."""
    meta = RUN.check(meta)
    log_weights = real_numbers(arrays, "log_weights", _WHAT, num_axes=1)
    count = len(log_weights)
    if meta["island_size"] is not None and (meta["island_size"] < 1 or count % meta["island_size"]):
        raise ValueError(
            f"{_WHAT} is damaged: {count} chains make no islands of {meta['island_size']}."
        )
    steps = real_numbers(arrays, "trace:steps", _WHAT, num_axes=1)
    if not count or len(steps) > schedule.num_steps + 1:
        raise ValueError(
            f"{_WHAT} is damaged: it has {count} chains and {len(steps)} recorded steps."
        )
    named = {
        kind: {
            k.removeprefix(kind): real_numbers(arrays, k, _WHAT, length=len(steps))
            for k in arrays
            if k.startswith(kind)
        }
        for kind in ("mean:", "variance:")
    }
    columns = {
        name: real_numbers(arrays, f"trace:{name}", _WHAT, num_axes=1, length=len(steps))
        for name in ("betas", "log_z", "ess")
    }
    trace = Trace(steps, **columns, means=named["mean:"], variances=named["variance:"])
    ancestors = None
    if "ancestors" in arrays:
        ancestors = real_numbers(arrays, "ancestors", _WHAT, num_axes=1, length=count)
    return Run(
        log_weights=log_weights,
        log_z0=meta["log_z0"],
        schedule=schedule,
        seed=meta["seed"],
        purpose=meta["purpose"],
        trace=trace,
        states=real_numbers(arrays, "states", _WHAT, length=count),
        carries={},
        seconds=meta["seconds"],
        messages=tuple(meta["messages"]),
        is_reverse=meta["is_reverse"],
        island_size=meta["island_size"],
        num_resamplings=meta["num_resamplings"],
        num_filling=meta.get("num_filling", 0),
        ancestors=ancestors,
    )
