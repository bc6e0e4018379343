"""What is not a model is refused by a sentence that names the way."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import BernoulliRBM

import annealz


def of_numpyro(y):
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda x: -np.dot(x, x), r"annealz.LogDensity\(fn, dim\), or annealz.from_prior"),
        (of_numpyro, r"annealz.from_numpyro\(model, \*args\)"),
        (BernoulliRBM(), r"annealz.RBM.from_sklearn\(rbm\)"),
        (LogisticRegression(), "not an unnormalised density"),
        (stats.norm(), "with a likelihood it is a prior"),
        (dist.Normal(0.0, 1.0), "with a likelihood it is a prior"),
        ({"mean": 0.0}, r"annealz.LogDensity\(fn, example\)"),
        (3, "got int: derive it from annealz.AbstractModel"),
    ],
)
def test_the_way_is_named(given, words):
    with pytest.raises(ValueError, match=words) as caught:
        annealz.estimate_log_z(given)
    assert str(caught.value).startswith("model must be an annealz model")
