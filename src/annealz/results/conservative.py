"""A lower bound of the log-likelihood: reverse annealing from the examples themselves (RAISE).

A forward run draws x_0 ~ p_0, then x_k ~ T_k(. | x_{k-1}) for k = 1..K. Where its chains end has a law of
its own, the annealed model

    p_annl(v) = sum over x_0..x_{K-1} of F(x_0..x_{K-1}, v),     F = p_0(x_0) prod_k T_k(x_k | x_{k-1})

A reverse run starts at x_K = v and draws x_{k-1} ~ T~_k(. | x_k) for k = K..1, T~ the reversed kernel,
T~_k(x | y) = T_k(y | x) p_k(x) / p_k(y). With R = prod_k T~_k(x_{k-1} | x_k) the kernels cancel:

    F / R = p_0(x_0) prod_k p*_k(x_k) / p*_k(x_{k-1})
          = p*_B(v) / Z_A  prod_k p*_{k-1}(x_{k-1}) / p*_k(x_{k-1})
          = p*_B(v) / Z_A  w_reverse

so that p^(v) = p*_B(v) / Z_A mean w_reverse is an unbiased estimate of p_annl(v), whatever the mixing and
the number of chains, and

    E[log p^(v)] <= log p_annl(v)                               (Jensen)
    E[log p_annl(v)] <= E[log p_B(v)]   for v ~ p_B             (Gibbs)

The first line always holds. The second holds on average over draws of the model; for other data it is
not a theorem, because p_annl may fit them better than p_B. That happens where the base has seen the data.
On the packaged models of 20 units, 10,000 steps from the base rate gave test images 0.5 to 4.6 nats too
much, from the uniform base 1.2 to 4.9 too little. So the uniform base is the default, which knows of the
data only what the model holds.

p^ and the plain estimate p*_B(v) / Z^ share p*_B(v), which varies most from example to example. So a
few examples are enough to see the difference, and it is an upper bound of log Z:

    mean log p^(v) = mean log p*_B(v) - log Z_up,     log Z_up = log Z_A - mean over v of log mean w_reverse

Y. Burda, R. Grosse and R. Salakhutdinov, Accurate and conservative estimates of MRF log-likelihood
using reverse annealing, AISTATS 2015.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.random import derive_seed
from annealz.core.weights import log_mean
from annealz.diagnostics.sheet import record_of
from annealz.engine.anneal import anneal
from annealz.engine.progress import Progress
from annealz.engine.run import Run
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.density import log_densities
from annealz.models.rbm import RBM
from annealz.paths.geometric import GeometricPath
from annealz.schedules.schedule import Schedule

NUM_EXAMPLES = 100
NUM_CHAINS = 10


@dataclasses.dataclass(frozen=True)
class Conservative:
    """An upper bound of log Z, and the log-likelihoods of the examples that gave it.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> model = random_rbm(4, 6)
    >>> rows, _ = annealz.exact_samples(model, 50)
    >>> annealz.conservative_log_z(model, rows, annealz.linear(100)).log_likelihoods.shape
    (50,)
    """

    examples: np.ndarray
    """(examples,): which rows of the data, in order."""
    log_densities: np.ndarray
    """(examples,): log p*(v) of each."""
    log_weights: np.ndarray
    """(examples, chains): log w_reverse."""
    log_z0: float
    """log Z_A, exact."""
    run: Run

    @property
    def log_z(self) -> float:
        """log Z_A - mean over examples of log mean w: natural logarithm, biased high."""
        return self.log_z0 - float(self._log_means.mean())

    @property
    def std_err(self) -> float:
        """Of `log_z`, over examples and chains; infinite for one example."""
        size = len(self.examples)
        return float(self._log_means.std(ddof=1) / np.sqrt(size)) if size > 1 else np.inf

    @property
    def log_likelihoods(self) -> np.ndarray:
        """(examples,): log p^(v), each biased low for log p_annl(v)."""
        return self.log_densities - self.log_z0 + self._log_means

    @property
    def num_examples(self) -> int:
        """How many were taken."""
        return self.log_weights.shape[0]

    @property
    def num_chains(self) -> int:
        """Of each example."""
        return self.log_weights.shape[1]

    def record(self) -> dict[str, Any]:
        """Return JSON values."""
        own = record_of(self, "std_err log_z num_examples num_chains")
        return own | record_of(self.run, "sweeps seconds")

    @property
    def _log_means(self) -> np.ndarray:
        return np.array([log_mean(row) for row in self.log_weights])


def conservative_log_z(
    model: RBM,
    examples: np.ndarray,
    schedule: Schedule,
    *,
    base: BernoulliBase | None = None,
    num_examples: int = NUM_EXAMPLES,
    num_chains: int = NUM_CHAINS,
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
) -> Conservative:
    """Anneal in reverse from examples (rows, visible) of zeros and ones.

    Parameters
    ----------
    schedule : frozen, such as that of the forward run
    base : where the chains go down to; uniform by default. With one that was made from data this is
        no longer conservative.
    num_examples : how many rows to take, at random and without replacement
    num_chains : of each example; more of them raise log p^ towards log p_annl
    seed : of the choice of rows and of the chains; their streams are not those of a forward run

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> model = random_rbm(4, 6)
    >>> rows, _ = annealz.exact_samples(model, 50)
    >>> above = annealz.conservative_log_z(model, rows, annealz.linear(100))
    >>> abs(above.log_z - annealz.exact_log_z(model)) < 5 * above.std_err
    True
    """
    for name, count in (("num_examples", num_examples), ("num_chains", num_chains)):
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}.")
    generator = np.random.default_rng(derive_seed(seed, "conservative", "examples"))
    chosen = np.sort(generator.permutation(len(examples))[:num_examples])
    rows = examples[chosen]
    path = GeometricPath(base or BernoulliBase.uniform(model.num_visible), model)

    def report(now: Progress) -> None:  # the mean over all chains does not estimate this
        if on_progress is not None:
            on_progress(now._replace(log_z=np.nan, ess=np.nan, stage="below"))

    run = anneal(
        path,
        BlockGibbs(),
        schedule,
        num_chains=chosen.size * num_chains,
        seed=seed,
        purpose="conservative",
        start=np.repeat(rows, num_chains, axis=0),  # (examples * chains, visible)
        reverse=True,
        on_progress=report,
    )
    return Conservative(
        examples=chosen,
        log_densities=log_densities(model, rows),
        log_weights=run.log_weights.reshape(chosen.size, num_chains),
        log_z0=path.log_z0,
        run=run,
    )
