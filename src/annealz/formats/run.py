"""A run, and what it was given, as named arrays and a JSON record."""

from typing import Any

import numpy as np

from annealz.bases.bernoulli import BernoulliBase
from annealz.models.rbm import RBM
from annealz.run import Run, Trace
from annealz.schedules.schedule import Schedule

__all__ = ["inputs_from_arrays", "inputs_to_arrays", "run_from_arrays", "run_to_arrays"]


def inputs_to_arrays(
    model: RBM, base: BernoulliBase, draws: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """The model, the base's logits, and draws of the target if any."""
    arrays: dict[str, Any] = {
        "weights": model.weights,
        "hidden_bias": model.hidden_bias,
        "visible_bias": model.visible_bias,
        "base_logits": base.logits,
    }
    if draws is not None:
        arrays["draws"] = draws
    return {name: np.asarray(array) for name, array in arrays.items()}


def inputs_from_arrays(arrays: dict[str, np.ndarray], base_name: str) -> tuple[RBM, BernoulliBase]:
    """The model and the base."""
    model = RBM.checked(arrays["weights"], arrays["hidden_bias"], arrays["visible_bias"])
    return model, BernoulliBase.from_logits(arrays["base_logits"], base_name)


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
    )
