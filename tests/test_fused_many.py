"""Steps of many chains, in the interpreter of Mosaic: the same numbers as the engine's own steps."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from annealz.testing import default_seed

SCRIPT = Path(__file__).with_name("interpret_many.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, np.ndarray]:
    out = tmp_path_factory.mktemp("many") / "found.npz"
    command = [sys.executable, str(SCRIPT), str(out), str(default_seed())]
    env = {**os.environ, "NPROC": "16"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(np.load(out))


@pytest.mark.parametrize(("name", "plain"), [("whole", "plain"), ("reverse", "plain reverse")])
def test_steps_agree_with_the_engine(found, name, plain):
    assert np.array_equal(found[f"{name} states"], found[f"{plain} states"])
    assert found[f"{name} log_weights"] == pytest.approx(found[f"{plain} log_weights"], abs=2e-4)
    for what in ("ess", "slope"):
        assert found[f"{name} {what}"] == pytest.approx(found[f"{plain} {what}"], rel=1e-3)


def test_chunks_change_no_bit(found):
    for what in ("states", "log_weights", "slope"):
        assert np.array_equal(found[f"pieces {what}"], found[f"whole {what}"])


def test_no_chain_depends_on_its_neighbours(found):
    """Chains in another order, among other neighbours: the same."""
    for what in ("states", "log_weights"):
        assert np.array_equal(found[f"mixed {what}"], found[f"whole {what}"])
