"""Where to start, and where to start a second time: bases found by pilots.

No single base is safe. A model's visible bias may lie where the model has no mass, and the weights look
perfect all the same; from the uniform base some modes are out of reach. What one base misses another one
often finds, so

    1   from every base that the model names, some chains are annealed (`scout`), and along the path from
        the flat one replicas are exchanged (`exchanged`), which cross between modes;
    2   to their states, with flattened weights, a mixture is fitted (`bases/fit_mixture.py`);
    3   from that mixture some chains are annealed again, and the mixture is fitted to where all ended;
    4   a product is fitted to the same states; and of all these bases one is taken.

A pilot's states count in proportion to the mass that it found, its estimate of Z. Fitted to states of
exchange as well, the mixture of mnist-cd1-20 leaves 0.85 to 0.94 of the chains effective; without them
0.1 to 0.7.

Mass is compared by log Z: every pilot's Z-hat is unbiased and P(log Z-hat > log Z + b) <= e^-b, so a base
whose log Z is clearly the smaller misses something and is not taken. Cost is (∫ √(g tau))^2, the predicted
K Var[log w]; a pilot whose weights are worse than its survey predicts is charged for what they say.

A wide base that is cheap enough is the safest, because its chains start everywhere: of the named bases
that cost less than 0.3 K the first is taken (the flat one, where it is among them). Else the mixture, which
has seen what all pilots found; else, where that costs more than K / 2, the cheapest.

The second base is unlike the first: a fitted one beside a named one, a named one beside a fitted one, among
those that find the mass. A share of the chains starts there (`second_opinion.py`). All chains of pilots use
streams of their own and enter no weight.
"""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.bases.bernoulli import BernoulliBase
from annealz.bases.fit_mixture import fit_mixture
from annealz.bases.mixture import MixtureBase
from annealz.core.cost import Cost
from annealz.core.names import FITTED
from annealz.core.random import derive_seed
from annealz.core.units import AbstractUnits, BernoulliUnits
from annealz.core.weights import delta_std_err, effective_sample_size, flattened, log_mean
from annealz.engine.anneal import anneal
from annealz.engine.progress import OnProgress, in_stage
from annealz.engine.resampling import island_unit
from annealz.engine.run import Run
from annealz.kernels.abstract import AbstractKernel
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath
from annealz.paths.tempered import ZERO_DENSITY
from annealz.pilots.survey_mixing import LEAST_BUDGET, survey_mixing
from annealz.schedules.rules import mixing
from annealz.schedules.terrain import Terrain

_SURVEY_SHARE, _PILOT_SHARE = 0.005, 0.05  # of the run's sweeps, for every base that is tried
PILOT_CHAINS = 200
_SECOND_SHARE, _LEAST_SECOND = 10, 100  # first chains for each second one; second chains at least
_LEAST_STEPS, _MOST_STEPS = 100, 5000
_NUM_RUNGS, _NUM_ENSEMBLES, _NUM_DRAWS = 24, 8, 400  # of the exchange
_LEAST_EXCHANGE = 500  # sweeps of every replica; fewer cross nothing
_KEPT = 0.3  # of the pilots' chains stay effective when their weights are flattened
_MISSES = 0.02  # nats, and 3 standard errors, below the largest log Z: something is missed
_EASY, _CHEAP = 0.3, 0.5  # Var[log w] of the run to come: from a named base, from a mixture
_WIDE_PRICE = 4.0  # a named base must be so much cheaper than a fitted one, where none is easy


@dataclasses.dataclass(frozen=True)
class Scout:
    """A base that was tried, and what was seen from it."""

    base: AbstractBase
    path: AbstractPath
    terrain: Terrain
    log_z: float  # by a pilot: rough, and low where the base misses something
    std_err: float
    run: Run | None = None
    spent: Cost = Cost()

    @property
    def name(self) -> str:
        return getattr(self.base, "name", "base")

    @property
    def cost(self) -> float:
        """Predicted K Var[log w]: by the survey, or by the weights of the pilot where these are worse."""
        predicted = mixing(self.terrain, 1).provenance["predicted_variance"]
        if self.run is None:
            return predicted
        size, ess = self.run.num_chains, effective_sample_size(self.run.log_weights)
        return max(predicted, self.run.num_steps * float(np.log(size / ess)))

    @property
    def found(self) -> "_Found":
        """Where its chains ended."""
        assert self.run is not None
        log_masses = self.run.log_z0 + self.run.log_weights - np.log(self.run.num_chains)
        return _Found(np.asarray(self.path.position(self.run.states)), log_masses)


class _Found(NamedTuple):
    """States of the model, each with the log of its part of Z."""

    states: np.ndarray
    log_masses: np.ndarray


