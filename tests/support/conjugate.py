"""A density with named parameters whose evidence and posterior are known: two conjugate Gaussians.

shift ~ N(0, width^2),  1.2 = shift + N(0, 0.6^2);      log scale ~ N(0, 1),  -0.7 = log scale + N(0, 0.5^2)
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy import stats

import annealz
from annealz.models.layout import Parameters

DATA, NOISE = np.array([1.2, -0.7]), np.array([0.6, 0.5])
PARAMETERS = Parameters(
    ("shift", "scale"),
    lambda rows: {"shift": np.asarray(rows)[:, 0], "scale": np.exp(np.asarray(rows)[:, 1])},
    lambda values: np.stack([values["shift"], np.log(values["scale"])], axis=1),
)
# One base, one kernel, few steps: the last states would be off without their weights.
OPTIONS = {
    "base": "standard",
    "kernel": annealz.HAIS(step_size=0.4),
    "schedule": "linear",
    "num_steps": 8,
    "num_chains": 200,
    "second_opinion": False,
}


class Quick(annealz.LogDensity):
    """A density whose kernel needs no tuning."""

    def kernel(self):
        return OPTIONS["kernel"]


def conjugate(width: float = 2.0) -> annealz.LogDensity:
    """The density of (shift, log scale)."""
    widths = jnp.array([width, 1.0])

    def log_density(x):
        prior = norm.logpdf(x, 0, widths).sum()
        return prior + norm.logpdf(DATA, x, NOISE).sum()

    return Quick(log_density, 2, f"width {width:g}", parameters=PARAMETERS)


def log_evidence(width: float = 2.0) -> float:
    spread = np.hypot([width, 1.0], NOISE)
    return float(stats.norm.logpdf(DATA, 0, spread).sum())


def posterior_moments(width: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and s.d. of shift and of log scale."""
    precision = 1 / np.array([width, 1.0]) ** 2 + 1 / NOISE**2
    return DATA / NOISE**2 / precision, precision**-0.5


def means(width: float = 2.0) -> dict[str, float]:
    """Of the parameters in their own space."""
    mean, spread = posterior_moments(width)
    return {"shift": float(mean[0]), "scale": float(np.exp(mean[1] + spread[1] ** 2 / 2))}
