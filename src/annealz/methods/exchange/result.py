"""The result of replica exchange: its rounds, log Z with its error, and whether to trust it.

A file holds it as named arrays, one row per round, beside a JSON record.
"""

import dataclasses
import functools
from typing import Any, Self

import numpy as np
from scipy.special import stdtrit

from annealz.core.cost import Cost
from annealz.core.numerics import with_error
from annealz.diagnostics.exchange import judge_exchange
from annealz.diagnostics.findings import Findings
from annealz.diagnostics.sheet import Sheet, Shown, View, record_of
from annealz.diagnostics.status import Found, check_level
from annealz.engine.run import RUN
from annealz.io.archive import real_numbers
from annealz.io.records import Record

_NEEDED = ("log_z0", "seed", "purpose", "seconds", "messages", "num_filling")
_RECORD = Record("the record of a run of replica exchange", {n: RUN.needed[n] for n in _NEEDED})
_OF_ROUNDS = ("betas", "rejections", "log_ratios", "values", "half_values", "round_trips")


@dataclasses.dataclass(frozen=True)
class Round:
    """One round: its ladder, what was measured on it, and the log Z that it gives by itself."""

    num_sweeps: int
    betas: np.ndarray
    """(num_rungs,)."""
    rejections: np.ndarray
    """(num_rungs - 1,): mean probability that a swap of neighbours is refused."""
    log_ratios: np.ndarray
    """(num_rungs - 1,): log Z_{r+1} / Z_r."""
    log_z0: float
    values: np.ndarray
    """(ensembles,): jackknife pseudo-values of log Z, whose standard error is that of `log_z`."""
    half_values: np.ndarray
    """(2, ensembles): the same from the first and from the second half of the sweeps."""
    round_trips: np.ndarray
    """(ensembles,): from base to target and back, completed by any replica within the round."""

    @property
    def log_z(self) -> float:
        """From this round alone."""
        return float(self.log_z0 + self.log_ratios.sum())

    @property
    def std_err(self) -> float:
        """Over ensembles; infinite where there is only one."""
        if self.values.size < 2:
            return np.inf
        return float(self.values.std(ddof=1) / np.sqrt(self.values.size))

    @property
    def barrier(self) -> float:
        """The communication barrier: the sum of the rejections."""
        return float(self.rejections.sum())


