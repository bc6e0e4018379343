"""What paths, bases and kernels do, each as one compiled program: eagerly it would be dozens."""

import equinox as eqx
import numpy as np


@eqx.filter_jit
def _call(path, name: str, x, betas):
    return getattr(path, name)(x, *betas)


def _value(path, name: str, x, *betas: float) -> np.ndarray:
    return np.float64(_call(path, name, x, tuple(np.asarray(beta) for beta in betas)))


def log_density(path, x, beta: float) -> np.ndarray:
    return _value(path, "log_density", x, beta)


def slope(path, x, beta: float) -> np.ndarray:
    return _value(path, "slope", x, beta)


def log_ratio(path, x, low: float, high: float) -> np.ndarray:
    return _value(path, "log_ratio", x, low, high)


@eqx.filter_jit
def sample(path, bits):
    """The draws of a path or a base."""
    return path.sample(bits)


@eqx.filter_jit
def step(kernel, bits, x, path, beta):
    """One sweep of a kernel."""
    return kernel.step(bits, x, path, beta)


@eqx.filter_jit
def base_density(base, x):
    """log p* of a base or a model."""
    return base.log_density(x)
