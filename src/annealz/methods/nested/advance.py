"""A nested sampler on the device: BlackJAX's deletions and evidence, our walks, and the way uphill.

    delete      the num_delete live points of the lowest L; the largest L of them is the contour L0
    start       from as many of the others, above the contour, no one twice where there are enough
    walk        num_inner_steps slices each, under L > L0 (`walk.py`)

A step is skipped where no live point lies above the contour: the likelihood has a plateau at its top.

How high the likelihood rises is looked for uphill from live points, without gradients (`ascend`).
What live points hold is what is left of the evidence only if the likelihood does not rise steeply above
them. It does at a transition of first order: a narrow state inside a wide one of like mass. Volumes must
then shrink by many nats in which the evidence hardly grows, and a run that ends there ends too early.
So the end is decided by the highest likelihood that can be found, L_max: a run ends where

    X L_max  <  tolerance times the evidence so far

The search is the (1+1) evolution strategy with the rule of one fifth (Rechenberg 1973), from many points
side by side: x' = x + s C z is kept if it is higher; s grows by e^(0.8 / c) then, and else falls by
e^(-0.2 / c), c = 1 + dim / 3. On a quadratic top it comes nearer by a factor e in about 5 dim steps.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer

from annealz.core.random import Stream
from annealz.methods.nested.walk import Points, Target, Walked, walk

_CHOICE = 2  # the draw of a step's bits that chooses starts; those of walks are in `walk.py`
_RIDGE = 1e-6  # of the variances, so that the covariance of few points has a factor


class Sampler(NamedTuple):
    """The live points between two pieces."""

    state: Any
    """BlackJAX's: live points, evidence so far, shape of the walks."""
    born: Integer[Array, " live"]
    """The step at which each was drawn; -1 of draws from the prior."""
    step: Integer[Array, ""]


class Dead(NamedTuple):
    """What died in a step, and what its replacement cost; one row per step."""

    x: Float[Array, "steps deleted dim"]
    log_likelihood: Float[Array, "steps deleted"]
    born: Integer[Array, "steps deleted"]
    is_made: Bool[Array, " steps"]
    """Whether the step was made; skipped on a plateau."""
    walked: Walked


def _factor(_key, state, _info, _params) -> dict[str, Any]:
    """The shape of the walks: a Cholesky factor of the covariance of the live points."""
    centred = state.particles.position - state.particles.position.mean(0)
    covariance = jnp.matmul(centred.T, centred, precision=jax.lax.Precision.HIGHEST)
    covariance = covariance / centred.shape[0]
    ridge = jnp.maximum(_RIDGE * jnp.diag(covariance), jnp.finfo(jnp.float32).tiny)
    return {"factor": jnp.linalg.cholesky(covariance + jnp.diag(ridge))}


@eqx.filter_jit
def begin(x: Float[Array, "live dim"], target: Target, offset: Float[Array, ""]) -> Sampler:
    """Live points at these draws of the prior."""
    from blackjax.ns.adaptive import init
    from blackjax.ns.base import StateWithLogLikelihood

    def states(x):
        log_prior, log_likelihood = target(x, offset)
        return StateWithLogLikelihood(x, log_prior, log_likelihood, log_likelihood)

    state = init(x, states, update_inner_kernel_params_fn=_factor)
    return Sampler(state, jnp.full(x.shape[0], -1, jnp.int32), jnp.zeros((), jnp.int32))


@eqx.filter_jit
def moved_to(
    sampler: Sampler, target: Target, offset: Float[Array, ""], change: Float[Array, ""]
) -> Sampler:
    """The same with likelihoods relative to another offset, larger by `change`; evaluated again."""
    state = sampler.state
    _, log_likelihood = target(state.particles.position, offset)
    particles = state.particles._replace(loglikelihood=log_likelihood)
    evidence = state.integrator
    evidence = evidence._replace(logZ=evidence.logZ - change, logZ_live=evidence.logZ_live - change)
    return sampler._replace(state=state._replace(particles=particles, integrator=evidence))


