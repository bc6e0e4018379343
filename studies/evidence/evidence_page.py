"""The page of the study, from the committed results; --fresh runs everything again."""

import json
import sys
from pathlib import Path

import numpy as np
from scipy import stats

HERE = Path(__file__).parent
RESULTS = HERE / "results"

_HEAD = """# Evidence of densities

`make evidence` writes this page from the committed results; `make evidence FRESH=1` runs everything again.
Evaluations are those of the density, with or without its gradient, pilots and fits of bases included.
"""


def closed() -> str:
    """Closed forms."""
    done = json.loads((RESULTS / "closed.json").read_text())
    lines = [
        "## Closed forms",
        "",
        "20 seeds each of 500 steps and 200 chains, default base (pilot), kernel (HAIS) and schedule "
        "(mixing). z = (log Z - exact) / standard error.",
        "",
        "| problem | dim | exact | mean log Z | mean s.e. | mean z | rms z | largest abs z | covered | "
        "status ok | evaluations per run |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    total = covered = 0
    bad = []
    for name, here in done.items():
        runs, exact = here["runs"], here["exact"]
        log_z = np.array([run["log_z"] for run in runs])
        errors = np.array([run["std_err"] for run in runs])
        z = (log_z - exact) / errors
        inside = sum(run["interval"][0] <= exact <= run["interval"][1] for run in runs)
        evaluations = np.mean([sum(run["evaluations"].values()) for run in runs])
        ok = sum(run["status"] == "ok" for run in runs)
        total, covered = total + len(runs), covered + inside
        if stats.binom.cdf(inside, len(runs), 0.95) < 1e-3:
            bad.append(name)
        lines.append(
            f"| {name} | {here['dim']} | {exact:.4f} | {log_z.mean():.4f} | {errors.mean():.4f} | "
            f"{z.mean():+.2f} | {np.sqrt((z**2).mean()):.2f} | {np.abs(z).max():.2f} | "
            f"{inside} of {len(runs)} | {ok} | {evaluations:,.0f} |"
        )
    low, high = stats.binomtest(covered, total).proportion_ci(0.95)
    verdict = (
        "every problem within its stated error" if not bad else f"not within: {', '.join(bad)}"
    )
    lines += [
        "",
        f"**Verdict**: {verdict}: the 95 % interval covered the exact value in {covered} of {total} runs "
        f"(share {covered / total:.3f}, 95 % interval {low:.3f} to {high:.3f}). A problem is called "
        "not within where so few of 20 would be covered once in a thousand.",
    ]
    return "\n".join(lines)


def logistic() -> str:
    """Logistic regression."""
    done = json.loads((RESULTS / "logistic.json").read_text())
    lines = [
        "## Logistic regression",
        "",
        "scikit-learn's breast cancer data: 569 rows, 30 inputs and a constant, weights ~ N(0, 1). "
        "annealz: 600 steps of 200 chains, all by default. SMC: BlackJAX's adaptive tempered SMC, 1000 "
        "particles, 5 moves of HMC of 10 leapfrog steps a temperature. dynesty: 500 live points, "
        "its default moves, and random walks.",
        "",
        "| method | runs | mean log Z | s.e. reported | sd over runs | evaluations per run |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    means, errors, costs = {}, {}, {}
    for name, runs in done.items():
        log_z = np.array([run["log_z"] for run in runs])
        told = np.mean([run.get("std_err", 0.0) for run in runs])
        spread = log_z.std(ddof=1) if len(runs) > 1 else 0.0
        means[name], errors[name] = log_z.mean(), max(told, spread) / np.sqrt(len(runs))
        costs[name] = float(np.mean([run["evaluations"] for run in runs]))
        shown = [f"{value:.4f}" if value else "–" for value in (told, spread)]
        lines.append(
            f"| {name} | {len(runs)} | {means[name]:.4f} | {shown[0]} | {shown[1]} | {costs[name]:,.0f} |"
        )
    lines += ["", "Errors below are the larger of the two, over the square root of the runs.", ""]
    for other in [name for name in done if name != "annealz"]:
        gap = means["annealz"] - means[other]
        joint = float(np.hypot(errors["annealz"], errors[other]))
        agree = "within" if abs(gap) < 2 * joint else "beyond"
        lines.append(
            f"**Verdict**: annealz minus {other} is {gap:+.4f} with a combined standard error of "
            f"{joint:.4f}: {agree} twice the combined error, at "
            f"{costs['annealz'] / costs[other]:.2f} of its evaluations."
        )
        lines.append("")
    return "\n".join(lines).rstrip()


def hais() -> str:
    """Kernels at equal evaluations."""
    rows = json.loads((RESULTS / "hais.json").read_text())
    budgets = sorted({row["budget"] for row in rows})
    names = list(dict.fromkeys(row["kernel"] for row in rows))
    lines = [
        "## Kernels at equal evaluations",
        "",
        "A Gaussian of 100 dimensions, variances from 1/1000 to 1 in directions of no coordinate, from the "
        "standard base; 100 chains, 10 seeds. The run's evaluations are equal, the pilot's are not.",
        "",
        "| evaluations per chain | kernel | rms error of log Z | Var log w (95 % interval) | mean ESS | "
        "evaluations of the pilot |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    verdicts = []
    for budget in budgets:
        logs = {}
        for name in names:
            here = [row for row in rows if row["budget"] == budget and row["kernel"] == name]
            logs[name] = np.log([row["variance"] for row in here])
            half = stats.t.ppf(0.975, len(here) - 1) * stats.sem(logs[name])
            low, middle, high = np.exp(logs[name].mean() + np.array([-half, 0, half]))
            rms = np.sqrt(np.mean([row["error"] ** 2 for row in here]))
            ess = np.mean([row["ess"] for row in here])
            pilot = np.mean([row["evaluations"]["pilot"] for row in here])
            lines.append(
                f"| {budget:,} | {name} | {rms:.3f} | {middle:.3g} ({low:.3g} to {high:.3g}) | {ess:.1f} | "
                f"{pilot:,.0f} |"
            )
        for name in names:
            if name != "HAIS":
                test = stats.ttest_ind(logs[name], logs["HAIS"], equal_var=False)
                low, high = np.exp(test.confidence_interval(0.95))
                ratio = np.exp(logs[name].mean() - logs["HAIS"].mean())
                word = "beats" if low > 1 else "loses to" if high < 1 else "ties with"
                verdicts.append(
                    f"- {budget:,}: HAIS {word} {name}: the variance of log w is {ratio:.3g} times as "
                    f"large with {name} (95 % interval {low:.3g} to {high:.3g})."
                )
    return "\n".join([*lines, "", "**Verdicts** (geometric means, Welch's t):", "", *verdicts])


def main() -> None:
    if "--fresh" in sys.argv:
        import evidence_closed
        import evidence_hais
        import evidence_logistic

        (RESULTS / "closed.json").unlink(missing_ok=True)
        for study in (evidence_closed, evidence_logistic, evidence_hais):
            study.main()
    (HERE / "README.md").write_text(
        "\n\n".join([_HEAD.rstrip(), closed(), logistic(), hais()]) + "\n"
    )


if __name__ == "__main__":
    main()
