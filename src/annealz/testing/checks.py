"""Does a model, a path or a kernel keep its promises? Run these on your own.

Paths. At states drawn from the base,

    log_ratio(x, b0, b1)   =   log_density(x, b1) - log_density(x, b0)          to float32 rounding
    slope(x, b)            =   log_ratio(x, b - h, b + h) / 2h                  to its error in h

Kernels. With x drawn from the base and w = p*_beta(x) / p*_0(x), for any functions f and g

    E[w f(T .. T x)]       =   E[w f(x)]               T leaves p_beta invariant
    E[w f(x) g(T x)]       =   E[w g(x) f(R x)]        R is the reversal of T

so that no chain has to mix: both hold from exact draws, after five sweeps and after one. They are z-tests
over chains, for coordinates, projections and the slope, at the betas where a fifth of the weights is
effective; exact draws of the target add beta = 1. A right kernel fails one check in a million.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import numpy as np
from scipy import stats

from annealz.api import estimate_log_z
from annealz.core.arrays import indices, on_device
from annealz.core.random import Stream
from annealz.diagnostics.findings import Kind
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.problem import choose_problem
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath

_BETAS = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)
_EFFECTIVE = 0.2
_ALPHA = 1e-6
_NUM_PROJECTIONS = 2
_NUM_SWEEPS = 5
_NUM_COORDINATES = 4


def check_path(path: AbstractPath, *, num_states: int = 64, seed: int = 0) -> None:
    """AssertionError says in words what is wrong with a path."""
    who = type(path).__name__
    bits = Stream(seed, "check-path").at(0, indices(num_states))
    x = _call(path, "sample", bits)
    _require(
        x.shape[:1] == (num_states,),
        f"{who}.sample must give one state a chain, {num_states} of them, got shape {x.shape}.",
    )
    _require(np.isfinite(path.log_z0), f"{who}.log_z0 must be a finite number, got {path.log_z0}.")
    half = on_device(np.arange(0, num_states, 2), np.int32)
    same = _call(path, "sample", Stream(seed, "check-path").at(0, half))
    _require(
        np.allclose(np.asarray(same), np.asarray(x)[::2], atol=1e-5),
        f"{who}.sample must give a chain the same state whatever other chains there are: take all "
        "randomness from bits.",
    )
    for there, back in (("pack", "unpack"), ("store", "restore")):
        _require(
            np.array_equal(np.asarray(_call(path, back, _call(path, there, x))), np.asarray(x)),
            f"{who}.{back} must undo {there}, and the states changed.",
        )
    for low, high in ((0.0, 1.0), (0.0, 0.05), (0.3, 0.4), (0.9, 1.0)):
        start, end = (_values(path, "log_density", x, beta) for beta in (low, high))
        ratio = _values(path, "log_ratio", x, low, high)
        room = 1e-4 + 2e-5 * (np.abs(start) + np.abs(end))
        _require_near(
            ratio,
            end - start,
            room,
            f"{who}.log_ratio(x, {low:g}, {high:g}) must be the difference of log_density",
        )
    for beta in (0.1, 0.5, 0.9):
        wide, narrow = (
            _values(path, "log_ratio", x, beta - h, beta + h) / (2 * h) for h in (0.04, 0.02)
        )
        slope = _values(path, "slope", x, beta)
        room = 1e-3 * (1 + np.abs(narrow)) + np.abs(wide - narrow)
        _require_near(
            slope, narrow, room, f"{who}.slope(x, {beta:g}) must be the derivative of log_density"
        )


def check_kernel(
    kernel: AbstractKernel,
    path: AbstractPath,
    *,
    draws: np.ndarray | None = None,
    betas: Sequence[float] = _BETAS,
    num_chains: int = 8192,
    seed: int = 0,
) -> list[float]:
    """AssertionError says in words what is wrong with a kernel; the betas that could be checked.

    Parameters
    ----------
    draws : exact draws of the target, (draws, ...), which let beta = 1 be checked however far it is
    """
    kernel = kernel.tuned(kernel.extend(path), seed=seed, budget=4000).kernel
    path = kernel.extend(path)
    chains = indices(num_chains)
    x = _call(path, "sample", Stream(seed, "check-start").at(0, chains))
    starts = [(float(beta), x, _weights(path, x, beta)) for beta in betas]
    if draws is not None:
        own = indices(len(draws))
        y = path.state(Stream(seed, "check-draws").at(0, own), on_device(draws))
        starts = [start for start in starts if start[0] != 1] + [(1.0, y, np.ones(len(draws)))]
    done = []
    for beta, x, weights in starts:
        if weights.sum() ** 2 / (weights**2).sum() >= _EFFECTIVE * len(weights):
            _check_at(kernel, path, beta, x, weights / weights.mean(), seed)
            done.append(beta)
    return done


def check_model(
    model: AbstractModel, *, num_steps: int = 300, num_chains: int = 500, seed: int = 0
) -> None:
    """AssertionError says in words what is wrong with a model, its path or its kernel.

    Where the model knows its exact log Z, an estimate is compared with it.
    """
    who = type(model).__name__
    _require(isinstance(model.name, str) and bool(model.name), f"{who}.name must be some words.")
    digest = model.digest
    _require(
        isinstance(digest, str) and digest == model.digest,
        f"{who}.digest must be a string that does not change.",
    )
    try:
        model.choose_base("no such base")
    except ValueError:
        pass
    else:
        raise AssertionError(
            f"{who}.choose_base must refuse a name that it does not know by a ValueError."
        )
    for marginal in model.marginals:
        problem = choose_problem(model, marginal=marginal)
        path = problem.path
        check_path(path, seed=seed)
        draws = model.exact_draws(num_chains, seed, marginal) if model.has_exact_draws else None
        check_kernel(problem.kernel, path, draws=draws, seed=seed)
        again = choose_problem(model, marginal=marginal).path
        _require(
            path.log_z0 == again.log_z0, f"{who}.path must be the same whenever it is asked for."
        )
    exact = model.exact_log_z_if_cheap()
    if exact is not None:
        estimate = estimate_log_z(model, num_steps=num_steps, num_chains=num_chains, seed=seed)
        z = (estimate.log_z - exact) / max(estimate.std_err, 1e-4)
        others = set(estimate.findings) - {Kind.CONTRADICTS_EXACT}  # which is what is asked here
        _require(
            bool(abs(z) < stats.norm.isf(_ALPHA / 2)) or any(kind.is_fatal for kind in others),
            f"{who}: log Z was estimated as {estimate.log_z:.4f} ± {estimate.std_err:.4f}, and "
            f"exact_log_z_if_cheap gives {exact:.4f}: {abs(z):.1f} standard errors apart.",
        )


def _check_at(kernel: AbstractKernel, path, beta: float, x, weights: np.ndarray, seed: int) -> None:
    who = f"{type(kernel).__name__} at beta = {beta:g}"
    chains, b = indices(x.shape[0]), np.float32(beta)
    stream = Stream(seed, f"check-kernel {beta}")
    y = _call(kernel, "step", stream.at(1, chains), x, path, b)
    _require(
        y.shape == x.shape and y.dtype == x.dtype,
        f"{who} must return states like those it was given, {x.shape} {x.dtype}, got {y.shape} {y.dtype}.",
    )
    _require(bool(np.isfinite(y).all()), f"{who} made states that are not finite.")
    half = on_device(np.arange(0, x.shape[0], 2), np.int32)
    part = _call(
        kernel, "step", stream.at(1, half), on_device(np.asarray(x)[::2], x.dtype), path, b
    )
    same = np.isclose(np.asarray(part), np.asarray(y)[::2], rtol=1e-3, atol=1e-3)
    _require(
        bool(same.mean() > 0.99),
        f"{who} must move a chain in the same way whatever other chains there are: take all randomness "
        "from bits.",
    )
    features = _features(path, x, seed, b)
    f, g = features(x), features(y)
    for k in range(2, _NUM_SWEEPS + 1):
        y = _call(kernel, "step", stream.at(k, chains), y, path, b)
    _require_zero(weights[:, None] * (features(y) - f), f"{who} does not leave p_beta invariant")
    try:
        reverse = kernel.reversed()
    except ValueError:
        return  # a kernel need not define its reversal
    back = features(_call(reverse, "step", stream.at(_NUM_SWEEPS + 1, chains), x, path, b))
    _require_zero(
        weights[:, None] * (back - f), f"the reversal of {who} does not leave p_beta invariant"
    )
    rows, columns = np.triu_indices(f.shape[1], 1)
    there, home = f[:, rows] * g[:, columns], back[:, rows] * f[:, columns]
    _require_zero(
        weights[:, None] * (there - home), f"{who} has a reversed() that is not its reversal"
    )


@eqx.filter_jit
def _call(thing: AbstractPath | AbstractKernel, method: str, *arguments):
    return getattr(thing, method)(*arguments)


def _features(path: AbstractPath, x, seed: int, beta) -> Callable[[jax.Array], np.ndarray]:
    """States -> (chains, features) of about unit size: coordinates, projections, squares, the slope."""
    flat = np.asarray(x, np.float64).reshape(x.shape[0], -1)
    centre, size = flat.mean(0), np.maximum(flat.std(0), 1e-6)
    width = flat.shape[1]
    generator = np.random.default_rng(seed)
    directions = generator.normal(0, 1 / np.sqrt(width), (width, _NUM_PROJECTIONS))
    chosen = np.unique(np.linspace(0, width - 1, _NUM_COORDINATES).astype(int))

    def raw(x) -> np.ndarray:
        rows = (np.asarray(x, np.float64).reshape(x.shape[0], -1) - centre) / size
        projected = rows @ directions
        slope = np.asarray(_call(path, "slope", x, beta), np.float64)[:, None]
        return np.concatenate([rows[:, chosen], projected, projected**2, slope], axis=1)

    first = raw(x)
    mean, spread = first.mean(0), np.maximum(first.std(0), 1e-6)
    return lambda x: (raw(x) - mean) / spread


def _weights(path: AbstractPath, x, beta: float) -> np.ndarray:
    ratio = _call(path, "log_ratio", x, np.float32(0), np.float32(beta))
    ratio = np.asarray(ratio, np.float64)
    return np.exp(ratio - ratio.max())


def _values(path: AbstractPath, method: str, x, *betas: float) -> np.ndarray:
    out = _call(path, method, x, *(np.float32(beta) for beta in betas))
    who = f"{type(path).__name__}.{method}"
    _require(
        out.shape == x.shape[:1],
        f"{who} must give one number per chain, {x.shape[:1]}, got shape {out.shape}.",
    )
    values = np.asarray(out, np.float64)
    _require(bool(np.isfinite(values).all()), f"{who} gave numbers that are not finite.")
    return values


def _require(condition: bool, words: str) -> None:
    if not condition:
        raise AssertionError(words)


def _require_near(got: np.ndarray, wanted: np.ndarray, room: np.ndarray, words: str) -> None:
    worst = int(np.argmax(np.abs(got - wanted) - room))
    if abs(got[worst] - wanted[worst]) > room[worst]:
        raise AssertionError(
            f"{words}: at state {worst} it is {got[worst]:.6g} and should be {wanted[worst]:.6g}."
        )


def _require_zero(values: np.ndarray, words: str) -> None:
    """z-tests of the columns' means against 0, all together at the level of one in a million."""
    mean, error = values.mean(0), values.std(0) / np.sqrt(len(values))
    moving = error > 0
    z = np.where(moving, mean / np.where(moving, error, 1), np.where(np.abs(mean) > 0, np.inf, 0))
    limit = stats.norm.isf(_ALPHA / 2 / z.size)
    worst = int(np.argmax(np.abs(z)))
    if not np.abs(z[worst]) <= limit:
        raise AssertionError(
            f"{words}: a mean that should be 0 is {mean[worst]:.3g}, {abs(z[worst]):.1f} standard errors "
            f"away (feature {worst} of {z.size}; at most {limit:.1f} by chance)."
        )
