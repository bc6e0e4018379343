"""What the engine returns: log weights, traces along the path, and what they cost.

    forward   log w = sum_k log p*_{beta_k}(v_{k-1}) - log p*_{beta_{k-1}}(v_{k-1})      E[w] = Z_B / Z_A
    reverse   log w = sum_k log p*_{beta_{k-1}}(v_{k-1}) - log p*_{beta_k}(v_{k-1})      E[w] = Z_A / Z_B

    log Z = log Z_A + log mean w, biased low;        in reverse log Z_A - log mean w, biased high

The trace holds on-the-fly statistics at the recorded steps: `log_z` estimates log Z of p*_beta,
`ess` is (sum w)^2 / sum w^2 = N / (1 + s^2), s^2 the variance of N w / sum w. In reverse steps are
counted from the target, betas fall, and `log_z` is tied to log Z_A where the run ends:

    forward   log Z_A + log mean w_k,      reverse   log Z_A + log mean w_k - log mean w at the end

Of a resampled run the mean of w over an island is unbiased, islands are independent, and chains of
one island are not (`resampling.py`); the trace's `ess` is that before the step's resampling.
"""

import dataclasses
from typing import Any, NamedTuple, Self

import numpy as np

from annealz.core.cost import Cost
from annealz.core.numerics import with_error
from annealz.diagnostics.diagnostics import judge, judge_islands
from annealz.diagnostics.sheet import Sheet, Shown, data_frame
from annealz.io.archive import real_numbers
from annealz.io.records import Record, finite, flag, list_of, optional, text, whole
from annealz.schedules.schedule import Schedule

RUN = Record(
    "the record of a run",
    {
        "log_z0": finite,
        "seed": whole,
        "purpose": text,
        "seconds": finite,
        "messages": list_of(text),
        "is_reverse": flag,
        "island_size": optional(whole),
        "num_resamplings": whole,
        "num_filling": whole,
    },
)
_COLUMNS = ("steps", "betas", "log_z", "ess")
_WHAT = "a stored run"


@dataclasses.dataclass(frozen=True)
class Trace:
    """On-the-fly statistics at the recorded steps; `means` and `variances` by observer name."""

    steps: np.ndarray
    betas: np.ndarray
    log_z: np.ndarray
    ess: np.ndarray
    means: dict[str, np.ndarray]
    variances: dict[str, np.ndarray]

    def __repr__(self) -> str:
        """Return the trace in short: the arrays are long."""
        if not self.steps.size:
            return "Trace of no records"
        return (
            f"Trace of {self.steps.size:,} records, steps {self.steps[0]:,} to {self.steps[-1]:,}: log Z "
            f"{self.log_z[-1]:.4f}, ESS {self.ess[-1]:.1f} at the last; means and variances of "
            f"{', '.join(self.means) or 'nothing'}"
        )

    def to_pandas(self):
        """Return a pandas table, one row per recorded step, with those observables that are numbers."""
        columns = {"step": self.steps, "beta": self.betas, "log_z": self.log_z, "ess": self.ess}
        for name, mean in self.means.items():
            if mean.ndim == 1:
                columns[f"{name}_mean"] = mean
                columns[f"{name}_variance"] = self.variances[name]
        return data_frame(columns)


