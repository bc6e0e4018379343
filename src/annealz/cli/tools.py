"""`annealz compare`, `schedule`, `train`, `models` and `doctor`."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import platformdirs
import typer

from annealz.cli.options import (
    MODEL,
    Options,
    argument,
    command,
    option,
    request_options,
    request_values,
    shared,
)
from annealz.cli.run import interrupted, open_client
from annealz.cli.show import (
    check_free,
    check_outputs,
    check_plot,
    open_console,
    save_figure,
    save_pages,
    show_rows,
    show_sheet,
    show_table,
)
from annealz.core.names import ALGORITHMS, packaged_models
from annealz.io.files import writing
from annealz.methods.annealing.request import CompareRequest
from annealz.views.progress import live_report, training_report

_EXTRAS = {  # package: what it is for
    "h5py": "HDF5 files",
    "safetensors": "safetensors files",
    "numpyro": "NumPyro models",
    "pymc": "PyMC models",
    "distributed": "clusters",
    "xarray": "to_xarray()",
}
_FAILED = 1


@command(
    MODEL,
    *request_options(CompareRequest),
    *shared("map", "cluster", "plot", "report", "as_json", "quiet"),
    examples="""
        annealz compare model.npz
        annealz compare mnist-cd25-20 --schedules linear,mixing --steps 2000
    """,
)
def compare(options: Options) -> None:
    """Compare schedules on MODEL at equal total cost, pilots charged.

    The figure goes to compare-NAME.png, unless --plot says where or --json is given.
    """
    from annealz.models.formats.naming import MappedFile
    from annealz.results.compare import compare_schedules

    check_outputs(options)
    with open_client(options) as client:
        result = compare_schedules(
            MappedFile.of(options.model, options.map),
            **request_values(options, CompareRequest),
            client=client,
            progress=not options.quiet,
        )
    show_sheet(result.sheet(), options.as_json)
    if options.plot is None and not options.as_json:
        options.plot = Path(f"compare-{result.model}.png")
    save_pages(options, result)
    if not options.as_json:
        print(f"figure: {options.plot}")


@command(
    MODEL,
    *request_options(names=["schedule", "num_steps"]),
    option("num_chains", "Chains of the run to come: they size the pilot of mixing.", 1000, min=1),
    option("out", "The schedule, as JSON.", Path("schedule.json"), flags=["-o", "--out"]),
    *request_options(names=["base", "seed", "data", "marginal"]),
    *shared("map", "force", "plot", "quiet"),
    examples="""
        annealz schedule model.npz -o s.json
        annealz estimate model.npz --schedule s.json
    """,
    more="\n\nSchedules:\n\n{rules}",
)
def schedule(options: Options) -> None:
    """Make a schedule for MODEL, with a pilot run where the rule needs one.

    The picture goes beside the schedule, unless --plot says where.
    """
    from annealz.methods.problem import choose_problem
    from annealz.models.formats.naming import MappedFile
    from annealz.pilots.plan import check_schedule, plan_schedule

    out, given = options.out, request_values(options)
    name, seed = options.schedule, options.seed
    picture = out.with_suffix(".png") if options.plot is None else options.plot
    check_plot(picture)
    if picture == out:
        raise ValueError(
            f"{out} cannot be both the schedule and its picture: give it another ending."
        )
    for path in (out, picture):
        check_free(path, options.force)
    where = {name: given[name] for name in ("base", "data", "marginal")}
    chosen = choose_problem(MappedFile.of(options.model, options.map), **where)
    num_steps = check_schedule(name, options.num_steps)
    sizes = {"num_chains": options.num_chains, "seed": seed}
    with live_report(is_quiet=options.quiet) as progress:
        problem = chosen.prepared(num_steps=num_steps, on_progress=progress, **sizes)
        where = problem.states, problem.kernel
        sizes |= {"num_steps": options.num_steps, "on_progress": progress}
        made = plan_schedule(name, *where, **sizes)
    with writing(f"the schedule {out}"):
        made.save(out)
    save_figure(made.plot().figure, picture)
    print(f"{made.name}, {made.num_steps:,} steps: {out}, {picture}")
    report = made.provenance
    print(f"pilot: {report.get('pilot_sweeps', 0):,} sweeps")
    if "predicted_gain" in report:
        print(
            f"J: {report['linear_cost']:.4g} linear, {report['cost']:.4g} now: under perfect mixing the "
            f"variance of log w falls by a factor of {report['predicted_gain']:.2f}"
        )
    if "predicted_variance" in report:
        more = " or more: some chains forget too slowly to be measured"
        bound = more if report["tau_is_bound"] else ""
        print(f"predicted variance of log w: {report['predicted_variance']:.3g}{bound}")


@command(
    argument("data", "mnist, or a file of rows in [0, 1]: npy, npz, IDX (gz or not)."),
    option("out", "The model file (npz) to write.", ..., Path, ["--out", "-o"]),
    option("num_hidden", "Hidden units.", 20),
    option("algorithm", f"{' or '.join(ALGORITHMS)}.", "pcd"),
    option("gibbs_steps", "Gibbs sweeps per update.", 1),
    option("num_updates", "Parameter updates.", 250_000),
    option("learning_rate", "Of the first update.", 0.01),
    option("final_learning_rate", "Of the last update, reached linearly.", kind=float),
    option("weight_decay", "L2 weight decay, of the weights only.", 0.0),
    option("batch_size", "Rows per update, and chains.", 100, flags=["--batch"]),
    *request_options(names=["seed"]),
    option("series", "Keep the model every so many updates as well.", kind=int),
    *shared("mnist", "checkpoint_seconds", "force", "as_json", "quiet"),
    examples="""
        annealz train mnist -o digits.npz
        annealz train rows.npy -o model.npz --hidden 100 --series 5000
    """,
)
def train(options: Options) -> None:
    """Train an RBM on DATA by contrastive divergence.

    Checkpoints, and the models of --series, go to the folder FILE.training beside the model file.
    """
    from annealz.training.contrastive import Settings
    from annealz.training.data import DataSource
    from annealz.training.job import train_to_file, training_store

    names = [field.name for field in dataclasses.fields(Settings)]
    settings = Settings(**{name: getattr(options, name) for name in names})
    source = DataSource.of(options.data, options.mnist)

    names = ("series", "force", "checkpoint_seconds")
    more = {name: getattr(options, name) for name in names}
    work = functools.partial(train_to_file, source, settings, options.out, **more)
    _train(work, training_store(options.out), options)


def resume_training(options: Options) -> None:
    """Resume the training in a folder."""
    from annealz.io.store import Store
    from annealz.training import job

    work = functools.partial(job.resume_training, options.folder)
    _train(work, Store(options.folder), options)


def _train(work: Callable[..., Any], store: Any, options: Options) -> None:
    try:
        with live_report(training_report, options.quiet) as progress:
            outcome = work(on_progress=progress)
    except KeyboardInterrupt:
        raise interrupted(store if store.holds_run else None) from None
    show_sheet(outcome.sheet(), options.as_json)


@command(
    *shared("as_json"),
    examples="""
        annealz models
        annealz models --json
    """,
)
def models(options: Options) -> None:
    """List the packaged models."""
    from annealz.diagnostics.sheet import record_of
    from annealz.models.formats.load import load_binary

    records, lines = [], []
    for name in packaged_models():
        model, meta = load_binary(name)
        exact, training = meta.get("exact_log_z"), meta.get("training")
        sizes = record_of(model, "num_hidden num_visible")
        known = {"exact_log_z": exact, "training": training, "digest": model.digest}
        records.append({"name": name, **sizes, **known})
        number = "–" if exact is None else f"{exact:.4f}"
        size = f"{model.num_visible} × {model.num_hidden}"
        lines.append((name, size, number, _training(training)))
    if options.as_json:
        print(json.dumps({"models": records}))
    else:
        show_table(open_console(), ("model", "units", "exact log Z", "training"), lines)


def _training(settings: dict[str, Any] | None) -> str:
    """Describe in a few words how a model was trained."""
    if settings is None:
        return "–"
    rate = f"{settings['learning_rate']:g}"
    if settings.get("final_learning_rate") is not None:
        rate += f"→{settings['final_learning_rate']:g}"
    algorithm = f"{settings['algorithm'].upper()}-{settings['gibbs_steps']}"
    return f"{algorithm}, {settings['num_updates']:,} updates, rate {rate}"


@command(
    *shared("as_json"),
    examples="""
        annealz doctor
        annealz doctor --json
    """,
)
def doctor(options: Options) -> None:
    """Versions, devices, caches, and a self-test of some seconds."""
    found = _found()
    began = time.monotonic()
    found["self-test"] = _self_test()
    found["self-test"]["seconds"] = round(time.monotonic() - began, 1)
    if options.as_json:
        print(json.dumps(found))
    else:
        show_rows(open_console(), _rows(found))
    if not found["self-test"]["is_passed"]:
        raise typer.Exit(_FAILED)


def _found() -> dict[str, Any]:
    import jax

    from annealz.core.compilation_cache import programs_folder
    from annealz.core.devices import local_devices, platform, versions
    from annealz.engine.gpu.choose import has_fused_steps

    is_on = bool(jax.config.jax_enable_compilation_cache)  # pyright: ignore[reportAttributeAccessIssue]
    cache, programs = Path(platformdirs.user_cache_dir("annealz")), programs_folder()
    has_affinity = hasattr(os, "sched_getaffinity")
    return {
        "versions": versions(),
        "extras": {name: _version(name) for name in _EXTRAS},
        "platform": platform(),
        "devices": [device.device_kind for device in local_devices()],
        "cores": len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count(),
        "fused_steps": has_fused_steps(),
        "cache": {"folder": str(cache), "bytes": _bytes_in(cache)},
        "programs": {
            "are_kept": programs is not None and is_on,
            "folder": None if programs is None else str(programs),
            "bytes": 0 if programs is None else _bytes_in(programs),
        },
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _bytes_in(folder: Path) -> int:
    """Return the size of the files in a folder; those that vanish meanwhile do not count."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    return total


