"""Several runs read as one: what is recorded of all chains, against the chains themselves."""

import dataclasses

import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.weights import effective_sample_size, log_mean
from annealz.engine.anneal import anneal
from annealz.engine.observers import Expectation, Slope
from annealz.engine.run import Run, Trace
from annealz.engine.statistics import merge_runs
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear, sm08
from annealz.testing import random_rbm

MODEL = random_rbm(4, 6, 1.2, seed=2)
PATH = GeometricPath(BernoulliBase.from_logits(np.zeros(6)), MODEL)
LOG_Z0 = 700.0


def recorded(log_weights: np.ndarray, values: np.ndarray, fields: np.ndarray) -> Run:
    """A run of these weights (steps, chains), with a number and a vector (steps, chains, 3) observed."""
    weights = np.exp(log_weights - log_weights.max(1, keepdims=True))
    shares = weights / weights.sum(1, keepdims=True)
    mean, means = (shares * values).sum(1), (shares[..., None] * fields).sum(1)
    trace = Trace(
        steps=np.arange(1, len(weights) + 1),
        betas=np.linspace(0, 1, len(weights) + 1)[1:],
        log_z=LOG_Z0 + np.array([log_mean(row) for row in log_weights]),
        ess=1 / (shares**2).sum(1),
        means={"slope": mean, "field": means},
        variances={
            "slope": (shares * (values - mean[:, None]) ** 2).sum(1),
            "field": (shares[..., None] * (fields - means[:, None]) ** 2).sum(1),
        },
    )
    chains = log_weights.shape[1]
    carries = {"slope": values[-1]}
    return Run(
        log_weights[-1], LOG_Z0, linear(len(weights)), 0, "anneal", trace, fields[-1], carries,
        seconds=0.5 * chains, messages=("full disk.",),
    )  # fmt: skip


def test_what_is_recorded_is_that_of_all_chains(seed: int):
    """Against the direct computation over all chains, for weights of very different sizes."""
    generator = np.random.default_rng(seed)
    sizes = (7, 30, 1)
    log_weights = generator.normal(0, 2, (5, 38)) + np.repeat([0.0, -300.0, 1.5], sizes)
    values, fields = generator.normal(2, 3, (5, 38)), generator.normal(size=(5, 38, 3))
    cuts = np.split(np.arange(38), np.cumsum(sizes)[:-1])
    merged = merge_runs([recorded(log_weights[:, c], values[:, c], fields[:, c]) for c in cuts])
    whole = recorded(log_weights, values, fields)
    assert np.array_equal(merged.log_weights, whole.log_weights)
    assert np.array_equal(merged.states, whole.states)
    assert np.array_equal(merged.carries["slope"], whole.carries["slope"])
    assert (merged.seconds, merged.messages) == (whole.seconds, whole.messages)
    for name in ("steps", "betas", "log_z", "ess"):
        np.testing.assert_allclose(getattr(merged.trace, name), getattr(whole.trace, name))
    for kind in ("means", "variances"):
        for name in ("slope", "field"):
            found, truth = (getattr(run.trace, kind)[name] for run in (merged, whole))
            np.testing.assert_allclose(found, truth, atol=1e-12)


def test_a_mean_of_means_is_not_it(seed: int):
    """The mutant: parts joined by their sizes, whatever their weights."""
    generator = np.random.default_rng(seed)
    log_weights, values = generator.normal(0, 1, (1, 20)), generator.normal(2, 3, (1, 20))
    log_weights[:, :10] += 4
    fields = generator.normal(size=(1, 20, 3))
    halves = [
        recorded(log_weights[:, c], values[:, c], fields[:, c]) for c in np.split(np.arange(20), 2)
    ]
    truth = recorded(log_weights, values, fields).trace.means["slope"]
    mutant = np.mean([half.trace.means["slope"] for half in halves], 0)
    assert merge_runs(halves).trace.means["slope"] == pytest.approx(truth)
    assert mutant != pytest.approx(truth, rel=0.05)


def run_of(chains: int, purpose: str, **options) -> Run:
    options = {"schedule": sm08(30), "seed": 5, **options}
    return anneal(PATH, BlockGibbs(), num_chains=chains, purpose=purpose, **options)


def test_runs_of_the_engine_end_as_one():
    observers = {"slope": Slope(), "mean": Expectation(lambda v: v)}
    runs = [run_of(60, "anneal", observers=observers), run_of(25, "anneal 2", observers=observers)]
    merged = merge_runs(runs)
    assert (merged.num_chains, merged.num_steps, merged.purpose) == (85, 30, "anneal")
    assert merged.sweeps == sum(run.sweeps for run in runs)
    log_weights = np.concatenate([run.log_weights for run in runs])
    assert merged.trace.log_z[-1] == pytest.approx(merged.log_z0 + log_mean(log_weights), abs=1e-5)
    assert merged.trace.ess[-1] == pytest.approx(effective_sample_size(log_weights), rel=1e-4)
    assert merged.trace.means["mean"].shape == (30, 6)
    assert merge_runs(runs[:1]) is runs[0]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: run_of(20, "anneal 2", schedule=linear(30)), "one schedule"),
        (lambda: run_of(20, "anneal 2", resample=0.5), "without resampling"),
        (lambda: dataclasses.replace(run_of(20, "anneal 2"), is_reverse=True), "forward"),
        (lambda: run_of(20, "anneal 2", observers={}), "the same observe"),
    ],
)
def test_what_is_no_part_of_it_is_refused(other, words: str):
    with pytest.raises(ValueError, match=words):
        merge_runs([run_of(20, "anneal"), other()])
