"""A picture of each plot, for README and docs.

    python docs/figures/plots.py

docs/images/estimate.png is the default estimate, `annealz estimate`; the others are of the same model from
two sides, and of a comparison.
"""

from pathlib import Path

from matplotlib.figure import Figure

import annealz

MODEL = "mnist-pcd-20"
OUT = Path(__file__).parents[1] / "images"
DPI = 110


def main() -> None:
    estimate = annealz.estimate_log_z(MODEL)
    print(estimate)
    save(estimate.plot(), "estimate")
    save(estimate.terrain.plot(), "plot-terrain")
    both = annealz.estimate_log_z(MODEL, num_steps=2000, two_sided=True)
    print(both)
    save(both.schedule.plot().figure, "plot-schedule")
    save(both.plot_dwell().figure, "plot-dwell")
    save(both.plot_ess().figure, "plot-ess")
    save(both.plot_weights().figure, "plot-weights")
    save(both.plot_work().figure, "plot-work")
    save(both.plot_convergence().figure, "plot-convergence")
    comparison = annealz.compare_schedules(
        MODEL, schedules=["mixing", "linear", "sm08", "gms13", "varopt"], num_steps=4000
    )
    print(comparison.verdict)
    save(comparison.plot(), "plot-comparison")
    save(comparison.plot_schedules().figure, "plot-schedules")


def save(figure, name: str) -> None:
    assert isinstance(figure, Figure)
    figure.savefig(OUT / f"{name}.png", dpi=DPI)


if __name__ == "__main__":
    main()