def _self_test() -> dict[str, Any]:
    """Estimate log Z of a small model by annealing, beside its exact value."""
    import numpy as np

    from annealz.api import estimate_log_z
    from annealz.diagnostics.sheet import record_of
    from annealz.models.exact import exact_log_z
    from annealz.models.rbm import RBM

    normal = np.random.default_rng(0).normal
    model = RBM(normal(size=(8, 12)), normal(size=8), normal(size=12))
    exact = exact_log_z(model)
    options: dict[str, Any] = {"schedule": "linear", "num_steps": 1000, "num_chains": 500}
    estimate = estimate_log_z(model, base="uniform", second_opinion=False, **options)
    off = estimate.log_z - exact
    is_passed = bool(abs(off) < 5 * estimate.std_err and estimate.std_err < 0.1)
    return {"is_passed": is_passed, **record_of(estimate, "log_z std_err"), "exact_log_z": exact}


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    from annealz.io.reading import size_text

    versions, test, programs = found["versions"], found["self-test"], found["programs"]
    names, count = ", ".join(dict.fromkeys(found["devices"])), len(found["devices"])
    device = f"{found['platform']}, {names}" + (f", {count} of them" if count > 1 else "")
    fused = "in use" if found["fused_steps"] else "not in use: they are for Hopper GPUs"
    kept = "not kept: every process compiles its own"
    if programs["are_kept"]:
        kept = f"kept in {programs['folder']}, {size_text(programs['bytes'])}"
    passed = "passed" if test["is_passed"] else "FAILED"
    number = f"log Z {test['log_z']:.4f} ± {test['std_err']:.4f}, exact {test['exact_log_z']:.4f}"
    missing = {name: f"not installed ({use})" for name, use in _EXTRAS.items()}
    return [
        *((name, version) for name, version in versions.items() if name != "device"),
        *((name, version or missing[name]) for name, version in found["extras"].items()),
        ("device", device),
        ("cores", str(found["cores"])),
        ("fused steps", fused),
        ("cache", f"{found['cache']['folder']}, {size_text(found['cache']['bytes'])}"),
        ("programs", kept),
        ("self-test", f"{passed}: {number}, {test['seconds']} s"),
    ]
