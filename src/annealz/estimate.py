"""The front door: log Z of a model, with its error and whether to trust it.

model -> path -> schedule -> anneal -> Run -> Estimate
"""

import dataclasses
import hashlib
import operator
import platform
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np

from annealz.anneal import Progress, anneal, check_memory
from annealz.bases.bernoulli import BernoulliBase
from annealz.bases.choose import choose_base
from annealz.diagnostics import Judgement, judge
from annealz.folder import RunFolder
from annealz.formats.load import load_model
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.exact import exact_log_z_if_cheap
from annealz.models.rbm import RBM
from annealz.numerics import finite_or_none
from annealz.observers import AbstractObserver, Expectation, Slope
from annealz.paths.geometric import GeometricPath
from annealz.plan import DEFAULT_SCHEDULE, plan_schedule
from annealz.random import check_seed
from annealz.run import Run, Trace
from annealz.schedules.schedule import Schedule
from annealz.sizing import Forecast, forecast
from annealz.status import Message, Status, longer
from annealz.table import as_text

__all__ = ["DEFAULT_NUM_CHAINS", "Estimate", "estimate_log_z", "resume"]

DEFAULT_NUM_CHAINS = 1000

Observe = Mapping[str, Callable | AbstractObserver]


@dataclasses.dataclass(frozen=True, repr=False)
class Estimate:
    """log Z, and all that stands behind it."""

    settings: dict[str, Any]
    """What the run was given, and what pilots spent before it."""
    run: Run
    judgement: Judgement
    extra_messages: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        return self.settings["model"]

    @property
    def base(self) -> str:
        return self.settings["base"]

    @property
    def marginal(self) -> str:
        return self.settings["marginal"]

    @property
    def exact_log_z(self) -> float | None:
        return self.settings["exact_log_z"]

    @property
    def log_z(self) -> float:
        """log Z_A + log mean w: natural logarithm, biased low."""
        return self.run.log_z0 + self.judgement.log_mean

    @property
    def std_err(self) -> float:
        return self.judgement.std_err

    @property
    def ess(self) -> float:
        return self.judgement.ess

    @property
    def status(self) -> Status:
        return self.judgement.status

    @property
    def messages(self) -> tuple[str, ...]:
        return self.judgement.messages + self.run.messages + self.extra_messages

    @property
    def log_weights(self) -> np.ndarray:
        return self.run.log_weights

    @property
    def trace(self) -> Trace:
        return self.run.trace

    @property
    def schedule(self) -> Schedule:
        return self.run.schedule

    @property
    def num_steps(self) -> int:
        return self.run.num_steps

    @property
    def num_chains(self) -> int:
        return self.run.num_chains

    @property
    def seed(self) -> int:
        return self.run.seed

    @property
    def sweeps(self) -> dict[str, int]:
        """Kernel applications: those of the pilot, and those of the run that gave log Z."""
        return {"pilot": self.settings["pilot_sweeps"], "main": self.run.sweeps}

    @property
    def seconds(self) -> float:
        """Wall clock of pilots and run."""
        return self.settings["pilot_seconds"] + self.run.seconds

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of log Z."""
        low, high = self.judgement.interval(level)
        return self.run.log_z0 + low, self.run.log_z0 + high

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values; what is unknown (the error of a single chain) is None."""
        return {
            "model": self.model,
            "log_z": self.log_z,
            "std_err": finite_or_none(self.std_err),
            "interval": [finite_or_none(bound) for bound in self.interval()],
            "ess": self.ess,
            "num_steps": self.num_steps,
            "num_chains": self.num_chains,
            "schedule": self.schedule.name,
            "base": self.base,
            "seed": self.seed,
            "status": self.status.value,
            "messages": list(self.messages),
            "exact_log_z": self.exact_log_z,
            "sweeps": self.sweeps,
            "seconds": self.seconds,
        }

    @property
    def provenance(self) -> dict[str, Any]:
        """What is needed to make this number again."""
        return {
            **self.settings,
            "purpose": self.run.purpose,
            "num_steps": self.num_steps,
            "schedule": self.schedule.name,
            "schedule_digest": self.schedule.digest,
            "schedule_provenance": self.schedule.provenance,
        }

    def rows(self) -> list[tuple[str, str]]:
        """The result as label and value, for people."""
        low, high = self.interval()
        is_known = np.isfinite([self.std_err, low, high]).all()
        rows = [
            ("model", self.model),
            ("log Z", f"{self.log_z:.4f} ± " + (f"{self.std_err:.4f}" if is_known else "unknown")),
            ("95 % interval", f"{low:.4f} … {high:.4f}" if is_known else "unknown"),
        ]
        if self.exact_log_z is not None:
            gap = self.log_z - self.exact_log_z
            known = 0 < self.std_err < np.inf
            errors = f", {abs(gap) / self.std_err:.1f} standard errors" if known else ""
            rows.append(("exact log Z", f"{self.exact_log_z:.4f} (off by {gap:+.4f}{errors})"))
        rows += [
            ("ESS", f"{self.ess:.1f} of {self.num_chains} chains"),
            ("schedule", f"{self.schedule.name}, {self.num_steps:,} steps"),
            ("base", f"{self.base}, {self.marginal} marginal"),
            ("seed", str(self.seed)),
            ("cost", f"{sum(self.sweeps.values()):,} sweeps, {self.seconds:.1f} s"),
            ("status", self.status.value),
        ]
        return rows

    def __repr__(self) -> str:
        return as_text("Estimate", self.rows(), self.messages)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{label}</th><td style='text-align:left'>{value}</td></tr>"
            for label, value in self.rows()
        )
        notes = "".join(f"<p>{message}</p>" for message in self.messages)
        return f"<table>{cells}</table>{notes}"

    def plot(self):
        """beta(t), on-the-fly ESS and the histogram of log w: a matplotlib figure."""
        from annealz.plots import plot_estimate

        return plot_estimate(self)


