"""Draws from p_B: nearly exact ones from a run, and those that a user has.

For models too large to enumerate, from a run:

    x_j ~ sum_i w_i delta(x_i) / sum_i w_i       last states of a forward run, resampled by weight
    x_j <- T_1 x_j, many times                   sweeps at beta = 1, every draw on its own

Both steps have p_B as their limit, in the number of chains and in the number of sweeps, and neither
is exact: a mode that the run has missed stays missed, and draws of one ancestor stay alike where sweeps
do not leave its mode. What starts from them (a reverse run, and the upper side of log Z with it) is
approximate and must be labelled so. Exact draws of enumerable models: `annealz.models.exact_samples`.

The chain that a draw comes from depends on the weights of the run and on the seed alone.

A user's are the trace of a Markov chain, as ArviZ, NumPyro or PyMC give it:

    {name: (chains, draws, ...)}  ->  rows (chains, draws, dim), unconstrained

Draws of one chain are alike. The effective number is the least bulk ESS over the unconstrained variables
(arviz_stats), chains that disagree counted as such. The first half of every chain fits a base, mean and 1.5
times the covariance, with all of its draws. Of the second half as many rows are kept, evenly spaced, as are
effective: about independent of each other, and of the fit. A reverse run that has more chains starts
several from one row; which one is known (`ancestors`), so that its error counts them as relatives.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from annealz.bases.gaussian import GaussianBase
from annealz.core.arrays import indices, on_device
from annealz.core.random import Stream, derive_seed
from annealz.core.weights import resample
from annealz.engine.blocks import gather, split_chains, states_like
from annealz.engine.checkpoint import Saver
from annealz.engine.loop import BlockProgram, take_steps
from annealz.engine.progress import Progress
from annealz.engine.run import Run
from annealz.kernels.abstract import AbstractKernel
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath
from annealz.pilots.run_at_beta import CAPACITY, run_at_beta

_LEAST = 20  # independent draws, for the base and for the reverse run each
_LEAST_PER_VARIABLE = 2  # for the base
_INFLATION = 1.5  # of the covariance
_LEAST_LENGTH = 8  # draws per chain


def approximate_draws(
    path: AbstractPath,
    kernel: AbstractKernel,
    run: Run,
    num_draws: int,
    *,
    num_sweeps: int = 100,
    seed: int = 0,
) -> np.ndarray:
    """States (draws, units) that are nearly those of p_B.

    Parameters
    ----------
    run : a forward run along `path`; its last states are where the draws come from
    num_sweeps : at beta = 1 after resampling; no fewer than the chains need to forget, where known
    seed : of resampling and sweeps; their streams are not those of the run

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> run = annealz.anneal(path, annealz.BlockGibbs(), annealz.linear(100), num_chains=100)
    >>> annealz.approximate_draws(path, annealz.BlockGibbs(), run, 50).shape
    (50, 6)
    """
    return draw_with_ancestors(path, kernel, run, num_draws, num_sweeps, seed)[0]


def draw_with_ancestors(
    path: AbstractPath,
    kernel: AbstractKernel,
    run: Run,
    num_draws: int,
    num_sweeps: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `approximate_draws` does, and which chain each draw comes from, (draws,)."""
    for name, value, least in (("num_draws", num_draws, 1), ("num_sweeps", num_sweeps, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}.")
    program = _Sweeps(kernel.extend(path), kernel, num_draws, num_sweeps, seed)
    generator = np.random.default_rng(derive_seed(seed, "draws", "resampling"))
    chosen = resample(run.log_weights, generator, num_draws)
    swept = take_steps(program, Saver(None, 0), draws=run.states[chosen]).blocks
    return gather(swept, num_draws), chosen


@dataclasses.dataclass(frozen=True)
class _Sweeps(BlockProgram):
    """Sweeps of every draw at beta = 1."""

    path: AbstractPath
    kernel: AbstractKernel
    num_draws: int
    num_steps: int
    seed: int

    @property
    def blocks(self) -> tuple[list[int], int]:
        return split_chains(self.num_draws)

    @property
    def given(self) -> tuple:
        return self.path, self.kernel, Stream(self.seed, "draws")

    def first(self, given: tuple, i: int, draws: np.ndarray) -> jax.Array:
        return on_device(draws)

    @property
    def like(self) -> jax.ShapeDtypeStruct:
        return states_like(self.path, self.blocks[1])

    def limit(self, step: int) -> int:
        return min(CAPACITY, self.num_steps - step)

    def advance(self, given: tuple, i: int, block: jax.Array, step: int, stop: int, *_: Any):
        path, kernel, stream = given
        chains = indices(len(block)) + np.int32(self.blocks[0][i])
        done = run_at_beta(path, kernel, stream, chains, block, 1.0, step, stop - step)
        return done[0], None

    def merge(self, step: int, stop: int, *_: Any):
        return [], Progress(stop, self.num_steps, np.nan, np.nan, "draws")


class TraceRows(NamedTuple):
    """Rows of unconstrained variables, by what they serve."""

    fit: np.ndarray
    """(rows, dim): the first half of every chain; none where no base is to be fitted."""
    reverse: np.ndarray  # (rows, dim), about independent of each other
    effective: float  # independent draws that the whole trace is worth


def is_trace(draws: Any) -> bool:
    """Whether these are draws by name, and not states of a path."""
    marks = ("posterior", "data_vars", "get_samples", "get_values")
    return isinstance(draws, Mapping) or any(hasattr(draws, mark) for mark in marks)


def rows_of_trace(model: AbstractModel, trace: Any, *, is_fitted: bool = True) -> TraceRows:
    """A trace of the model's parameters as rows; without a fit all of it serves the reverse run."""
    rows = _unconstrained(model, trace)  # (chains, draws, dim)
    num_chains, length, dim = rows.shape
    if length < _LEAST_LENGTH:
        raise ValueError(
            f"draws must hold at least {_LEAST_LENGTH} draws per chain, got {length}: sample longer."
        )
    with np.errstate(all="ignore"):
        from arviz_stats.base.array import array_stats  # it takes a second

        each = np.asarray(array_stats.ess(np.moveaxis(rows, 2, 0), method="bulk"))
    total = num_chains * length
    effective = float(min(np.nan_to_num(each, nan=0.0).min(), total))
    share = 0.5 if is_fitted else 1.0
    needed = max(_LEAST, _LEAST_PER_VARIABLE * dim if is_fitted else 0)
    if share * effective < needed:
        raise ValueError(
            f"draws must hold about {needed / share:.0f} independent draws, got {total:,} that are worth "
            f"{effective:.0f} (the least bulk ESS of {dim} variables): sample longer."
        )
    half = length // 2 if is_fitted else 0
    later = rows[:, half:]
    kept = min(max(round(share * effective / num_chains), 1), later.shape[1])
    pick = ((np.arange(kept) + 0.5) * later.shape[1] / kept).astype(int)
    return TraceRows(rows[:, :half].reshape(-1, dim), later[:, pick].reshape(-1, dim), effective)


def base_of_rows(rows: np.ndarray) -> GaussianBase:
    """The Gaussian of their mean, and of their covariance times 1.5."""
    covariance = np.atleast_2d(np.cov(rows, rowvar=False))
    return GaussianBase.from_moments(rows.mean(0), _INFLATION * covariance, name="draws")


def spread_over(rows: np.ndarray, num_chains: int) -> tuple[np.ndarray, int]:
    """(states (chains, dim), how many rows they are): chain j starts from row j modulo that number."""
    count = min(len(rows), num_chains)
    pick = np.arange(count) * len(rows) // count
    return rows[pick][np.arange(num_chains) % count], count


def _unconstrained(model: AbstractModel, trace: Any) -> np.ndarray:
    """(chains, draws, dim), float64."""
    parameters = getattr(model, "parameters", None)
    if parameters is None:
        raise ValueError(
            f"draws by name are of densities, and {model.name} has no named parameters: give states, an "
            "array (num_chains, variables)."
        )
    if parameters.unconstrain is None:
        raise ValueError(
            f"draws of {model.name} cannot be moved to its unconstrained variables: its transform has no "
            "inverse; give these variables, an array (num_chains, variables)."
        )
    dim: int = model.dim  # pyright: ignore[reportAttributeAccessIssue]
    shapes = {
        name: np.shape(value)[1:]
        for name, value in parameters.constrain(np.zeros((1, dim), np.float32)).items()
    }
    held = _held(trace)
    names = [name for name in parameters.names if name in held]
    if not names:
        raise _missing(parameters.names, held)
    values = {name: _grouped(name, held[name], shapes[name]) for name in names}
    sizes = {value.shape[:2] for value in values.values()}
    if len(sizes) > 1:
        raise ValueError(
            f"draws must have one number of chains and draws for all parameters, got {sorted(sizes)}."
        )
    num_chains, length = sizes.pop()
    flat = {name: value.reshape(-1, *shapes[name]) for name, value in values.items()}
    try:
        with np.errstate(all="ignore"):
            rows = np.asarray(parameters.unconstrain(flat), np.float64)
    except KeyError as error:  # one that the others do not determine
        raise _missing(parameters.names, flat) from error
    wrong = ~np.isfinite(rows).all(1)
    if wrong.any():
        raise ValueError(
            f"draws must lie inside the support of {', '.join(parameters.names)}, and "
            f"{int(wrong.sum()):,} of {len(rows):,} do not: give draws of this model."
        )
    return rows.reshape(num_chains, length, dim)


def _missing(names: tuple[str, ...], held: Iterable[Any]) -> ValueError:
    own = [str(name) for name in held]
    missing = [name for name in names if name not in own]
    return ValueError(
        f"draws must hold the parameters {', '.join(names)}, and {', '.join(missing)} is missing: got "
        f"{', '.join(own) or 'none'}."
    )


def _held(trace: Any) -> Mapping[Any, Any]:
    """What has a name in it."""
    if hasattr(trace, "get_samples"):  # NumPyro
        return trace.get_samples(group_by_chain=True)
    if hasattr(trace, "get_values"):  # a MultiTrace of PyMC
        return {
            name: np.stack(trace.get_values(name, combine=False, squeeze=False))
            for name in trace.varnames
        }
    if hasattr(trace, "posterior"):  # InferenceData, or a DataTree with such a group
        trace = trace.posterior
    elif isinstance(trace, Mapping) and hasattr(trace.get("posterior"), "data_vars"):
        trace = trace["posterior"]
    return getattr(trace, "data_vars", trace)


def _grouped(name: str, variable: Any, shape: tuple[int, ...]) -> np.ndarray:
    """(chains, draws, ...), also of named dimensions in another order; without chains it is one chain."""
    dims = getattr(variable, "dims", None)
    if dims is not None:
        if not {"chain", "draw"} <= {*dims}:
            raise ValueError(
                f"draws of {name} must have the dimensions chain and draw, got "
                f"{', '.join(map(str, dims))}."
            )
        variable = variable.transpose("chain", "draw", ...)
    values = np.asarray(variable)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"draws of {name} must be real numbers, got dtype {values.dtype}.")
    if values.ndim == len(shape) + 1:
        values = values[None]
    if values.ndim != len(shape) + 2 or values.shape[2:] != shape:
        raise ValueError(
            f"draws of {name} must have the shape (chains, draws{''.join(f', {n}' for n in shape)}), got "
            f"{values.shape}."
        )
    return values
