"""Bits of small runs of every kind, and the programs that they lower."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import pytest

from support.golden_runs import ADAPTIVE, RUNS, result_of
from support.pins import check, machine
from support.programs import products

runs = pytest.mark.parametrize("name", RUNS)


def agree(result: Mapping[str, Any], pin: Mapping[str, Any]) -> None:
    """Check that runs of two machines agree: log Z by its error, and exactly what no bit decides."""
    error = np.hypot(result["std_err"], pin["std_err"])
    assert abs(result["log_z"] - pin["log_z"]) < 1e-3 + 6 * error
    for key in ("status", "schedule", "sweeps"):
        assert result.get(key) == pin.get(key)


@runs
def test_bits(name: str):
    check("runs.json", name, result_of(name)[0], machine(), agree)


def agree_in_kind(value: Mapping[str, Any], pin: Mapping[str, Any]) -> None:
    """Check that two versions of JAX lower the same functions, with as many products."""
    assert products(value["programs"]) == products(pin["programs"])


@runs
def test_programs(name: str):
    place = machine() if name in ADAPTIVE else f"jax {jax.__version__}"
    check("programs.json", name, {"programs": result_of(name)[1]}, place, agree_in_kind)
