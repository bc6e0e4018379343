"""The posterior that comes along with an estimate: weighted draws, by name, in the parameters' own space.

The last states of a forward run have made their last move at beta = 1, which leaves the target invariant,
so that for any g

    E[w g(x)] / E[w] = E_target[g],        mean g = sum_i W_i g(x_i),    W_i = w_i / sum_j w_j

a ratio of two means, with a bias of order 1 / ESS. Its error, to first order (the delta method), over n
groups that are independent of each other: chains, or islands where chains were resampled

    SE^2 = n / (n - 1) sum_groups (sum_{i in group} W_i (g(x_i) - mean g))^2

Resampled draws are systematic (`core/weights.py`) and in the order of their chains. Chain i is then drawn
n W_i times, within one, and its copies lie next to each other, so that their autocorrelation is that of the
weights: tools for Markov chains find sum_i n_i^2 / n copies per independent draw, and so an ESS of
1 / sum_i W_i^2.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from annealz.core.weights import effective_sample_size, resample
from annealz.diagnostics.sheet import Result, Sheet, Table, json_of
from annealz.diagnostics.status import Judged, Status
from annealz.models.layout import Parameters

_MOST_ROWS = 40  # that are shown
_UNRELIABLE = "the estimate that these draws come from is unreliable, and so are they."
Function = Callable[[Mapping[str, np.ndarray]], Any]


class Mean(NamedTuple):
    """A posterior mean and its Monte Carlo standard error: numbers, or arrays of one shape.

    Examples
    --------
    >>> import annealz
    >>> annealz.Mean(0.5, 0.01).std_err
    0.01
    """

    value: Any
    std_err: Any


@dataclasses.dataclass(frozen=True, repr=False)
class Posterior(Judged, Result):
    """Weighted draws of a density's parameters.

    Parameters
    ----------
    names : the parameters, in the order in which they are shown
    values : {name: (draws, ...)}
    log_weights : (draws,), up to a constant
    status : unreliable where the estimate is that they come from
    island_size : draws per island, where islands were resampled: draws of one island are not independent

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -0.5 * jnp.sum((x - 1) ** 2), dim=2)
    >>> options = {"schedule": "linear", "num_steps": 50, "num_chains": 50, "base": "standard"}
    >>> estimate = annealz.estimate_log_z(model, kernel=annealz.HAIS(step_size=0.5), **options)
    >>> mean = estimate.posterior.expectation("x")
    >>> bool((abs(mean.value - 1) < 5 * mean.std_err).all())
    True
    """

    names: tuple[str, ...]
    values: Mapping[str, np.ndarray]
    log_weights: np.ndarray
    status: Status = Status.OK
    island_size: int | None = None

    @classmethod
    def of(
        cls, parameters: Parameters, rows: np.ndarray, log_weights: np.ndarray, **more: Any
    ) -> Self:
        """Return draws of these parameters from rows (draws, dim) of unconstrained variables."""
        values = {name: np.asarray(value) for name, value in parameters.constrain(rows).items()}
        return cls(parameters.names, values, log_weights, **more)

    @property
    def num_draws(self) -> int:
        """The number of draws, that of chains."""
        return self.log_weights.size

    @property
    def weights(self) -> np.ndarray:
        """(draws,), with the sum 1."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()

    @property
    def ess(self) -> float:
        """(sum w)^2 / sum w^2, of the draws."""
        return effective_sample_size(self.log_weights)

    @property
    def notes(self) -> tuple[str, ...]:
        """A warning where the estimate is unreliable."""
        return () if self.status is Status.OK else (_UNRELIABLE,)

    def expectation(self, what: str | Function) -> Mean:
        """Return the posterior mean of a parameter, or of a function of all of them, with its error.

        A function is called once, with {name: (draws, ...)}, and returns (draws, ...).
        """
        mean, gaps, weights = self._centred(what)
        return Mean(_number(mean), _number(self._std_err(weights * gaps)))

    def std_dev(self, what: str | Function) -> Any:
        """Return the posterior standard deviation of the same."""
        _, gaps, weights = self._centred(what)
        return _number(np.sqrt((weights * gaps**2).sum(0)))

    def resampled(self, num_draws: int | None = None, seed: int = 0) -> dict[str, np.ndarray]:
        """Return {name: (num_draws, ...)} of equal weight, by default as many as there are chains.

        Copies of one draw lie next to each other, and are not independent: `ess` does not grow.
        """
        if num_draws is not None and num_draws < 1:
            raise ValueError(f"num_draws must be at least 1, got {num_draws}.")
        chosen = resample(self.log_weights, np.random.default_rng(seed), num_draws)
        return {name: self.values[name][chosen] for name in self.names}

    def table(self) -> Table:
        """Return a row for every number: its mean with the error, and the standard deviation."""
        rows: list[tuple[str, ...]] = []
        for name in self.names:
            columns = [np.asarray(part) for part in self._summary(name).values()]
            for index in np.ndindex(columns[0].shape):
                label = f"{name}[{', '.join(map(str, index))}]" if index else name
                digits = _digits(float(columns[1][index]))
                rows.append((label, *(f"{column[index]:.{digits}f}" for column in columns)))
        return Table(rows, ("parameter", "mean", "std. err.", "std. dev."))

    def sheet(self) -> Sheet:
        """Return what it shows: the first numbers, and how many there are more."""
        table = self.table()
        headline = ("posterior", f"{self.num_draws:,} weighted draws, ESS {self.ess:.1f}")
        rows, num_more = list(table.rows[:_MOST_ROWS]), len(table.rows) - _MOST_ROWS
        if num_more > 0:
            rows.append(("…", f"{num_more:,} more", "", ""))
        numbers = [headline, ("status", self.status.value)]
        return self.described(headline, numbers, table=Table(rows, table.headings))

    def to_dict(self) -> dict[str, Any]:
        """Return {name: mean, its error, the standard deviation} as JSON values."""
        return {name: json_of(self._summary(name)) for name in self.names}

    def _summary(self, name: str) -> dict[str, Any]:
        mean, std_err = self.expectation(name)
        return {"mean": mean, "std_err": std_err, "std_dev": self.std_dev(name)}

    def _centred(self, what: str | Function) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the mean of a name or a function, the distances from it, and weights of their shape.

        Draws of no weight, which may be infinite, count as zeros.
        """
        if isinstance(what, str):
            if what not in self.values:
                raise ValueError(
                    f"expectation must name a parameter, got {what!r}: choose one of "
                    f"{', '.join(self.names)}, or give a function of them."
                )
            given = self.values[what]
        elif callable(what):
            given = what(self.values)
        else:
            raise ValueError(
                "expectation takes the name of a parameter or a function of all of them, got "
                f"{type(what).__name__}."
            )
        rows = np.asarray(given, np.float64)
        if rows.shape[:1] != (self.num_draws,):
            raise ValueError(
                f"the function must return one value per draw, {self.num_draws} of them first, got shape "
                f"{rows.shape}: it is called once, with all draws of every parameter."
            )
        weights = self.weights.reshape(-1, *[1] * (rows.ndim - 1))
        rows = np.where(weights > 0, rows, 0.0)
        mean = (weights * rows).sum(0)
        return mean, rows - mean, weights

    def _std_err(self, parts: np.ndarray) -> np.ndarray:
        """Return the error of a mean, from W_i (g_i - mean) of every draw."""
        groups = parts.reshape(-1, self.island_size or 1, *parts.shape[1:]).sum(1)
        count = len(groups)
        if count < 2:
            return np.full(parts.shape[1:], np.inf)
        return np.sqrt(count / (count - 1) * (groups**2).sum(0))


def _digits(error: float) -> int:
    """Return the decimals that show two digits of an error."""
    if not 0 < error < np.inf:
        return 4
    return int(np.clip(1 - np.floor(np.log10(error)), 0, 8))


def _number(value: np.ndarray) -> Any:
    """Return a plain number instead of an array without axes."""
    return float(value) if np.ndim(value) == 0 else value
