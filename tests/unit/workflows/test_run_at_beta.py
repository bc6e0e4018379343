"""Runs at fixed beta: launches change no bit, and fused steps make the same moves."""

import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.arrays import indices
from annealz.core.random import Stream
from annealz.engine.gpu import cuda
from annealz.engine.gpu.small import SmallSteps
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths import programs
from annealz.paths.geometric import GeometricPath
from annealz.pilots import run_at_beta as module
from annealz.testing import random_rbm
from support import emulate_cuda

PATH = GeometricPath(BernoulliBase.uniform(20), random_rbm(6, 20, 0.5))
STREAM, CHAINS = Stream(3, "at beta"), indices(16)


def run(*counts: int) -> tuple[np.ndarray, np.ndarray]:
    """So many sweeps, in these calls."""
    x, done, parts = programs.sample(PATH, STREAM, np.int32(0), CHAINS), 0, []
    for count in counts:
        x, slopes = module.run_at_beta(PATH, BlockGibbs(), STREAM, CHAINS, x, 0.7, done, count)
        assert slopes.shape == (count, 16)
        parts.append(slopes)
        done += count
    return np.asarray(x), np.concatenate(parts)


def test_the_number_of_calls_changes_no_bit(monkeypatch: pytest.MonkeyPatch):
    x, slopes = run(40)
    for counts in ((1, 39), (13, 14, 13)):
        other, again = run(*counts)
        np.testing.assert_array_equal(other, x)
        np.testing.assert_array_equal(again, slopes)
    monkeypatch.setattr(module, "CAPACITY", 11)  # several launches of one call
    other, again = run(40)
    np.testing.assert_array_equal(other, x)
    np.testing.assert_array_equal(again, slopes)


def test_slopes_are_those_of_the_states():
    x, slopes = run(5)
    np.testing.assert_allclose(PATH.slope(x, 0.7), slopes[-1], rtol=1e-5)


def test_fused_steps_make_the_same_moves(monkeypatch: pytest.MonkeyPatch):
    """They record the slope before each sweep, not after it."""
    x, slopes = run(6)
    monkeypatch.setattr(cuda, "call", emulate_cuda.call)
    fused = SmallSteps(PATH)
    monkeypatch.setattr(module, "choose_fused", lambda *_: fused)
    other, before = run(6)
    np.testing.assert_array_equal(other, x)
    np.testing.assert_allclose(before[1:], slopes[:-1], rtol=1e-4)
