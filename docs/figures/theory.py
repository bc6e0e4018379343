"""The figures of docs/theory.md, and the numbers in its text.

    python docs/figures/theory.py

Two minutes on two cores.
"""

import itertools
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

import annealz
from annealz.testing import random_rbm

NAME = "mnist-pcd-20"  # its log Z is known
OUT = Path(__file__).parents[1] / "images"
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#777777"
PURPLE = "#CC79A7"  # all of Okabe and Ito


def main() -> None:
    draw_path()
    model = annealz.load_model(NAME)
    path = annealz.GeometricPath(model.choose_base(), model)
    terrain = annealz.survey_mixing(path, annealz.BlockGibbs(), budget=500_000, seed=1)
    draw_terrain(terrain)
    runs = annealed(terrain)
    draw_law(terrain, runs)
    draw_weights(runs)
    draw_sides()
    draw_resampling(terrain)


def draw_path() -> None:
    """Densities between a wide Gaussian and two modes, and chains that follow them by Metropolis."""
    grid = np.linspace(-7, 7, 1401)
    figure, (left, right) = panels((11, 4.2))
    for place, beta in enumerate(np.linspace(0, 1, 6)):
        density = np.exp(log_between(grid, beta))
        density /= np.trapezoid(density, grid)
        left.fill_between(
            grid, place, place + 2.2 * density, color=BLUE, alpha=0.25 + 0.1 * place, lw=0
        )
        left.plot(grid, place + 2.2 * density, color="black", lw=0.8)
    left.set(
        title=r"the path: $p_\beta$ from the base to the target",
        xlabel="x",
        ylabel="β",
        xlim=(-7, 7),
    )
    left.set_yticks(range(6), [f"{beta:.1f}" for beta in np.linspace(0, 1, 6)])

    generator = np.random.default_rng(4)
    betas = np.linspace(0, 1, 201)
    x = 3 * generator.normal(size=30)
    log_w, states = np.zeros(30), [x]
    for before, after in itertools.pairwise(betas):
        log_w += log_between(x, after) - log_between(x, before)
        proposed = x + 0.8 * generator.normal(size=30)
        gain = log_between(proposed, after) - log_between(x, after)
        x = np.where(np.log(generator.random(30)) < gain, proposed, x)
        states.append(x)
    share = np.exp(log_w - log_w.max())
    for chain in np.argsort(share):
        line = np.array(states)[:, chain]
        right.plot(betas, line, color=RED, alpha=0.06 + 0.8 * share[chain], lw=1)
    right.set(
        title="30 chains; the darker, the larger the weight",
        xlabel="β",
        ylabel="x",
        xlim=(0, 1),
        ylim=(-8, 8),
    )
    save(figure, "theory-path")


def log_between(x: np.ndarray, beta: float) -> np.ndarray:
    base = -0.5 * (x / 3) ** 2
    target = np.logaddexp(-0.5 * ((x + 2.5) / 0.6) ** 2, np.log(0.6) - 0.5 * ((x - 2.5) / 0.9) ** 2)
    return (1 - beta) * base + beta * target


def draw_terrain(terrain: annealz.Terrain) -> None:
    assert terrain.tau is not None
    assert terrain.tau_is_bound is not None
    figure, (left, middle, right) = panels((13, 4.2), 3)
    grid, g = terrain.on_grid()
    friction = terrain.on_grid(with_memory=True)[1]
    left.plot(grid, g, color=BLUE, label="g, the variance of U")
    left.plot(grid, friction, color=RED, lw=2, label="g τ, the friction")
    left.plot(terrain.betas, terrain.variance, ".", color=BLUE)
    left.set(title="the terrain of mnist-pcd-20", xlabel="β", yscale="log", xlim=(0, 1))
    left.legend(frameon=False)
    sure = ~terrain.tau_is_bound
    middle.plot(terrain.betas, terrain.tau, color=GREY, lw=1)
    middle.plot(terrain.betas[sure], terrain.tau[sure], "o", color=GREEN, label="τ, in sweeps")
    if not sure.all():
        middle.plot(
            terrain.betas[~sure], terrain.tau[~sure], "^", color=ORANGE, label="τ, a lower bound"
        )
    middle.set(title="how long chains remember", xlabel="β", yscale="log", xlim=(0, 1))
    middle.legend(frameon=False)
    times = np.linspace(0, 1, 1001)
    for name, schedule, colour in (
        ("linear", annealz.linear(1000), "black"),
        ("sm08", annealz.sm08(1000), PURPLE),
        ("varopt, speed ∝ 1/√g", annealz.varopt(terrain, 1000), BLUE),
        ("mixing, speed ∝ 1/√(gτ)", annealz.mixing(terrain, 1000), RED),
    ):
        right.plot(times, schedule.betas, color=colour, label=name, lw=2 if colour == RED else 1.2)
    right.set(title="the schedules", xlabel="t = k / K", ylabel="β", xlim=(0, 1), ylim=(0, 1))
    right.legend(frameon=False, loc="lower right")
    save(figure, "theory-terrain")
    root, full = np.sqrt(g), np.sqrt(friction)
    print(f"g from {g.min():.3g} to {g.max():.3g}, ", end="")
    print(f"tau from {terrain.tau.min():.3g} to {terrain.tau.max():.3g}")
    print(
        f"linear ∫g {np.trapezoid(g, grid):.1f}, varopt (∫√g)² {np.trapezoid(root, grid) ** 2:.1f}"
    )
    print(
        f"linear ∫gτ {np.trapezoid(friction, grid):.0f}, mixing {np.trapezoid(full, grid) ** 2:.0f}"
    )
    print(f"varopt under friction {slow_cost(annealz.varopt(terrain, 1000), grid, friction):.0f}")


