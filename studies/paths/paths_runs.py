"""The moment-averaged path against the geometric one at equal cost, on packaged RBMs of known log Z.

Every replicate has a budget of sweeps. The geometric path spends it on the pilot of the mixing schedule and
on the run; the moment-averaged path has its fit charged first, so that its run is shorter. Runs what
`results.json` does not hold yet, and writes README.md.
"""

import json
import time
from pathlib import Path

import numpy as np
from scipy import stats

from annealz.anneal import anneal
from annealz.diagnostics import judge
from annealz.estimators import delta_std_err, effective_sample_size, log_mean
from annealz.files import write_atomic
from annealz.formats.load import load_binary
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.paths.moment import fit_moment_path
from annealz.plan import MIXING_SHARE
from annealz.random import derive_seed
from annealz.schedules.mixing import mixing
from annealz.survey_mixing import survey_mixing

HERE = Path(__file__).parent
MODELS = ("mnist-cd1-20", "mnist-cd25-20", "mnist-pcd-20")
PATHS = ("geometric", "moment")
BUDGET = 5_000_000  # sweeps a replicate
NUM_CHAINS = 500
NUM_REPLICATES = 10


def main() -> None:
    file = HERE / "results.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    done = {(row["model"], row["path"], row["replicate"]) for row in rows}
    for replicate in range(NUM_REPLICATES):
        for model in MODELS:
            for path in PATHS:
                if (model, path, replicate) not in done:
                    rows.append(run(model, path, replicate))
                    write_atomic(file, json.dumps(rows, indent=0))
    write_atomic(HERE / "README.md", page(rows))


def run(name: str, kind: str, replicate: int) -> dict:
    """One replicate: fit (if any), pilot, run."""
    began = time.monotonic()
    seed = derive_seed(0, "paths", name, kind, replicate)
    model, meta = load_binary(name)
    base = model.choose_base("base-rate")
    path, spent = GeometricPath(base, model), 0
    if kind == "moment":
        fit = fit_moment_path(base, model, seed=seed)
        path, spent = fit.path, fit.sweeps
    pilot = int(MIXING_SHARE * BUDGET)
    terrain = survey_mixing(path, BlockGibbs(), budget=pilot, seed=seed)
    num_steps = (BUDGET - spent - terrain.sweeps) // NUM_CHAINS
    run = anneal(path, BlockGibbs(), mixing(terrain, num_steps), num_chains=NUM_CHAINS, seed=seed)
    work = run.log_weights
    return {
        "model": name,
        "path": kind,
        "replicate": replicate,
        "num_steps": num_steps,
        "fit_sweeps": spent,
        "length": float(np.sqrt(mixing(terrain, 1).provenance["predicted_variance"])),
        "error": run.log_z0 + log_mean(work) - meta["exact_log_z"],
        "std_err": delta_std_err(work),
        "ess": effective_sample_size(work),
        "variance": float(work.var()),
        "status": judge(work).status.value,
        "seconds": time.monotonic() - began,
    }


def page(rows: list[dict]) -> str:
    """README.md."""
    lines = [
        "# Paths: moment-averaged against geometric",
        "",
        f"Each replicate has {BUDGET:,} sweeps of {NUM_CHAINS} chains from the base rate, {NUM_REPLICATES}",
        "replicates, the mixing schedule. The fit of the moment-averaged path (9 knots, its",
        "pilot included) is charged. Length is ∫√(g τ) dβ as the replicate's own pilot saw it; p is",
        "Welch's of the two paths. Made by `python studies/paths/paths_runs.py`.",
        "",
        "| model | path | steps | length | Var[log w] | ESS | mean error | rms error | ok | s |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    verdicts, gains = [], []
    for model in MODELS:
        groups = [[r for r in rows if (r["model"], r["path"]) == (model, kind)] for kind in PATHS]
        lines += [line(group) for group in groups if group]
        if all(len(group) > 1 for group in groups):
            words, is_gain = verdict(model, *groups)
            verdicts.append(words)
            gains += [model] if is_gain else []
    summary = (
        "**Verdict**: the moment-averaged path lowers length or mean squared error (p < 0.05) on "
        f"{', '.join(gains) or 'none of these models'}. The fit's settings were chosen on single runs of "
        "mnist-pcd-20 and mnist-cd25-20 with other seeds."
    )
    return "\n".join([*lines, "", summary, "", *verdicts]) + "\n"


def column(rows: list[dict], key: str) -> np.ndarray:
    return np.array([row[key] for row in rows])


def line(rows: list[dict]) -> str:
    def mean(key: str, digits: int) -> str:
        values = column(rows, key)
        return f"{values.mean():.{digits}f} ± {stats.sem(values):.{digits}f}"

    error = column(rows, "error")
    cells = [
        rows[0]["model"],
        rows[0]["path"],
        f"{rows[0]['num_steps']:,}",
        mean("length", 1),
        mean("variance", 2),
        mean("ess", 0),
        f"{error.mean():+.3f} ± {stats.sem(error):.3f}",
        f"{np.sqrt((error**2).mean()):.3f}",
        f"{sum(row['status'] == 'ok' for row in rows)} of {len(rows)}",
        f"{column(rows, 'seconds').mean():.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def verdict(model: str, geometric: list[dict], moment: list[dict]) -> tuple[str, bool]:
    """What differs, and whether length or error are lower by more than the noise."""
    words, is_gain = [], False
    for key, name in (("length", "length"), ("variance", "Var[log w]"), ("ess", "ESS")):
        a, b = column(geometric, key), column(moment, key)
        p = float(np.asarray(stats.ttest_ind(b, a, equal_var=False))[1])
        words.append(f"{name} {b.mean() / a.mean():.2f} times (p = {p:.2g})")
        is_gain |= key == "length" and b.mean() < a.mean() and p < 0.05
    before, after = (column(group, "error") ** 2 for group in (geometric, moment))
    ratio = after.mean() / before.mean()
    p = float(np.asarray(stats.mannwhitneyu(before, after))[1])
    text = (
        f"- **{model}**: the moment-averaged path has {', '.join(words)} those of the geometric one; mean "
        f"squared error {ratio:.2f} times (p = {p:.2g} by Mann and Whitney's test)."
    )
    return text, is_gain or (ratio < 1 and p < 0.05)


if __name__ == "__main__":
    main()
