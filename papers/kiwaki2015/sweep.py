"""Run the cells of a preset that are not there yet.

Each cell is one run of all replicates' chains: chains are independent, so that any 1000 of them are a
replicate. The file is written as the sweep goes; one that was cut off goes on where it stopped.
"""

import dataclasses
import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import jax
import numpy as np

from annealz.core.random import derive_seed
from annealz.diagnostics.diagnostics import judge
from annealz.diagnostics.status import Status
from annealz.engine.anneal import anneal
from annealz.engine.progress import Progress
from annealz.engine.run import Run
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.formats.load import load_binary
from annealz.models.rbm import RBM
from annealz.paths.geometric import GeometricPath
from annealz.pilots.plan import survey, survey_knots
from annealz.schedules.rules import gms13, linear, sm08, varopt
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from results import COLUMNS, Cell, Key, Results
from settings import SCHEDULES, Preset

__all__ = ["sweep"]

_NUM_RECORDS = 200
_CURVE_POINTS = 201
_SECONDS_BETWEEN_SAVES = 10.0

Report = Callable[[str, Progress], None]


def sweep(preset: Preset, file: Path, report: Report | None = None) -> Results:
    """All cells of the preset, those of `file` among them."""
    record = {"settings": dataclasses.asdict(preset), "models": {}, "versions": _versions()}
    results = Results(record, {}, {})
    if file.exists():
        results = Results.load(file)
        if results.record["settings"] != _as_json(dataclasses.asdict(preset)):
            raise ValueError(f"{file} was made with other settings: remove it, or start afresh.")
    models = {name: load_binary(name) for name in preset.models}
    for name, (model, meta) in models.items():
        known = {key: meta.get(key) for key in ("exact_log_z", "training")}
        facts = results.record["models"].setdefault(name, {"digest": model.digest, **known})
        if facts["digest"] != model.digest:
            raise ValueError(f"{file} was made with another {name}: remove it, or start afresh.")
    wanted = [
        Key(model, base, schedule, steps)
        for model in preset.models
        for base in preset.bases
        for schedule in SCHEDULES
        for steps in preset.num_steps
    ]
    before = len(results.cells)
    try:
        for name, (model, _) in models.items():
            for base in preset.bases:
                missing = [k for k in wanted if k[:2] == (name, base) and k not in results.cells]
                if missing:
                    _sweep_one(preset, name, model, base, missing, results, file, report)
    finally:
        if len(results.cells) > before:
            results.save(file)
    results.cells = {key: results.cells[key] for key in wanted}
    return results


def _sweep_one(
    preset: Preset,
    name: str,
    model: RBM,
    base_name: str,
    keys: list[Key],
    results: Results,
    file: Path,
    report: Report | None,
) -> None:
    path, kernel = GeometricPath(model.choose_base(base_name), model), BlockGibbs()
    plan = _Plan(preset, path, kernel, derive_seed(preset.seed, name, base_name))
    results.set_curve("terrain", name, base_name, values=plan.terrain_curve())
    saved = time.monotonic()
    for key in keys:
        schedule = plan.schedule(key.schedule, key.num_steps)
        run = anneal(
            path,
            kernel,
            schedule,
            num_chains=preset.num_replicates * preset.num_chains,
            seed=derive_seed(preset.seed, *key),
            purpose="paper",
            record_every=max(1, key.num_steps // _NUM_RECORDS),
            on_progress=None if report is None else _labelled(report, key),
        )
        results.cells[key] = _cell(run, preset.num_replicates)
        if key.num_steps == max(preset.num_steps):
            curve = schedule.betas[np.linspace(0, key.num_steps, _CURVE_POINTS).round().astype(int)]
            results.set_curve("schedule", *key[:3], values=curve)
        if time.monotonic() - saved > _SECONDS_BETWEEN_SAVES:
            results.save(file)
            saved = time.monotonic()


class _Plan:
    """The schedules of one path at any K, from pilots run once."""

    def __init__(self, preset: Preset, path: GeometricPath, kernel: BlockGibbs, seed: int):
        self._preset, self._path, self._kernel, self._seed = preset, path, kernel, seed
        self._terrain = survey(
            path, kernel, num_steps=preset.pilot_steps, num_chains=preset.pilot_chains, seed=seed
        )
        self._knots: Terrain | None = None

    def terrain_curve(self) -> np.ndarray:
        """(2, points): beta and g."""
        return np.stack([self._terrain.betas, self._terrain.variance])

    def schedule(self, name: str, num_steps: int) -> Schedule:
        if name == "linear":
            return linear(num_steps)
        if name == "sm08":
            return sm08(num_steps)
        if name == "gms13":
            return gms13(self._survey_knots(), num_steps)
        max_step = None if name == "varopt" else float(name.removeprefix("varopt-"))
        return varopt(self._terrain, num_steps, max_step=max_step)

    def _survey_knots(self) -> Terrain:
        if self._knots is None:
            updates = self._preset.knot_updates
            self._knots = survey_knots(
                self._path,
                self._kernel,
                num_knots=self._preset.num_knots,
                num_chains=self._preset.knot_chains,
                num_updates=updates,
                num_burn_in=updates // 6,
                seed=self._seed,
            )
        return self._knots


def _cell(run: Run, num_replicates: int) -> Cell:
    rows = []
    for log_weights in run.log_weights.reshape(num_replicates, -1):
        judgement = judge(log_weights)
        low, high = judgement.interval()
        row = {
            "log_z": run.log_z0 + judgement.log_mean,
            "std_err": judgement.std_err,
            "low": run.log_z0 + low,
            "high": run.log_z0 + high,
            "ess": judgement.ess,
            "mean": run.log_z0 + log_weights.mean(),
            "variance": judgement.variance,
            "pareto_k": judgement.pareto_k,
            "is_ok": judgement.status is Status.OK,
        }
        rows.append([float(row[column]) for column in COLUMNS])
    share = run.trace.ess / run.num_chains
    trace = np.stack([run.trace.steps / run.num_steps, share]).astype(np.float32)
    return Cell(np.array(rows), trace, run.seconds)


def _labelled(report: Report, key: Key) -> Callable[[Progress], None]:
    label = f"{key.model} {key.base} {key.schedule} K={key.num_steps:,}"
    return lambda progress: report(label, progress)


def _as_json(value):
    return {k: list(v) if isinstance(v, tuple) else v for k, v in value.items()}


def _versions() -> dict[str, str]:
    packages = ("annealz", "jax", "numpy", "scipy", "arviz-stats")
    found = {name: metadata.version(name) for name in packages}
    device = jax.devices()[0]
    return {
        **found,
        "python": platform.python_version(),
        "device": f"{device.platform}: {device.device_kind}",
    }
