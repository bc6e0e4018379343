"""Observers: streaming statistics of the annealed chains. No chain is ever stored.

At recorded steps the engine turns an observer's per-chain values f into the weighted mean and
variance under the weights just updated, which estimate E[f] and Var[f] under p_beta_k:

    mean = sum w f / sum w,     variance = sum w (f - mean)^2 / sum w       (f of v_{k-1}, w of k)

An observer may carry a per-chain state from step to step; it is updated at every step, recorded
or not, and checkpointed with the run.
"""

import abc
from collections.abc import Callable

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from annealz.paths.abstract import AbstractPath


class AbstractObserver(eqx.Module):
    """What to measure on every chain.

    Examples
    --------
    >>> import annealz
    >>> class Energy(annealz.AbstractObserver):
    ...     def measure(self, carry, x, path, beta):
    ...         return path.log_density(x, beta)
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(random_rbm(4, 6), observe={"energy": Energy()})
    >>> "energy" in estimate.run.trace.means
    True
    """

    def init(self, x, path: AbstractPath) -> PyTree[Array]:
        """The carry before the first step; every leaf has the chain axis first."""
        return ()

    def update(self, carry, x, path: AbstractPath, beta0, beta1) -> PyTree[Array]:
        """The carry after the increment from beta0 to beta1 at state x."""
        return carry

    @abc.abstractmethod
    def measure(self, carry, x, path: AbstractPath, beta) -> Float[Array, "chains ..."]:
        """The value of every chain."""


class Expectation(AbstractObserver):
    """A function of the model's variables: `function(x)` gives one value, of any shape, a chain.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> on = annealz.Expectation(lambda v: v.sum(-1))  # how many units are on
    >>> estimate = annealz.estimate_log_z(random_rbm(4, 6), observe={"on": on})
    >>> bool(1 < estimate.run.trace.means["on"][-1] < 6)
    True
    """

    function: Callable[[Array], Array]

    def measure(self, carry, x, path, beta):
        return self.function(path.position(x))


class Slope(AbstractObserver):
    """U_beta = d/dbeta log p*_beta: its mean is d log Z / dbeta, its variance is g(beta).

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> slope = {"num_chains": 100, "observers": {"slope": annealz.Slope()}}
    >>> run = annealz.anneal(path, annealz.BlockGibbs(), annealz.linear(100), **slope)
    >>> run.trace.means["slope"].shape
    (100,)
    """

    def measure(self, carry, x, path, beta):
        return path.slope(x, beta)