@dataclasses.dataclass(frozen=True)
class BaseChoice:
    """The first and the second base, with what led to them."""

    first: Scout | None  # None where the base was given
    second: Scout | None  # None where no unlike base is known
    tried: tuple[Scout, ...]
    cost: Cost
    is_cut: bool = False  # whether a time limit left bases untried

    @property
    def states(self) -> np.ndarray:
        """Where chains of its pilots ended with weight; empty where there were none."""
        found = [one.found for one in self.tried if one.run is not None]
        alive = [one.states[one.log_masses > ZERO_DENSITY / 2] for one in found]
        return np.concatenate(alive) if alive else np.empty((0, 0))

    @property
    def reason(self) -> str | None:
        """Why the first one, in words; nothing where it was given."""
        if self.first is None:
            return None
        rest = ", ".join(
            f"{one.name} {one.cost:.3g} and {one.log_z:.1f}"
            for one in self.tried
            if one is not self.first
        )
        return (
            f"{self.first.name}: predicted K Var[log w] {self.first.cost:.3g}, log Z of the pilot "
            f"{self.first.log_z:.1f}" + (f"; the others {rest}" if rest else "")
        )


@dataclasses.dataclass
class BaseSearch:
    """The search for bases of a model of which nothing else is known.

    `num_steps` and `num_chains` are those of the run to come: the pilots take about a third of its sweeps.
    After the `deadline`, by `time.monotonic`, no further base is tried.
    """

    model: AbstractModel
    marginal: str
    kernel: AbstractKernel
    seed: int = 0
    num_steps: int = 10_000
    num_chains: int = 1000
    on_progress: OnProgress | None = None
    deadline: float | None = None
    cost: Cost = dataclasses.field(default=Cost(), init=False)  # of all pilots so far
    is_cut: bool = dataclasses.field(default=False, init=False)
    began: float = dataclasses.field(default_factory=time.monotonic, init=False)

    def both(self, *, is_fitted: bool = False) -> BaseChoice:
        """Choose the first and the second base; the first is a fitted one with `is_fitted`."""
        named: list[Scout] = []
        for name, make in self.model.named_bases().items():
            if not named or not self._is_late:
                named.append(self.scout(make(), name))
        seen, drawn = [one.found for one in named], self._exchanged()
        fitted = self._fits(seen if drawn is None else [*seen, drawn], is_needed=is_fitted)
        first = _first([] if is_fitted else named, fitted, self.num_steps)
        second = _second(first, named, fitted, self.num_steps)
        return self._choice(first, second, *named, *fitted)

    def second(self, first: AbstractBase) -> BaseChoice:
        """Choose the second base beside a known one: another that the model names, or one fitted."""
        if self._is_late:
            return self._choice(None, None)
        named = ((name, make()) for name, make in self.model.named_bases().items())
        others = [(name, base) for name, base in named if base.digest != first.digest]
        tried: list[Scout] = []
        for name, base in others:
            if not tried or not self._is_late:
                tried.append(self.scout(base, name, with_run=False))
        if not others:
            base = self.fitted([self.scout(first, "first").found], "fit")
            tried = [self.scout(base, "fitted", with_run=False)]
        return self._choice(None, max(tried, key=lambda one: one.log_z), *tried)

    def scout(self, base: AbstractBase, word: str, *, with_run: bool = True) -> Scout:
        """Try a base: survey its path, and anneal some chains along it."""
        seed, path = derive_seed(self.seed, "base", word), self.path(base)
        common: dict[str, Any] = {"seed": seed, "on_progress": in_stage(self.on_progress, "base")}
        budget = max(LEAST_BUDGET, int(_SURVEY_SHARE * self._sweeps))
        terrain = survey_mixing(path, self.kernel, budget=budget, **common)
        log_z, std_err, run = terrain.provenance["log_z"], np.inf, None
        spent = terrain.pilot_cost(self.kernel)
        if with_run:
            num_chains = min(self.num_chains, PILOT_CHAINS)
            steps = int(_PILOT_SHARE * self._sweeps / num_chains)
            schedule = mixing(terrain, int(np.clip(steps, _LEAST_STEPS, _MOST_STEPS)))
            common |= {"num_chains": num_chains, "purpose": "pilot"}
            run = anneal(path, self.kernel, schedule, **common)
            log_z = run.log_z0 + log_mean(run.log_weights)
            std_err = delta_std_err(run.log_weights)
            spent += run.cost(self.kernel.evaluations)
        self.cost += spent
        return Scout(base, path, terrain, float(log_z), float(std_err), run, spent)

    def path(self, base: Any) -> AbstractPath:
        """Return the model's path from a base."""
        return self.model.path(base, self.marginal)

    def fitted(self, found: Sequence[_Found], word: str, **options: int) -> AbstractBase:
        """Fit a mixture to what these pilots found; a product where `most` is 1."""
        log_masses = np.concatenate([one.log_masses for one in found])
        states = np.concatenate([one.states for one in found])
        flat: Any = self.model.flat_base()
        weights = flattened(log_masses, _KEPT * log_masses.size)
        fit = fit_mixture(
            units_of(self.path(flat)),
            states,
            weights,
            seed=derive_seed(self.seed, "base", word),
            name=FITTED[1] if options.get("most") == 1 else FITTED[0],
            **options,
        )
        is_plain = fit.num_components == 1 and self.marginal == "visible"
        is_plain &= isinstance(flat, BernoulliBase) and isinstance(fit.units, BernoulliUnits)
        if is_plain and flat.num_units == fit.num_units:
            return BernoulliBase.from_logits(fit.logits[0], fit.name)  # whose programs are there
        return fit

    def _fits(self, seen: list[_Found], *, is_needed: bool) -> list[Scout]:
        """Fit bases to what was seen: a rough one, which is a way to the others; these if there is time."""
        if not is_needed and self._is_late:
            return []
        rough = self.scout(self.fitted(seen, "rough fit"), "rough")
        if self._is_late:
            return [rough]
        seen = [*seen, rough.found]
        base = self.fitted(seen, "fit")
        fits = [self.scout(base, "fitted")]
        if isinstance(base, MixtureBase) and base.num_components > 1 and not self._is_late:
            fits.append(self.scout(self.fitted(seen, "product", most=1), "product"))
        return fits

    def _exchanged(self) -> _Found | None:
        """Exchange replicas between the flat base and the model; not where they have too few sweeps."""
        num_sweeps = int(_PILOT_SHARE * self._sweeps) // (_NUM_RUNGS * _NUM_ENSEMBLES)
        if num_sweeps < _LEAST_EXCHANGE or self._is_late:
            return None
        from annealz.methods.exchange.exchange import exchange

        crossed = exchange(
            self.path(self.model.flat_base()),
            self.kernel,
            num_rungs=_NUM_RUNGS,
            num_ensembles=_NUM_ENSEMBLES,
            num_sweeps=min(num_sweeps, _MOST_STEPS),
            num_draws=_NUM_DRAWS,
            seed=derive_seed(self.seed, "base", "exchange"),
            on_progress=in_stage(self.on_progress, "base"),
        )
        self.cost += crossed.cost(self.kernel.evaluations)
        size = len(crossed.draws)
        return _Found(crossed.draws, np.full(size, crossed.log_z - np.log(size)))

    def _choice(self, first: Scout | None, second: Scout | None, *tried: Scout) -> BaseChoice:
        cost = dataclasses.replace(self.cost, seconds=time.monotonic() - self.began)
        return BaseChoice(first, second, tried, cost, self.is_cut)

    @property
    def _sweeps(self) -> int:
        return self.num_steps * self.num_chains

    @property
    def _is_late(self) -> bool:
        """Whether the time for pilots is over, so that what would follow is left out."""
        self.is_cut |= self.deadline is not None and time.monotonic() > self.deadline
        return self.is_cut


