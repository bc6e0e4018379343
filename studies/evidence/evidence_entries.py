"""Every way in, against closed forms: five problems by each entry point, 20 seeds, everything by default.

    python studies/evidence/evidence_entries.py [--seeds R] [--entries NAME …] [--problems NAME …]
        [--out FILE]

    results/entries.jsonl    one line per run, appended as it comes; what is there is not run again

    transform    from_prior(log_likelihood, prior_transform, num_dims), both in NumPy, as dynesty takes them
    scipy        from_prior(log_likelihood, prior=…) with SciPy's distributions by name, likelihood in JAX
    numpyro      from_numpyro
    pymc         from_pymc

Evidence, with data of the header of each problem:

    normal       y_i ~ N(m, 1), m ~ N(0, 2^2)
    regression   y ~ N(X w, 0.5^2), w ~ N(0, 1) in three dimensions
    beta         k of n, p ~ Beta(2, 3)
    gamma        counts ~ Poisson(r), r ~ Gamma(2, rate 1/2)
    exponential  waits ~ Exponential(r), r ~ Exponential(1)
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln

import annealz
from evidence_peers import read_rows

__all__ = ["ENTRIES", "PROBLEMS", "model_of"]

OUT = Path(__file__).parent / "results" / "entries.jsonl"
_MEASURED = np.array([0.9, 1.7, -0.2, 2.4, 1.1, 0.6])
_DESIGN = np.column_stack(
    [np.ones(12), np.linspace(-1, 1, 12), np.linspace(-1, 1, 12) ** 2]
).astype(float)
_OUTCOMES = np.array([1.9, 0.4, 0.8, -0.2, 0.1, 0.3, -0.5, 0.6, 0.2, 1.1, 0.9, 2.2])
_YES, _ASKED = 13, 40
_COUNTS = np.array([3, 5, 1, 4, 2, 6, 3])
_WAITS = np.array([0.4, 1.3, 0.2, 2.1, 0.7])


class Entry(NamedTuple):
    """One problem: its prior, its likelihood of one vector, and the evidence."""

    prior: dict[str, Any]
    """SciPy's distributions by name."""
    log_likelihood: Callable[[Any, Any], Any]
    """Of the values, in the order of the prior, and of the array module."""
    exact: float


def _normal(m, xp):
    return xp.sum(-0.5 * (_MEASURED - m[0]) ** 2 - 0.5 * np.log(2 * np.pi))


def _regression(w, xp):
    away = (_OUTCOMES - _DESIGN[:, 0] * w[0] - _DESIGN[:, 1] * w[1] - _DESIGN[:, 2] * w[2]) / 0.5
    return xp.sum(-0.5 * away**2 - np.log(0.5) - 0.5 * np.log(2 * np.pi))


def _beta(p, xp):
    return _YES * xp.log(p[0]) + (_ASKED - _YES) * xp.log1p(-p[0])


def _gamma(r, xp):
    return _COUNTS.sum() * xp.log(r[0]) - _COUNTS.size * r[0] - gammaln(_COUNTS + 1).sum()


def _exponential(r, xp):
    return _WAITS.size * xp.log(r[0]) - r[0] * _WAITS.sum()


def _gaussian(y: np.ndarray, covariance: np.ndarray) -> float:
    return float(stats.multivariate_normal(np.zeros(y.size), covariance).logpdf(y))


_SIX = 4 * np.ones((6, 6)) + np.eye(6)
PROBLEMS: dict[str, Entry] = {
    "normal": Entry({"m": stats.norm(0, 2)}, _normal, _gaussian(_MEASURED, _SIX)),
    "regression": Entry(
        {name: stats.norm(0, 1) for name in "abc"},
        _regression,
        _gaussian(_OUTCOMES, _DESIGN @ _DESIGN.T + 0.25 * np.eye(12)),
    ),
    "beta": Entry(
        {"p": stats.beta(2, 3)}, _beta, float(betaln(2 + _YES, 3 + _ASKED - _YES) - betaln(2, 3))
    ),
    "gamma": Entry(
        {"r": stats.gamma(2, scale=2)},
        _gamma,
        float(
            gammaln(2 + _COUNTS.sum())
            - gammaln(2)
            - 2 * np.log(2)
            - (2 + _COUNTS.sum()) * np.log(0.5 + _COUNTS.size)
            - gammaln(_COUNTS + 1).sum()
        ),
    ),
    "exponential": Entry(
        {"r": stats.expon()},
        _exponential,
        float(gammaln(1 + _WAITS.size) - (1 + _WAITS.size) * np.log(1 + _WAITS.sum())),
    ),
}