def slow_cost(schedule: annealz.Schedule, grid: np.ndarray, friction: np.ndarray) -> float:
    """∫ (dbeta/dt)^2 g tau dt."""
    steps = np.diff(schedule.betas)
    middles = (schedule.betas[1:] + schedule.betas[:-1]) / 2
    return float(schedule.num_steps * (steps**2 * np.interp(middles, grid, friction)).sum())


Runs = dict[tuple[str, int], annealz.Estimate]


def annealed(terrain: annealz.Terrain) -> Runs:
    runs = {}
    for num_steps in (100, 300, 1000, 3000, 10_000):
        for schedule in (annealz.linear(num_steps), annealz.mixing(terrain, num_steps)):
            runs[schedule.name, num_steps] = annealz.estimate_log_z(
                NAME, schedule=schedule, num_chains=1000, seed=num_steps
            )
    return runs


def draw_law(terrain: annealz.Terrain, runs: Runs) -> None:
    figure, (left, right) = panels((11, 4.2))
    grid, friction = terrain.on_grid(with_memory=True)
    least = np.trapezoid(np.sqrt(friction), grid) ** 2
    even = np.trapezoid(friction, grid)
    for name, colour, cost, shift in (
        ("linear", "black", even, 0.95),
        ("mixing", RED, least, 1.05),
    ):
        steps = np.array([num_steps for schedule, num_steps in runs if schedule == name])
        mine = [runs[name, int(num_steps)] for num_steps in steps]
        variance = np.array([estimate.log_weights.var() for estimate in mine])
        left.plot(steps, variance, "o", color=colour, label=f"{name}, measured")
        left.plot(steps, cost / steps, "--", color=colour, lw=1, label=f"{name}, predicted")
        gaps = np.array([estimate.log_z - estimate.exact_log_z for estimate in mine])
        errors = np.array([[estimate.std_err for estimate in mine]] * 2)
        right.errorbar(steps * shift, gaps, errors, fmt="o", color=colour, capsize=3, label=name)
        print(name, "variance", dict(zip(steps.tolist(), variance.round(2).tolist(), strict=True)))
        print(name, "gap", gaps.round(3).tolist(), "±", errors[0].round(3).tolist())
        print(name, "ess", [round(estimate.ess, 1) for estimate in mine])
    left.axhline(1, color=GREY, lw=0.8, ls=":")
    left.set(
        title="the variance of log w, measured and predicted",
        xlabel="K",
        xscale="log",
        yscale="log",
    )
    left.legend(frameon=False)
    right.axhline(0, color=GREY, lw=0.8, ls=":")
    right.set(title="log Ẑ − log Z, 1,000 chains: low where K is small", xlabel="K", xscale="log")
    right.legend(frameon=False, loc="lower right")
    save(figure, "theory-law")


def draw_weights(runs: Runs) -> None:
    figure, axes = panels((13, 3.9), 3)
    for place, num_steps in zip(axes, (100, 1000, 10_000), strict=True):
        estimate = runs["mixing", num_steps]
        judged = estimate.judgement
        assert hasattr(judged, "pareto_k")
        centred = estimate.run.log_z0 + estimate.log_weights - estimate.exact_log_z
        colour = BLUE if estimate.status is annealz.Status.OK else RED
        place.hist(centred, 40, color=colour, alpha=0.6)
        place.axvline(0, color="black", ls="--", label="log Z")
        place.axvline(estimate.log_z - estimate.exact_log_z, color=ORANGE, lw=2, label="log Ẑ")
        words = f"k̂ {judged.pareto_k:.2f}, ESS {estimate.ess:.0f}: {estimate.status.value}"
        place.set(title=f"K = {num_steps:,}: {words}", xlabel=r"log w − log $Z_B/Z_A$")
        place.legend(frameon=False, loc="upper left")
        print(num_steps, words)
    axes[0].set_ylabel("chains")
    save(figure, "theory-weights")