def estimate_log_z(
    model: RBM | str | Path,
    *,
    schedule: str | Path | Schedule | np.ndarray = DEFAULT_SCHEDULE,
    num_steps: int | None = None,
    num_chains: int | None = None,
    base: str | BernoulliBase = "auto",
    data: Any = None,
    marginal: str = "visible",
    target_std_err: float | None = None,
    seed: int = 0,
    observe: Observe | None = None,
    record_every: int | None = None,
    chunk_steps: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    checkpoint_seconds: float = 15.0,
    exact_log_z: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_forecast: Callable[[Forecast], None] | None = None,
) -> Estimate:
    """log Z of an RBM by annealed importance sampling.

    Parameters
    ----------
    model : an RBM, the name of a packaged one, or a file
    schedule : a name (mixing, linear, sm08, gms13, varopt, varopt-0.009, varopt-fixed-point), a file,
        an array of betas, or a Schedule; `annealz.plan` describes the names. The pilot that some names
        need is charged, and uses random streams of its own.
    num_steps : K; 10,000 by default
    num_chains : N; 1,000 by default. With `target_std_err`, a tenth of it sizes the run.
    base : base-rate, uniform, visible-bias, auto, or a BernoulliBase
    data : training data (rows, visible) or their means (visible,), for the base rate
    marginal : the layer that is annealed, visible or hidden; the other is summed out
    target_std_err : the standard error wanted. A sizing run tells how many chains that takes; the
        main run then has that many. The sizing run is charged as pilot and enters no weight. What a
        million chains cannot reach is refused.
    seed : all randomness is a function of it
    observe : functions of the states (chains, units), or observers, by name; their weighted means
        and variances along the path are in `trace`
    record_every : steps between records of the trace; about 1000 records by default
    chunk_steps : steps between returns to the host; changes no bit of the result
    out : folder for checkpoints and results; `resume(out)` goes on after an interruption
    force : overwrite a run that `out` already holds
    checkpoint_seconds : seconds between checkpoints
    exact_log_z : the exact value to show beside the estimate. By default what the model file
        records, or what can be enumerated in no time.
    on_progress : called with a Progress after every chunk
    on_forecast : called before the run with what a wanted standard error should take
    """
    meta: dict[str, Any] = {}
    if not isinstance(model, RBM):
        model, meta = load_model(model)
    else:
        RBM.checked(model.weights, model.hidden_bias, model.visible_bias, model.visible_means)
    num_chains = DEFAULT_NUM_CHAINS if num_chains is None else operator.index(num_chains)
    record_every = None if record_every is None else operator.index(record_every)
    for name, count in (("num_chains", num_chains), ("record_every", record_every)):
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}.")
    if target_std_err is not None and not 0 < target_std_err < np.inf:
        raise ValueError(f"target_std_err must be a positive number, got {target_std_err}.")
    seed = check_seed(seed)
    observers = _observers(observe)
    base = choose_base(model, base, data)
    path, kernel = GeometricPath(base, model, marginal), BlockGibbs()
    check_memory(path, num_chains)  # before a pilot, not after
    folder = None if out is None else RunFolder(out)
    if folder is not None:
        folder.check(force)
    is_planned = isinstance(schedule, str) and not Path(schedule).is_file()  # its pilot is charged
    schedule = plan_schedule(
        schedule,
        path,
        kernel,
        num_steps=num_steps,
        num_chains=num_chains,
        seed=seed,
        on_progress=on_progress,
    )
    spent = schedule.provenance if is_planned else {}
    pilot_sweeps, pilot_seconds = spent.get("pilot_sweeps", 0), spent.get("pilot_seconds", 0.0)
    if target_std_err is not None:
        ahead = forecast(
            path,
            kernel,
            schedule,
            target_std_err,
            num_chains=num_chains,
            seed=seed,
            on_progress=on_progress,
        )
        num_chains = ahead.num_chains
        pilot_sweeps += ahead.sizing.sweeps
        pilot_seconds += ahead.sizing.seconds
        if on_forecast is not None:
            on_forecast(ahead)
    known = meta.get("exact_log_z") if exact_log_z is None else exact_log_z
    if known is None:
        known = exact_log_z_if_cheap(model)
    settings = {
        "model": meta.get("name", model.name),
        "model_digest": model.digest,
        "base": base.name,
        "base_digest": hashlib.sha256(np.asarray(base.logits).tobytes()).hexdigest(),
        "marginal": marginal,
        "num_chains": num_chains,
        "target_std_err": target_std_err,
        "seed": seed,
        "record_every": record_every,
        "checkpoint_seconds": checkpoint_seconds,
        "exact_log_z": known,
        "pilot_sweeps": pilot_sweeps,
        "pilot_seconds": pilot_seconds,
        "versions": _versions(),
    }
    if folder is not None:
        folder.create(settings, model, base, schedule)
    return _run(settings, path, schedule, observers, chunk_steps, folder, on_progress)