def _by_transform(name: str) -> annealz.LogDensity:
    entry = PROBLEMS[name]
    priors = list(entry.prior.values())

    def transform(u):
        return np.array([one.ppf(v) for one, v in zip(priors, u, strict=True)])

    return annealz.from_prior(
        lambda x: entry.log_likelihood(x, np), transform, len(priors), names=list(entry.prior)
    )


def _by_scipy(name: str) -> annealz.LogDensity:
    entry = PROBLEMS[name]
    names = list(entry.prior)
    return annealz.from_prior(
        lambda p: entry.log_likelihood([p[one] for one in names], jnp), prior=entry.prior
    )


def _by_numpyro(name: str) -> annealz.LogDensity:
    import numpyro
    import numpyro.distributions as dist

    def model():
        if name == "normal":
            m = numpyro.sample("m", dist.Normal(0.0, 2.0))
            numpyro.sample("y", dist.Normal(m, 1.0), obs=jnp.asarray(_MEASURED))
        elif name == "regression":
            w = jnp.stack([numpyro.sample(one, dist.Normal(0.0, 1.0)) for one in "abc"])
            numpyro.sample("y", dist.Normal(_DESIGN @ w, 0.5), obs=jnp.asarray(_OUTCOMES))
        elif name == "beta":
            p = numpyro.sample("p", dist.Beta(2.0, 3.0))
            log_p = _YES * jnp.log(p) + (_ASKED - _YES) * jnp.log1p(-p)  # one order of the answers
            numpyro.factor("k", log_p)
        elif name == "gamma":
            r = numpyro.sample("r", dist.Gamma(2.0, 0.5))
            numpyro.sample("counts", dist.Poisson(r), obs=jnp.asarray(_COUNTS))
        else:
            r = numpyro.sample("r", dist.Exponential(1.0))
            numpyro.sample("waits", dist.Exponential(r), obs=jnp.asarray(_WAITS))

    return annealz.from_numpyro(model, name=name)


def _by_pymc(name: str) -> annealz.LogDensity:
    import pymc

    with pymc.Model() as model:
        if name == "normal":
            m = pymc.Normal("m", 0, 2)
            pymc.Normal("y", m, 1, observed=_MEASURED)
        elif name == "regression":
            w = [pymc.Normal(one, 0, 1) for one in "abc"]
            mean = sum(w[i] * _DESIGN[:, i] for i in range(3))
            pymc.Normal("y", mean, 0.5, observed=_OUTCOMES)
        elif name == "beta":
            p = pymc.Beta("p", 2, 3)
            answers = np.arange(_ASKED) < _YES
            pymc.Bernoulli("k", p, observed=answers.astype(int))
        elif name == "gamma":
            r = pymc.Gamma("r", alpha=2, beta=0.5)
            pymc.Poisson("counts", r, observed=_COUNTS)
        else:
            r = pymc.Exponential("r", 1)
            pymc.Exponential("waits", r, observed=_WAITS)
    return annealz.from_pymc(model, name=name)


ENTRIES: dict[str, Callable[[str], annealz.LogDensity]] = {
    "transform": _by_transform,
    "scipy": _by_scipy,
    "numpyro": _by_numpyro,
    "pymc": _by_pymc,
}


def model_of(entry: str, name: str) -> annealz.LogDensity:
    """A problem by an entry point."""
    return ENTRIES[entry](name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--entries", nargs="+", choices=list(ENTRIES), default=list(ENTRIES))
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--out", type=Path, default=OUT)
    a = parser.parse_args()
    done = {(row["entry"], row["problem"], row["seed"]) for row in read_rows(a.out)}
    for entry in a.entries:
        for name in a.problems:
            problem = PROBLEMS[name]
            model = model_of(entry, name)
            for seed in range(a.seeds):
                if (entry, name, seed) in done:
                    continue
                began = time.monotonic()
                estimate = annealz.estimate_log_z(model, seed=seed)
                row = {
                    "entry": entry,
                    "problem": name,
                    "seed": seed,
                    "exact": problem.exact,
                    "log_z": estimate.log_z,
                    "std_err": estimate.std_err,
                    "interval": list(estimate.interval()),
                    "status": estimate.status.value,
                    "evaluations": sum((estimate.evaluations or {}).values()),
                    "seconds": round(time.monotonic() - began, 2),
                }
                with a.out.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(row) + "\n")
            print(entry, name, flush=True)


if __name__ == "__main__":
    main()
