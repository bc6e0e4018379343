"""Settings of runs that were never made."""

from typing import Any

from annealz.methods.settings import (
    AnnealAsked,
    AnnealSettings,
    Asked,
    ExchangeSettings,
    Given,
    SecondBase,
)

_OBJECTS = Given(path=False, kernel=False, base=False)
_COMMON = {
    "model": "rbm",
    "model_digest": "0" * 64,
    "source": None,
    "base": "visible-bias",
    "base_digest": None,
    "marginal": "visible",
    "given": _OBJECTS,
    "seed": 0,
    "target_std_err": None,
    "checkpoint_seconds": 15.0,
    "exact_log_z": None,
    "pilot_sweeps": 0,
    "pilot_seconds": 0.0,
    "evaluations_a_sweep": None,
    "base_evaluations": 0,
    "versions": {},
}


def asked(**changes: Any) -> AnnealAsked:
    """The words of a call."""
    words: dict[str, Any] = {
        "model": None,
        "base": "visible-bias",
        "data": False,
        "marginal": None,
        "schedule": "mixing",
        "num_steps": None,
        "num_chains": None,
        "observe": [],
    }
    return AnnealAsked(**(words | changes))


def anneal_settings(**changes: Any) -> AnnealSettings:
    """Of an estimate whose base was given, with a second opinion."""
    own: dict[str, Any] = {
        "asked": asked(),
        "num_chains": 400,
        "wanted_chains": 400,
        "max_seconds": None,
        "part_chains": None,
        "resample": None,
        "two_sided": False,
        "second_opinion": True,
        "second": SecondBase(base="uniform"),
        "base_reason": None,
        "can_enumerate": False,
        "takes_data": False,
        "along": None,
        "record_every": None,
    }
    return AnnealSettings(**(_COMMON | own | changes))


def exchange_settings(**changes: Any) -> ExchangeSettings:
    """Of a run of replica exchange."""
    own: dict[str, Any] = {
        "asked": Asked(model=None, base="visible-bias", data=False, marginal=None),
        "num_rungs": 16,
        "num_ensembles": 16,
        "num_sweeps": 1000,
        "num_draws": 0,
    }
    return ExchangeSettings(**(_COMMON | own | changes))
