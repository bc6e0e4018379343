"""Steps of many chains, in the interpreter of Mosaic: the same numbers as the engine's own steps."""

import os
import subprocess
import sys

import numpy as np
import pytest

from annealz.testing import default_seed
from support.places import ROOT

SCRIPT = ROOT / "tests" / "support" / "interpret_many.py"


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, np.ndarray]:
    out = tmp_path_factory.mktemp("many") / "found.npz"
    command = [sys.executable, str(SCRIPT), str(out), str(default_seed())]
    # most of the time goes into compiling the interpreter's programs, which run for a moment only
    env = {**os.environ, "NPROC": "16", "XLA_FLAGS": "--xla_backend_optimization_level=0"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(np.load(out))


@pytest.mark.parametrize(("name", "plain"), [("pieces", "plain"), ("reverse", "plain reverse")])
def test_steps_agree_with_the_engine(found, name, plain):
    assert np.array_equal(found[f"{name} states"], found[f"{plain} states"])
    assert found[f"{name} log_weights"] == pytest.approx(found[f"{plain} log_weights"], abs=2e-4)
    for what in ("ess", "slope"):
        assert found[f"{name} {what}"] == pytest.approx(found[f"{plain} {what}"], rel=1e-3)


def test_neither_chunks_nor_neighbours_change_a_bit(found):
    """All steps at once, and chains in another order, among other neighbours: the same."""
    for what in ("states", "log_weights"):
        assert np.array_equal(found[f"mixed {what}"], found[f"pieces {what}"])