@eqx.filter_jit
def advance(
    sampler: Sampler,
    stream: Stream,
    target: Target,
    offset: Float[Array, ""],
    num_steps: int,
    num_delete: int,
    num_inner_steps: int,
) -> tuple[Sampler, Dead]:
    """`num_steps` steps; a step's random numbers are a function of the stream and of its number alone."""
    from blackjax.ns.adaptive import build_kernel
    from blackjax.ns.base import delete_fn

    delete = partial(delete_fn, num_delete=num_delete)

    def replace(_key, state, contour, factor, step):
        live = state.particles
        is_above = live.loglikelihood > contour
        shuffle = stream.at(step, jnp.arange(is_above.size)).uniforms(1, _CHOICE)[:, 0]
        scores = jnp.where(is_above, shuffle, -1.0)
        order = jnp.argsort(-scores)  # those above the contour first, shuffled
        pick = order[jnp.arange(num_delete) % is_above.sum()]
        start = Points(live.position[pick], live.logdensity[pick], live.loglikelihood[pick])
        bits = stream.at(step, jnp.arange(num_delete))
        end, walked = walk(bits, start, contour, factor, target, offset, num_inner_steps)
        births = jnp.full_like(end.log_likelihood, contour)
        return type(live)(end.x, end.log_prior, end.log_likelihood, births), walked

    def made(sampler):
        gone, _ = delete(sampler.state)
        kernel = build_kernel(delete, partial(replace, step=sampler.step + 1), _factor)
        state, info = kernel(jax.random.key(0), sampler.state)  # the key is not used
        dead, born = info.particles, sampler.born[gone]
        after = Sampler(state, sampler.born.at[gone].set(sampler.step), sampler.step + 1)
        done = Dead(dead.position, dead.loglikelihood, born, jnp.array(True), info.update_info)
        return after, done

    def skipped(sampler):
        gone, _ = delete(sampler.state)
        dead, zero = sampler.state.particles, jnp.zeros((), jnp.int32)
        nothing = Walked(zero, zero, zero)
        return sampler, Dead(
            dead.position[gone],
            dead.loglikelihood[gone],
            sampler.born[gone],
            jnp.array(False),
            nothing,
        )

    def step(sampler, _):
        log_likelihood = sampler.state.particles.loglikelihood
        contour = jnp.sort(log_likelihood)[num_delete - 1]
        return jax.lax.cond(log_likelihood.max() > contour, made, skipped, sampler)

    return jax.lax.scan(step, sampler, None, num_steps)


def rounds_of(dim: int) -> int:
    """Return the steps uphill from each point."""
    return 50 + 30 * dim


@eqx.filter_jit
def ascend(
    stream: Stream,
    first: Array,
    x: Float[Array, "rows dim"],
    factor: Float[Array, "dim dim"],
    target: Target,
    offset: Float[Array, ""],
) -> Float[Array, ""]:
    """Return the highest log L - offset found from these points; its bits are of steps from `first`."""
    num_rows, dim = x.shape
    chains, patience = jnp.arange(num_rows), 1 + dim / 3

    def step(i, now):
        x, height, log_size = now
        normals = stream.at(first + i, chains).normals(dim, 0)
        move = jnp.matmul(normals, factor.T, precision=jax.lax.Precision.HIGHEST)
        other = x + jnp.exp(log_size)[:, None] * move
        _, log_likelihood = target(other, offset)
        is_higher = log_likelihood > height
        log_size = log_size + (is_higher - jnp.float32(0.2)) / patience
        x = jnp.where(is_higher[:, None], other, x)
        return x, jnp.where(is_higher, log_likelihood, height), log_size

    _, height = target(x, offset)
    start = (x, height, jnp.zeros(num_rows, jnp.float32))
    return jax.lax.fori_loop(0, rounds_of(dim), step, start)[1].max()