@dataclasses.dataclass(frozen=True, repr=False)
class Run(Shown):
    """One annealing of `num_chains` chains over a frozen schedule, independent unless resampled.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> run = annealz.anneal(path, annealz.BlockGibbs(), annealz.linear(100), num_chains=100)
    >>> run.num_chains, run.num_steps, run.sweeps
    (100, 100, 10000)
    """

    log_weights: np.ndarray
    """(chains,), float64: log w, so that E[w] = Z_B / Z_A; in reverse Z_A / Z_B."""
    log_z0: float
    """log Z_A, of beta = 0, exact, in either direction."""
    schedule: Schedule
    seed: int
    purpose: str
    trace: Trace
    states: np.ndarray
    """(chains, …): where the chains ended, after the last move; binary ones as bytes."""
    carries: dict[str, Any]
    """What each observer carried to the end, chain axis first."""
    seconds: float
    messages: tuple[str, ...] = ()
    is_reverse: bool = False
    """Whether it went from the target down to the base."""
    island_size: int | None = None
    """Chains an island, of a run that was allowed to resample."""
    num_resamplings: int = 0
    """How often an island was resampled, all islands together."""
    num_filling: int = 0
    """Chains that were computed beside these, to fill the last block."""
    ancestors: np.ndarray | None = None
    """(chains,): which chain of the forward run each chain of a reverse run comes from, where known."""

    @property
    def num_chains(self) -> int:
        """N."""
        return self.log_weights.size

    @property
    def num_steps(self) -> int:
        """K."""
        return self.schedule.num_steps

    @property
    def sweeps(self) -> int:
        """Applications of the kernel to one chain; in reverse one more, at the start."""
        return (self.num_steps + self.is_reverse) * self.num_chains

    def cost(self, each: int | None) -> Cost:
        """Return its cost, with `each` evaluations of a density per sweep, None if they are not counted.

        Chains that fill the last block are evaluated too, and forward chains once where they start.
        """
        count, evaluations = self.num_chains + self.num_filling, 0
        if each is not None:
            evaluations = each * (self.num_steps + self.is_reverse) * count
            evaluations += 0 if self.is_reverse else count
        return Cost(self.sweeps, evaluations, self.seconds)

    @property
    def work(self) -> np.ndarray:
        """(chains,): log w, in reverse -log w; E_forward <= log Z_B / Z_A <= E_reverse."""
        return -self.log_weights if self.is_reverse else self.log_weights

    def sheet(self) -> Sheet:
        """Return what it shows: the log Z of its weights alone, and how it was made."""
        is_alone = self.island_size is None
        found = judge(self.log_weights) if is_alone else judge_islands(self.island_log_means)
        sign = -1 if self.is_reverse else 1
        headline = ("log Z", with_error(self.log_z0 + sign * found.log_mean, found.std_err))
        rows = [
            headline,
            ("direction", "from the target down" if self.is_reverse else "from the base up"),
            ("chains", f"{self.num_chains:,}"),
            ("schedule", f"{self.schedule.name}, {self.num_steps:,} steps"),
            ("log Z of the base", f"{self.log_z0:.4f}"),
            ("seed", f"{self.seed}, {self.purpose}"),
            ("cost", f"{self.sweeps:,} sweeps, {self.seconds:.1f} s"),
            ("status", found.status.value),
        ]
        notes = (*found.findings.values(), *self.messages)
        return self.described(headline, rows, status=found.status, notes=notes)

    @property
    def shares(self) -> np.ndarray:
        """(chains,): of all weight."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()

    def to_pandas(self):
        """Return log w of every chain, and its share of all weight, as a pandas table."""
        return data_frame({"log_weight": self.log_weights, "weight": self.shares}, index="chain")

    @property
    def island_log_means(self) -> np.ndarray:
        """log of the mean weight of every island: independent, each mean unbiased.

        Without islands every chain is one.
        """
        if self.island_size is None:
            return self.log_weights
        islands = self.log_weights.reshape(-1, self.island_size)
        largest = islands.max(1)
        return largest + np.log(np.exp(islands - largest[:, None]).mean(1))

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return named arrays and a JSON record: all but its schedule and what observers carried."""
        trace = self.trace
        arrays = {
            "log_weights": self.log_weights,
            "states": self.states,
            **{f"trace:{name}": getattr(trace, name) for name in _COLUMNS},
            **{f"mean:{name}": value for name, value in trace.means.items()},
            **{f"variance:{name}": value for name, value in trace.variances.items()},
        }
        if self.ancestors is not None:
            arrays["ancestors"] = self.ancestors
        record = {name: getattr(self, name) for name in RUN.needed}
        return arrays, {**record, "messages": list(self.messages)}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], record: dict[str, Any], schedule: Schedule
    ) -> Self:
        """Return the run, without what observers carried; a ValueError says what is wrong with it."""
        checked = RUN.check(record)
        record = {name: checked[name] for name in RUN.needed}
        log_weights = real_numbers(arrays, "log_weights", _WHAT, num_axes=1)
        count, size = len(log_weights), record["island_size"]
        if size is not None and (size < 1 or count % size):
            raise ValueError(f"{_WHAT} is damaged: {count} chains make no islands of {size}.")
        length = len(real_numbers(arrays, "trace:steps", _WHAT, num_axes=1))
        if not count or length > schedule.num_steps + 1:
            raise ValueError(
                f"{_WHAT} is damaged: it has {count} chains and {length} recorded steps."
            )
        columns = {
            name: real_numbers(arrays, f"trace:{name}", _WHAT, num_axes=1, length=length)
            for name in _COLUMNS
        }
        means, variances = (
            {
                key.removeprefix(kind): real_numbers(arrays, key, _WHAT, length=length)
                for key in arrays
                if key.startswith(kind)
            }
            for kind in ("mean:", "variance:")
        )
        ancestors = None
        if "ancestors" in arrays:
            ancestors = real_numbers(arrays, "ancestors", _WHAT, num_axes=1, length=count)
        record["messages"] = tuple(record["messages"])
        return cls(
            log_weights=log_weights,
            schedule=schedule,
            trace=Trace(**columns, means=means, variances=variances),
            states=real_numbers(arrays, "states", _WHAT, length=count),
            carries={},
            ancestors=ancestors,
            **record,
        )


class Runs(NamedTuple):
    """The runs of one estimate."""

    forward: Run
    reverse: Run | None = None
    second: Run | None = None
    """Forward, from a second base."""
    probe: Run | None = None
    """From where some of the second ended, in reverse along the first path."""
    failure: str | None = None
    """Why the second opinion could not be computed, in a sentence."""
