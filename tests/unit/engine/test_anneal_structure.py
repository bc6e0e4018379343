"""What the engine compiles, how it rounds, and how it fails."""

from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.random import Stream
from annealz.engine import advance
from annealz.engine.anneal import anneal
from annealz.engine.observers import AbstractObserver, Slope
from annealz.engine.run import Run
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear
from annealz.testing import (
    random_rbm,
)
from support.runs import small_run
from support.structure import num_products, products_of_a_step
from support.systems import SMALL, SMALL_BASE, marginals, true_code

# --- structure --------------------------------------------------------------------------------


class WastefulGibbs(AbstractKernel):
    """Mutant: a product that cannot be shared with that of the increment."""

    def step(self, bits, x, path, beta):
        latent = bits.bernoulli(path.latent_logits(beta * x, 1.0), draw=0)
        return bits.bernoulli(path.state_logits(latent, beta), draw=1)


@marginals
@pytest.mark.parametrize("shape", [(4, 5), (24, 100)], ids=str)
def test_a_step_is_two_products(marginal: str, shape: tuple[int, int]):
    """The product of the increment is that of the conditional, recorded or not."""
    path = GeometricPath(BernoulliBase.uniform(shape[1]), random_rbm(*shape, 0.5), marginal)
    assert products_of_a_step(path, BlockGibbs(), record=False) == 2
    assert products_of_a_step(path, BlockGibbs(), record=True) == 2
    assert products_of_a_step(path, WastefulGibbs(), record=False) == 3


def test_the_engine_has_two_products_a_step():
    """One plain branch and one recorded branch: four in the whole program."""
    path, kernel = true_code("visible")
    stream, observers = Stream(0, "structure"), {"slope": Slope()}
    block = advance.start(path, observers, stream, jnp.int32(0), 32)
    numbers = (jnp.int32(i) for i in (0, 4, 2, 4))
    betas = advance.window(np.linspace(0, 1, 5, dtype=np.float32), 0)
    chunk = advance.Chunk(jnp.int32(0), jnp.int32(32), betas, *numbers)
    lowered = advance.advance.lower(path, kernel, observers, stream, block, chunk)
    assert num_products(lowered.compile().compiled.as_text()) == 4


TRACED: list[str] = []


class TracedPath(GeometricPath):
    """Notes every time its increment is traced by the compiler."""

    def log_ratio(self, x, beta0, beta1):
        TRACED.append("log_ratio")
        return super().log_ratio(x, beta0, beta1)


def test_one_program_serves_every_schedule():
    """Compilation costs more than a short run: lengths and chunks must not cause another."""
    path = TracedPath(SMALL_BASE, SMALL)

    def run(num_steps: int, **options) -> None:
        anneal(path, BlockGibbs(), linear(num_steps), num_chains=32, **options)

    TRACED.clear()
    run(5)
    once = len(TRACED)
    assert once > 0
    for num_steps in (1, 2, 300, 5000):
        run(num_steps)
    run(50, chunk_steps=1)
    run(50, chunk_steps=7, record_every=3, seed=9)
    assert len(TRACED) == once
    anneal(path, BlockGibbs(), linear(5), num_chains=37)  # another shape is another program
    assert len(TRACED) == 2 * once


# --- rounding and failure ---------------------------------------------------------------------


class Film(AbstractObserver):
    """Keeps every state that was weighted: (chains, steps, units)."""

    num_steps: int = eqx.field(static=True)

    def init(self, x, path):
        film = jnp.zeros((x.shape[0], self.num_steps, x.shape[1]), jnp.uint8)
        return {"film": film, "next": jnp.zeros(x.shape[0], jnp.int32)}

    def update(self, carry, x, path, beta0, beta1):
        film = carry["film"].at[:, carry["next"][0]].set(x.astype(jnp.uint8))
        return {"film": film, "next": carry["next"] + 1}

    def measure(self, carry, x, path, beta):
        return jnp.zeros(x.shape[0])


@marginals
def test_log_weights_keep_their_digits(marginal: str):
    """Along the engine's own states, the weights recomputed in float64, over 1,000 steps.

    A sum without compensation is off by 3e-4 here, the engine by 3e-6.
    """
    num_steps = 1000
    model = random_rbm(64, 200, scale=0.4, seed=7)
    base = BernoulliBase.from_logits(np.linspace(-3, 3, 200))
    path = GeometricPath(base, model, marginal)
    run = anneal(
        path, BlockGibbs(), linear(num_steps), num_chains=8, observers={"film": Film(num_steps)}
    )
    film = run.carries["film"]["film"].astype(np.float64)  # (chains, steps, units)
    betas = run.schedule.betas.astype(np.float32).astype(np.float64)
    weights, hidden_bias, visible_bias, logits = (
        np.float64(a) for a in (model.weights, model.hidden_bias, model.visible_bias, base.logits)
    )
    total = np.zeros(8)
    for k in range(num_steps):
        x = film[:, k]
        densities = []
        for beta in betas[k : k + 2]:
            visible = (1 - beta) * logits + beta * visible_bias
            hidden = beta * hidden_bias
            if marginal == "visible":
                fields, linear_part = hidden + beta * x @ weights.T, x @ visible
            else:
                fields, linear_part = visible + beta * x @ weights, x @ hidden
            densities.append(linear_part + np.logaddexp(0, fields).sum(1))
        total += densities[1] - densities[0]
    assert np.abs(total).max() > 100  # a sum worth rounding
    np.testing.assert_allclose(run.log_weights, total, rtol=0, atol=5e-5)


def broken_run(checkpoint: Path | None = None) -> Run:
    """Fields of 1e38 overflow float32."""
    model = eqx.tree_at(lambda m: m.weights, SMALL, jnp.full((4, 5), 3e38))
    path = GeometricPath(SMALL_BASE, model)
    return anneal(path, BlockGibbs(), linear(3), num_chains=32, checkpoint=checkpoint)


def test_weights_that_are_no_numbers_are_no_result(tmp_path: Path):
    """The error says where, and a resumed run does not smuggle the number through."""
    with pytest.raises(ValueError, match=r"\d+ of 32 log weights became infinite or NaN by step"):
        broken_run()
    for _ in range(2):
        with pytest.raises(ValueError, match="infinite or NaN"):
            broken_run(tmp_path / "c")


@pytest.mark.parametrize("name", ["num_chains", "record_every", "chunk_steps"])
@pytest.mark.parametrize("value", [0, -1])
def test_counts_under_one_are_refused(name: str, value: int):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {value}"):
        small_run(**{name: value})


@pytest.mark.parametrize("wrong", [-1, 2**64, 1.5, "a"])
def test_other_seeds_are_refused(wrong):
    with pytest.raises(ValueError, match="seed must be an integer"):
        small_run(seed=wrong)
