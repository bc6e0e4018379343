"""The figure of docs/schedules.md: GMS13 with few and many knots, beside VAROPT.

    python docs/figures/gms13.py

Left, a path whose slope does not depend on beta (independent spins): with many knots GMS13 is VAROPT.
Right, mnist-pcd-20 with its hidden units summed out, where a difference remains.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import annealz

NUM_STEPS = 2000
OUT = Path(__file__).parents[1] / "images" / "gms13-knots.png"


def spins() -> annealz.GeometricPath:
    """A thousand independent units that switch on one after another along the path."""
    bias = np.linspace(0, 40, 1000)
    model = annealz.RBM(np.zeros((1, 1000)), np.zeros(1), bias)
    return annealz.GeometricPath(annealz.BernoulliBase.from_logits(bias * 0 - 6), model)


def digits() -> annealz.GeometricPath:
    model = annealz.load_model("mnist-pcd-20")
    return annealz.GeometricPath(model.choose_base(), model)


def main() -> None:
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    times = np.linspace(0, 1, NUM_STEPS + 1)
    for axes, (title, path) in zip(
        figure.subplots(1, 2),
        (("independent spins", spins()), ("mnist-pcd-20", digits())),
        strict=True,
    ):
        kernel = annealz.BlockGibbs()
        few = annealz.survey_knots(path, kernel, num_updates=1200, num_burn_in=200)
        many = annealz.survey_knots(
            path, kernel, num_knots=101, num_chains=200, num_updates=1200, num_burn_in=200
        )
        curves = {
            "linear": (annealz.linear(NUM_STEPS), {"color": "#999999", "ls": ":"}),
            "sm08": (annealz.sm08(NUM_STEPS), {"color": "#999999", "ls": "--"}),
            "gms13, 10 knots": (annealz.gms13(few, NUM_STEPS), {"color": "#d9730d"}),
            "gms13, 101 knots": (annealz.gms13(many, NUM_STEPS), {"color": "#2f8f4e"}),
            "varopt": (annealz.varopt(many, NUM_STEPS), {"color": "#1f5fa8", "lw": 2}),
        }
        for label, (schedule, style) in curves.items():
            axes.plot(times, schedule.betas, label=label, **style)
        gap = np.abs(curves["gms13, 101 knots"][0].betas - curves["varopt"][0].betas).max()
        ten = np.abs(curves["gms13, 10 knots"][0].betas - curves["linear"][0].betas).max()
        print(f"{title}: gms13 (101 knots) - varopt {gap:.3f}, gms13 (10 knots) - linear {ten:.3f}")
        axes.set(xlabel="t = k / K", ylabel="β", title=title, xlim=(0, 1), ylim=(0, 1))
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(OUT, dpi=120)


if __name__ == "__main__":
    main()
