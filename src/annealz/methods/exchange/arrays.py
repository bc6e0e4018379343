"""Runs of replica exchange as named arrays, one row per round, and a JSON record."""

from typing import Any

import numpy as np

from annealz.engine.run import RUN
from annealz.io.archive import real_numbers
from annealz.io.records import Record
from annealz.methods.exchange.result import Exchange, Round

_NEEDED = ("log_z0", "seed", "purpose", "seconds", "messages", "num_filling")
EXCHANGE = Record("the record of a run of replica exchange", {n: RUN.needed[n] for n in _NEEDED})
_OF_ROUNDS = ("betas", "rejections", "log_ratios", "values", "half_values", "round_trips")


def exchange_to_arrays(result: Exchange) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The result as named arrays, one row per round, and a JSON record."""
    arrays = {name: np.stack([getattr(one, name) for one in result.rounds]) for name in _OF_ROUNDS}
    arrays["num_sweeps"] = np.array([one.num_sweeps for one in result.rounds])
    arrays["draws"] = result.draws
    meta = {
        "log_z0": result.log_z0,
        "seed": result.seed,
        "purpose": result.purpose,
        "seconds": result.seconds,
        "messages": list(result.extra_messages),
        "num_filling": result.num_filling,
    }
    return arrays, meta


def exchange_from_arrays(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> Exchange:
    """The result as it was; a ValueError says what is wrong with it."""
    meta = EXCHANGE.check(meta)
    what = "a stored run"
    counts = real_numbers(arrays, "num_sweeps", what, num_axes=1)
    own = {name: real_numbers(arrays, name, what, length=len(counts)) for name in _OF_ROUNDS}
    if not len(counts) or any(array.ndim < 2 for array in own.values()):
        raise ValueError(f"{what} is damaged: its rounds cannot be separated.")
    rounds = tuple(
        Round(
            num_sweeps=int(count),
            log_z0=meta["log_z0"],
            **{name: array[i] for name, array in own.items()},
        )
        for i, count in enumerate(counts)
    )
    return Exchange(
        rounds=rounds,
        log_z0=meta["log_z0"],
        seed=meta["seed"],
        purpose=meta["purpose"],
        draws=real_numbers(arrays, "draws", what),
        seconds=meta["seconds"],
        num_filling=meta["num_filling"],
        extra_messages=tuple(meta["messages"]),
    )