@dataclasses.dataclass(frozen=True, repr=False)
class Exchange(Found, Shown):
    """Independent ensembles of replicas that exchanged their betas; log Z is that of the last round.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = random_rbm(4, 6).path(annealz.BernoulliBase.uniform(6))
    >>> options = {"num_rungs": 6, "num_ensembles": 16, "num_sweeps": 400}
    >>> result = annealz.exchange(path, annealz.BlockGibbs(), **options)
    >>> result.betas.shape, [round.num_sweeps for round in result.rounds]
    ((6,), [100, 100, 200])
    """

    rounds: tuple[Round, ...]
    log_z0: float
    """log Z of the base, exact."""
    seed: int
    purpose: str
    draws: np.ndarray
    """(draws, ...): the model's variables at beta = 1, evenly over the last round and all ensembles."""
    seconds: float
    num_filling: int = 0
    """Replicas that were computed beside these, to fill the last block."""
    extra_messages: tuple[str, ...] = ()

    @property
    def last(self) -> Round:
        """The round that gives the estimate."""
        return self.rounds[-1]

    @property
    def log_z(self) -> float:
        """Natural logarithm, of the last round."""
        return self.last.log_z

    @property
    def std_err(self) -> float:
        """Standard error of `log_z`, over ensembles."""
        return self.last.std_err

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return Student's confidence interval of log Z, over ensembles."""
        check_level(level)
        if self.num_ensembles < 2:
            return -np.inf, np.inf
        half = float(stdtrit(self.num_ensembles - 1, (1 + level) / 2)) * self.std_err
        return self.log_z - half, self.log_z + half

    @property
    def betas(self) -> np.ndarray:
        """(num_rungs,): the last ladder."""
        return self.last.betas

    @property
    def barrier(self) -> float:
        """The communication barrier, from the last round."""
        return self.last.barrier

    @property
    def round_trips(self) -> int:
        """In the last round, of all ensembles together."""
        return int(self.last.round_trips.sum())

    @property
    def num_rungs(self) -> int:
        """R."""
        return self.last.betas.size

    @property
    def num_ensembles(self) -> int:
        """How many there are, independent of each other."""
        return self.last.values.size

    @property
    def num_sweeps(self) -> int:
        """The sweeps of every replica, in all rounds together."""
        return sum(one.num_sweeps for one in self.rounds)

    @property
    def sweeps(self) -> int:
        """Applications of the kernel to one replica."""
        return self.num_sweeps * self.num_rungs * self.num_ensembles

    def cost(self, each: int | None) -> Cost:
        """Return its cost, with `each` evaluations of a density per sweep, None if they are not counted.

        Replicas that fill the last block are evaluated too, and each once where it starts.
        """
        count = self.num_rungs * self.num_ensembles + self.num_filling
        evaluations = 0 if each is None else (each * self.num_sweeps + 1) * count
        return Cost(self.sweeps, evaluations, self.seconds)

    @functools.cached_property
    def findings(self) -> Findings:  # pyright: ignore[reportIncompatibleVariableOverride]
        """All that speaks against the estimate."""
        return judge_exchange(self.rounds)

    @property
    def messages(self) -> tuple[str, ...]:
        """Findings, and what to do about them; nothing where all is well."""
        return (*super().messages, *self.extra_messages)

    def table(self) -> list[dict[str, Any]]:
        """Return the rounds, for people and programs: sweeps, barrier, log Z, its error, round trips."""
        return [
            {
                "sweeps": one.num_sweeps,
                **record_of(one, "barrier log_z std_err"),
                "round_trips": int(one.round_trips.sum()),
            }
            for one in self.rounds
        ]

    plot_ladder = View("plots.results.plot_ladder")
    """Draw the ladder and the barrier along beta; return the matplotlib axes."""
    plot_rounds = View("plots.results.plot_rounds")
    """Draw log Z of every round with its error; return the matplotlib axes."""

    def sheet(self) -> Sheet:
        """Return what it shows."""
        headline = ("log Z", with_error(self.log_z, self.std_err))
        rows = [
            headline,
            ("ladder", f"{self.num_rungs} temperatures, barrier {self.barrier:.2f}"),
            ("round trips", f"{self.round_trips:,} in {self.num_ensembles} ensembles"),
            ("log Z of the base", f"{self.log_z0:.4f}"),
            ("seed", f"{self.seed}, {self.purpose}"),
            ("cost", f"{self.sweeps:,} sweeps, {self.seconds:.1f} s"),
            ("status", self.status.value),
        ]
        return self.described(headline, rows, notes=self.messages)

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the result as named arrays and a JSON record."""
        arrays = {name: np.stack([getattr(r, name) for r in self.rounds]) for name in _OF_ROUNDS}
        arrays["num_sweeps"] = np.array([one.num_sweeps for one in self.rounds])
        arrays["draws"] = self.draws
        record = record_of(self, "log_z0 seed purpose seconds num_filling")
        return arrays, {**record, "messages": list(self.extra_messages)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], record: dict[str, Any]) -> Self:
        """Return the result as it was; a ValueError says what is wrong with it."""
        record, what = _RECORD.check(record), "a stored run"
        own = {name: record[name] for name in ("log_z0", "seed", "purpose", "seconds")}
        counts = real_numbers(arrays, "num_sweeps", what, num_axes=1)
        columns = {n: real_numbers(arrays, n, what, length=len(counts)) for n in _OF_ROUNDS}
        if not len(counts) or any(column.ndim < 2 for column in columns.values()):
            raise ValueError(f"{what} is damaged: its rounds cannot be separated.")
        rounds = tuple(
            Round(int(count), log_z0=own["log_z0"], **{n: c[i] for n, c in columns.items()})
            for i, count in enumerate(counts)
        )
        return cls(
            rounds,
            draws=real_numbers(arrays, "draws", what),
            num_filling=record["num_filling"],
            extra_messages=tuple(record["messages"]),
            **own,
        )