def draw_sides() -> None:
    model = random_rbm(10, 16, scale=1.5, seed=1)
    plain = {"schedule": "linear", "base": "visible-bias", "second_opinion": False}
    both = annealz.estimate_log_z(
        model, num_steps=40, num_chains=4000, two_sided=True, seed=1, **plain
    )
    assert both.reverse is not None
    assert both.two_sided is not None
    forward, reverse = both.run.work, both.reverse.work
    truth = both.exact_log_z - both.run.log_z0
    figure, (left, right) = panels((11, 4.2))
    edges = np.linspace(*np.percentile(np.concatenate([forward, reverse]), [0.2, 99.8]), 41)
    left.hist(forward - truth, edges - truth, color=BLUE, alpha=0.55, label="forward")
    left.hist(reverse - truth, edges - truth, color=ORANGE, alpha=0.55, label="reverse")
    for bound, colour in ((both.two_sided.lower, BLUE), (both.two_sided.upper, RED)):
        left.axvline(bound - truth, color=colour, lw=2)
    left.axvline(0, color="black", ls="--", label=r"log $Z_B/Z_A$")
    left.set(
        title="work from both sides, and its means", xlabel=r"W − log $Z_B/Z_A$", ylabel="chains"
    )
    left.legend(frameon=False)
    counts = [np.histogram(work, edges)[0] for work in (forward, reverse)]
    seen = np.minimum(*counts) >= 5
    middles = (edges[1:] + edges[:-1]) / 2 - truth
    ratio = np.log(counts[1][seen] / counts[0][seen])
    spread = np.sqrt(1 / counts[0][seen] + 1 / counts[1][seen])
    right.errorbar(
        middles[seen], ratio, 2 * spread, fmt="o", color=GREEN, ms=4, label="measured, ± 2 s.e."
    )
    right.plot(
        middles[seen], middles[seen], color="black", lw=1, label=r"Crooks: W − log $Z_B/Z_A$"
    )
    right.set(title=r"log $p_R(W)/p_F(W)$ is a line of slope 1", xlabel=r"W − log $Z_B/Z_A$")
    right.legend(frameon=False)
    save(figure, "theory-sides")
    slope = stats.linregress(middles[seen], ratio).slope
    gaps = [
        value - truth
        for value in (both.two_sided.lower, both.two_sided.upper, both.two_sided.log_ratio)
    ]
    print(
        "sides: lower, upper, BAR",
        np.round(gaps, 4),
        "±",
        round(both.std_err, 4),
        "slope",
        round(slope, 3),
    )
    print(
        "forward estimate",
        round(both.judgement.log_mean - truth, 4),
        "±",
        round(both.judgement.std_err, 4),
    )


def draw_resampling(terrain: annealz.Terrain) -> None:
    figure, (left, right) = panels((11, 4.2))
    schedule = annealz.mixing(terrain, 300)
    plain = {"label": "chains on their own", "color": BLUE}
    shared = {"label": "resampled in islands below one half", "color": RED}
    for style, resample in ((plain, None), (shared, 0.5)):
        ends, errors = [], []
        for seed in range(20):
            estimate = annealz.estimate_log_z(
                NAME, schedule=schedule, num_chains=1000, resample=resample, seed=seed
            )
            if seed == 0:
                left.plot(estimate.trace.betas, estimate.trace.ess, **style)
            ends.append(estimate.log_z - estimate.exact_log_z)
            errors.append(estimate.std_err)
        place = 0 if resample is None else 1
        right.plot(place + np.linspace(-0.15, 0.15, 20), sorted(ends), "o", color=style["color"])
        print(style["label"], "mean", round(np.mean(ends), 3), "sd", round(np.std(ends, ddof=1), 3))
        print("  median reported error", round(float(np.median(errors)), 3))
    left.set(
        title="effective chains of 1,000 on the way, K = 300",
        xlabel="β",
        xlim=(0, 1),
        ylim=(0, None),
    )
    left.legend(frameon=False)
    right.axhline(0, color=GREY, lw=0.8, ls=":")
    right.set_xticks([0, 1], ["on their own", "resampled"])
    right.set(title="log Ẑ − log Z of 20 seeds", xlim=(-0.5, 1.5))
    save(figure, "theory-resampling")


def panels(size: tuple[float, float], count: int = 2) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(1, count))
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Figure, name: str) -> None:
    figure.savefig(OUT / f"{name}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
