"""The moment-averaged path of an RBM (Grosse, Maddison & Salakhutdinov 2013).

Instead of the parameters the moments move linearly, those of a mixture of base and target:

    s_beta = (1 - beta) s_A + beta s_B,        s = (E[h v^T], E[h], E[v])

and p_beta is the RBM with these moments. Its parameters maximise theta.s_beta - log Z(theta), which is
concave, with the gradient s_beta - E_theta[s]; they are fitted at a few knots and the path is geometric in
between (`trajectory.py`). The moments of the target, and those of the model being fitted, are averages over
chains. That is a stochastic approximation as in training by persistent chains:

    theta += rate_u (s_beta - mean over the chains),     one sweep of all chains per update

at a rate that falls to zero, each knot from the parameters and the chains of the one before. An error of
the fit makes another path and no bias: the target stays at its end, and streams are the fit's own.
"""

import dataclasses
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.arrays import indices, on_device
from annealz.core.random import Stream, derive_seed
from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.rbm import RBM
from annealz.models.trajectory import TrajectoryPath
from annealz.paths.geometric import GeometricPath
from annealz.pilots.draws import approximate_draws
from annealz.schedules.rules import linear


@dataclasses.dataclass(frozen=True)
class MomentPath:
    """The path, and what it cost to fit."""

    path: TrajectoryPath
    sweeps: int
    seconds: float
    misfits: tuple[float, ...]
    """At each knot the root mean square of moments missed in E[v], over the units."""


def fit_moment_path(
    base: BernoulliBase,
    model: RBM,
    *,
    num_knots: int = 9,
    num_chains: int = 200,
    num_updates: int = 500,
    num_pilot_steps: int = 1000,
    rate: float = 0.2,
    seed: int = 0,
) -> MomentPath:
    """The moment-averaged path from a base to an RBM.

    Parameters
    ----------
    num_knots : RBMs to fit between base and target
    num_chains : of the pilot and of the fit
    num_updates : of the parameters at each knot, one sweep of all chains each
    num_pilot_steps : annealing steps that carry the chains to the target, whose moments they give; as many
        sweeps follow at the target
    rate : of the first update; it falls to zero

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> base, model = annealz.BernoulliBase.uniform(6), random_rbm(4, 6)
    >>> annealz.fit_moment_path(base, model, num_chains=50, num_updates=50).sweeps
    122500
    """
    counts = {"num_knots": num_knots, "num_chains": num_chains, "num_updates": num_updates}
    for name, count in {**counts, "num_pilot_steps": num_pilot_steps}.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}.")
    began = time.monotonic()
    end = _target_moments(base, model, num_pilot_steps, num_chains, derive_seed(seed, "moments"))
    start = _base_moments(base, model.num_hidden)
    stream, chains = Stream(seed, "moment path"), indices(num_chains)
    x = base.sample(stream.at(0, chains))
    here = RBM(jnp.zeros_like(model.weights), jnp.zeros_like(model.hidden_bias), base.logits)
    models, misfits = [], []
    for i in range(1, num_knots + 1):
        t = i / (num_knots + 1)
        wanted = jax.tree.map(lambda a, b, t=t: (1 - t) * a + t * b, start, end)
        first = np.int32((i - 1) * num_updates + 1)
        here, x, missed = _fit(
            here, wanted, x, stream, chains, first, num_updates, np.float32(rate)
        )
        models.append(here)
        misfits.append(float(missed))
    sweeps = num_chains * (2 * num_pilot_steps + num_knots * num_updates)
    path = TrajectoryPath(base, [*models, model])
    return MomentPath(path, sweeps, time.monotonic() - began, tuple(misfits))


def _target_moments(
    base: BernoulliBase, model: RBM, num_steps: int, num_chains: int, seed: int
) -> RBM:
    """s_B, from the pilot: chains annealed to the target and swept there."""
    path, kernel, schedule = GeometricPath(base, model), BlockGibbs(), linear(num_steps)
    options = {"num_chains": num_chains, "seed": seed, "purpose": "moments"}
    run = anneal(path, kernel, schedule, observers={}, **options)
    draws = approximate_draws(path, kernel, run, num_chains, num_sweeps=num_steps, seed=seed)
    return _moments(model, on_device(draws))


def _base_moments(base: BernoulliBase, num_hidden: int) -> RBM:
    """s_A, in the shape of the parameters: hidden units are fair coins."""
    means = jax.nn.sigmoid(base.logits)
    return RBM(jnp.tile(means / 2, (num_hidden, 1)), jnp.full(num_hidden, 0.5), means)


def _moments(model: RBM, x) -> RBM:
    """Mean moments of states x under the model's p(h | v), in the shape of the parameters."""
    hidden = jax.nn.sigmoid(model.hidden_logits(x))
    return RBM(hidden.T @ x / len(x), hidden.mean(0), x.mean(0))


@eqx.filter_jit
def _fit(model: RBM, wanted: RBM, x, stream, chains, first, num_updates: int, rate):
    """The parameters after some updates, the chains, and the misfit; the mean of the last half is kept."""
    half = num_updates // 2

    def update(carry, k):
        model, total, missed, x = carry
        bits = stream.at(first + k, chains)
        hidden = bits.bernoulli(model.hidden_logits(x), draw=0)
        x = bits.bernoulli(model.visible_logits(hidden), draw=1)
        gradient = jax.tree.map(jnp.subtract, wanted, _moments(model, x))
        step = rate * (1 - k / num_updates)
        model = jax.tree.map(lambda p, g: p + step * g, model, gradient)
        share = jnp.where(k >= half, 1 / (num_updates - half), 0.0)
        total = jax.tree.map(lambda t, p: t + share * p, total, model)
        return (model, total, missed + share * gradient.visible_bias, x), None

    zero = jax.tree.map(jnp.zeros_like, model)
    carry = model, zero, jnp.zeros_like(model.visible_bias), x
    (_, total, missed, x), _ = jax.lax.scan(update, carry, jnp.arange(num_updates))
    return total, x, jnp.sqrt((missed**2).mean())