def _first(named: Sequence[Scout], fitted: Sequence[Scout], num_steps: int) -> Scout:
    """The base to start from, of those that find the mass."""
    finding = _finding((*named, *fitted))
    easy = [one for one in named if one in finding and one.cost < _EASY * num_steps]
    if easy:  # the flattest is named first
        return easy[0]
    mixture = fitted[0] if fitted else None
    if mixture is not None and mixture in finding and mixture.cost < _CHEAP * num_steps:
        return mixture
    return min(finding, key=lambda one: one.cost * (1 if one in fitted else _WIDE_PRICE))


def _second(
    first: Scout, named: Sequence[Scout], fitted: Sequence[Scout], num_steps: int
) -> Scout | None:
    """The most unlike of the others that find the mass; if none does, the one that finds most."""
    finding = _finding((*named, *fitted))
    unlike = (*fitted, *named) if first in named else (*named, *fitted)
    others = [one for one in unlike if one is not first]
    good = [one for one in others if one in finding]
    if not others:
        return None
    if not good:
        return max(others, key=lambda one: one.log_z)
    return next((one for one in good if one.cost < num_steps), min(good, key=lambda one: one.cost))


def _finding(scouts: Sequence[Scout]) -> list[Scout]:
    """Those that no other shows to miss something; at least the one of the largest log Z."""
    log_z, errors = np.array([(one.log_z, one.std_err) for one in scouts]).T
    least = log_z - _MISSES - 3 * np.hypot(errors[:, None], errors)
    found = [
        one for one, finds in zip(scouts, (log_z[:, None] > least).all(1), strict=True) if finds
    ]
    return found or [max(scouts, key=lambda one: one.log_z)]


def second_chains(num_chains: int, is_resampled: bool = False) -> int:
    """A tenth of the chains, enough to be diagnosed; in whole islands where they are resampled."""
    count = max(num_chains // _SECOND_SHARE, min(num_chains, _LEAST_SECOND))
    if not is_resampled:
        return count
    unit = island_unit(count)
    return max(count // unit, 1) * unit


def units_of(path: AbstractPath) -> AbstractUnits:
    """Return the kind of the annealed units."""
    units = getattr(path, "state_units", None) or getattr(path, "units", None)
    if units is None:
        raise ValueError(f"no base can be fitted to the states of a {type(path).__name__}.")
    return units
