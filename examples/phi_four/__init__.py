"""The phi^4 ring and checkerboard Metropolis: a model and a kernel of one's own."""

import jax.numpy as jnp

import annealz


class Checkerboard(annealz.AbstractKernel):
    width: float = 1.2
    first: int = 0

    def step(self, bits, x, path, beta):
        for turn in (self.first, 1 - self.first):  # given the other colour they are independent
            y = x + self.width * bits.normals(x.shape[1], draw=2 * turn)
            gain = beta * (path.model.local(y, x) - path.model.local(x, x))
            gain += (1 - beta) * (x**2 - y**2) / 2
            accept = jnp.log(bits.uniforms(x.shape[1], draw=2 * turn + 1)) < gain
            x = jnp.where(accept & (jnp.arange(x.shape[1]) % 2 == turn), y, x)
        return x

    def reversed(self):
        return Checkerboard(self.width, 1 - self.first)


class PhiFour(annealz.AbstractModel):
    sites: int
    strength: float
    name: str = "phi-four"

    def local(self, y, x):  # of log_density what depends on y, the neighbours being x
        return y * (jnp.roll(x, 1, -1) + jnp.roll(x, -1, -1)) - y**2 / 2 - self.strength * y**4

    def log_density(self, x):
        return (x * jnp.roll(x, 1, -1) - x**2 / 2 - self.strength * x**4).sum(-1)

    def base(self):
        return annealz.GaussianBase.standard(self.sites)

    def kernel(self):
        return Checkerboard()
