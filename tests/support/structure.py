"""What a compiled program holds."""

import re

import jax
import jax.numpy as jnp

from annealz.core.random import Stream
from annealz.engine.observers import Slope
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.geometric import GeometricPath


def num_products(compiled_text: str) -> int:
    """Matrix products of a compiled program: as operations, or as calls of a library."""
    calls = re.findall(r'custom_call_target="([^"]*)"', compiled_text)
    library = [name for name in calls if re.search("dot|matmul|gemm", name, re.IGNORECASE)]
    return len(re.findall(r" dot\(", compiled_text)) + len(library)


def products_of_a_step(path: GeometricPath, kernel: AbstractKernel, record: bool) -> int:
    bits = Stream(0, "structure").at(1, jnp.arange(32))

    def step(path, bits, x, beta0, beta1):
        out = path.log_ratio(x, beta0, beta1), kernel.step(bits, x, path, beta1)
        return (*out, Slope().measure((), x, path, beta1)) if record else out

    arguments = (path, bits, jax.eval_shape(path.sample, bits), jnp.float32(0.1), jnp.float32(0.2))
    return num_products(jax.jit(step).lower(*arguments).compile().as_text())
