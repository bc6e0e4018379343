"""Rounding over a long run: the engine's log weights against float64, along its own states.

Comparing two whole runs would not do: one state flipped by rounding makes chains part. So the
states are made again, bit for bit, from the run's own random bits, and every increment is computed
anew in float64 from the plain difference of log densities at the schedule's float64 betas.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import annealz
from annealz.core.random import Stream
from annealz.kernels.gibbs import BlockGibbs


def _replay(path, kernel, schedule, num_chains: int, seed: int, chunk: int):
    """The states v_0 .. v_{K-1} that a run visited, chunk by chunk, as booleans."""
    stream, betas = Stream(seed, "anneal"), jnp.asarray(schedule.betas, jnp.float32)
    chains = jnp.arange(num_chains)

    @jax.jit
    def advance(x, ks):
        def step(x, k):
            return kernel.step(stream.at(k, chains), x, path, betas[k]), x > 0.5

        return jax.lax.scan(step, x, ks)

    x = path.sample(stream.at(0, chains))
    for start in range(0, schedule.num_steps, chunk):
        ks = jnp.arange(start + 1, min(start + chunk, schedule.num_steps) + 1)
        x, states = advance(x, ks)
        yield np.asarray(ks), np.asarray(states)
    yield None, np.asarray(x)


def _increments(model, base, betas, states) -> np.ndarray:
    """Sum over the steps of a chunk of log p*_{beta_k} - log p*_{beta_{k-1}}, float64."""
    weights, hidden_bias, visible_bias, base_logits = (
        np.asarray(a, np.float64)
        for a in (model.weights, model.hidden_bias, model.visible_bias, base.logits)
    )
    v = states.astype(np.float64)
    fields = v @ weights.T + hidden_bias  # (steps, chains, hidden)
    low, high = betas[:-1, None, None], betas[1:, None, None]
    change = np.logaddexp(0, high * fields) - np.logaddexp(0, low * fields)
    drive = v @ (visible_bias - base_logits)
    return ((high - low)[..., 0] * drive + change.sum(-1)).sum(0)


@pytest.mark.parametrize(
    ("num_steps", "num_chains"), [(2000, 20), pytest.param(100_000, 1000, marks=pytest.mark.slow)]
)
def test_log_weights_hold_to_a_thousandth(num_steps: int, num_chains: int):
    model = annealz.load_model("mnist-cd25-20")
    base = model.choose_base()
    path, kernel, schedule = (
        annealz.GeometricPath(base, model),
        BlockGibbs(),
        annealz.linear(num_steps),
    )
    run = annealz.anneal(path, kernel, schedule, num_chains=num_chains, seed=0)
    exact = np.zeros(num_chains)
    for ks, states in _replay(path, kernel, schedule, num_chains, 0, 200):
        if ks is None:
            assert np.array_equal(states, run.states)  # the same trajectory to its end
        else:
            exact += _increments(model, base, schedule.betas[ks[0] - 1 : ks[-1] + 1], states)
    worst = np.abs(run.log_weights - exact).max()
    print(f"K = {num_steps}, N = {num_chains}: largest rounding error {worst:.2e} nats")
    assert worst < 1e-3