def resume(
    out: str | Path,
    *,
    observe: Observe | None = None,
    chunk_steps: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Estimate:
    """Go on with the run in a folder, to the same bits as if it had never stopped.

    `observe` must be what the run was started with. A finished run is only read.
    """
    folder = RunFolder(out)
    settings, model, base, schedule = folder.inputs()
    if folder.is_done():
        return _estimate(settings, folder.run())
    path = GeometricPath(base, model, settings["marginal"])
    return _run(settings, path, schedule, _observers(observe), chunk_steps, folder, on_progress)


def _run(settings, path, schedule, observers, chunk_steps, folder, on_progress) -> Estimate:
    run = anneal(
        path,
        BlockGibbs(),
        schedule,
        num_chains=settings["num_chains"],
        seed=settings["seed"],
        observers=observers,
        record_every=settings["record_every"],
        chunk_steps=chunk_steps,
        checkpoint=None if folder is None else folder.checkpoint,
        checkpoint_seconds=settings["checkpoint_seconds"],
        on_progress=on_progress,
    )
    estimate = _estimate(settings, run)
    if folder is None:
        return estimate
    try:
        folder.finish(run, estimate.to_dict())
    except OSError as error:
        message = f"could not save the result to {folder.path}: {error.strerror or error}."
        return dataclasses.replace(estimate, extra_messages=(*estimate.extra_messages, message))
    return estimate


def _estimate(settings: dict[str, Any], run: Run) -> Estimate:
    judgement, target = judge(run.log_weights, run.num_steps), settings["target_std_err"]
    messages = ()
    if target is not None and not judgement.std_err <= target:
        messages = (
            Message.MISSED_TARGET.say(
                target=target, std_err=judgement.std_err, more=_more(judgement, run, target)
            ),
        )
    return Estimate(settings, run, judgement, messages)


def _more(judgement: Judgement, run: Run, target: float) -> str:
    """The chains that a wanted error takes where weights can be trusted; else longer chains."""
    if judgement.status is not Status.OK:
        return longer(run.num_steps)
    return f"--chains {int(np.ceil(run.num_chains * (1.1 * judgement.std_err / target) ** 2))}"


def _observers(observe: Observe | None) -> dict[str, AbstractObserver]:
    if observe and "slope" in observe:
        raise ValueError("observe must not use the name slope: the slope is always recorded.")
    given = {
        name: what if isinstance(what, AbstractObserver) else Expectation(what)
        for name, what in (observe or {}).items()
    }
    return {"slope": Slope(), **given}


def _versions() -> dict[str, str]:
    names = ("annealz", "jax", "jaxlib", "equinox", "numpy", "scipy")
    device = jax.devices()[0]
    return {
        **{name: metadata.version(name) for name in names},
        "python": platform.python_version(),
        "device": f"{device.platform} {device.device_kind}",
    }
