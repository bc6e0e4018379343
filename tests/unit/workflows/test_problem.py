"""A user's own model, path and kernel through the front door, by the public interface alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import annealz
import annealz.testing
from annealz.testing import assert_within_mc_error

PLACES = 6


class LevelsBase(annealz.AbstractBase):
    """Every unit uniform on 0, 1, 2."""

    name: str = "levels"

    @property
    def log_z(self):
        return PLACES * float(np.log(3))

    def sample(self, bits, draw=0):
        return jnp.floor(bits.uniforms(PLACES, draw) * 2.999999)

    def log_density(self, x):
        return jnp.zeros(x.shape[0])


class LevelsPath(annealz.AbstractPath):
    base: annealz.AbstractBase
    field: jnp.ndarray

    @property
    def log_z0(self):
        return self.base.log_z

    def sample(self, bits):
        return self.base.sample(bits)

    def log_density(self, x, beta):
        return beta * (x @ self.field)

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * (x @ self.field)


class LevelsMetropolis(annealz.AbstractKernel):
    """One unit of its own for every chain, proposed anew: symmetric."""

    def step(self, bits, x, path, beta):
        uniforms = bits.uniforms(3, draw=0)
        unit = jnp.floor(uniforms[:, 0] * (PLACES - 1e-3)).astype(jnp.int32)
        level = jnp.floor(uniforms[:, 1] * 2.999999)
        proposed = x.at[jnp.arange(x.shape[0]), unit].set(level)
        gain = path.log_density(proposed, beta) - path.log_density(x, beta)
        accept = jnp.log(uniforms[:, 2]) < gain
        return jnp.where(accept[:, None], proposed, x)

    def reversed(self):
        return self


class Levels(annealz.AbstractModel):
    """Independent units on 0, 1, 2 in a field."""

    field: jnp.ndarray
    name: str = "levels-6"

    def choose_base(self, base="auto", data=None):
        if base not in ("auto", "levels") or data is not None:
            raise ValueError(f"unknown base {base!r}: choose one of auto, levels.")
        return LevelsBase()

    def path(self, base, marginal="visible"):
        return LevelsPath(base, self.field)

    def kernel(self):
        return LevelsMetropolis()

    @property
    def log_z(self):
        states = np.arange(3)[:, None] * np.asarray(self.field, np.float64)
        return float(np.logaddexp.reduce(states, 0).sum())


MODEL = Levels(jnp.linspace(-1.5, 1.0, PLACES))
OPTIONS = {"num_steps": 200, "num_chains": 400}


@pytest.mark.parametrize("schedule", ["mixing", "linear", "sm08", "varopt"])
def test_a_model_of_ones_own_gets_every_schedule(schedule, seed):
    estimate = annealz.estimate_log_z(MODEL, schedule=schedule, seed=seed, **OPTIONS)
    assert_within_mc_error(estimate.log_z, MODEL.log_z, estimate.std_err)
    assert (estimate.model, estimate.base, estimate.marginal) == ("levels-6", "levels", None)
    assert "marginal" not in repr(estimate)


def test_two_sides_of_a_model_of_ones_own(seed):
    estimate = annealz.estimate_log_z(MODEL, two_sided=True, seed=seed, **OPTIONS)
    assert estimate.plan.draws == "approximate"
    assert_within_mc_error(estimate.log_z, MODEL.log_z, estimate.std_err)


class Interrupted(Exception):
    pass


def stop(progress):
    if progress.step >= 100 and np.isfinite(progress.log_z):
        raise Interrupted


def test_a_model_that_no_folder_can_hold_is_given_again(tmp_path, seed):
    options = {**OPTIONS, "schedule": "linear", "seed": seed}
    whole = annealz.estimate_log_z(MODEL, **options)
    with pytest.raises(Interrupted):
        annealz.estimate_log_z(
            MODEL, out=tmp_path / "r", on_progress=stop, chunk_steps=50, **options
        )
    with pytest.raises(ValueError, match="levels-6.*give it again by model"):
        annealz.resume(tmp_path / "r")
    with pytest.raises(ValueError, match="another model"):
        annealz.resume(tmp_path / "r", model=Levels(MODEL.field + 1))
    resumed = annealz.resume(tmp_path / "r", model=MODEL)
    assert np.array_equal(resumed.log_weights, whole.log_weights)
    assert annealz.resume(tmp_path / "r").log_z == whole.log_z  # a finished run is only read


def test_a_path_or_kernel_that_was_given_is_given_again(tmp_path, seed):
    model = annealz.RBM(np.zeros((2, PLACES)), np.zeros(2), np.zeros(PLACES))
    path, kernel = MODEL.path(LevelsBase()), LevelsMetropolis()
    options = {**OPTIONS, "schedule": "linear", "seed": seed, "path": path, "kernel": kernel}
    whole = annealz.estimate_log_z(model, **options)
    assert_within_mc_error(whole.log_z, MODEL.log_z, whole.std_err)
    with pytest.raises(Interrupted):
        annealz.estimate_log_z(
            model, out=tmp_path / "r", on_progress=stop, chunk_steps=50, **options
        )
    with pytest.raises(ValueError, match="give it again, path=path"):
        annealz.resume(tmp_path / "r", kernel=kernel)
    with pytest.raises(ValueError, match="give it again, kernel=kernel"):
        annealz.resume(tmp_path / "r", path=path)
    resumed = annealz.resume(tmp_path / "r", path=path, kernel=kernel)
    assert np.array_equal(resumed.log_weights, whole.log_weights)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base": "nope"}, "choose one of auto, levels"),
        ({"marginal": "hidden"}, "marginal must be one of visible"),
        ({"path": MODEL.path(LevelsBase()), "base": "levels"}, "a path has its own base"),
        ({"path": MODEL.path(LevelsBase()), "marginal": "hidden"}, "a path has its own states"),
        ({"path": LevelsBase()}, "path must be an annealz.AbstractPath, got LevelsBase"),
        ({"kernel": LevelsMetropolis}, "kernel must be an annealz.AbstractKernel"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(options, words):
    with pytest.raises(ValueError, match=words):
        annealz.estimate_log_z(MODEL, **options)


def test_what_is_no_model_is_refused():
    with pytest.raises(ValueError, match="must be an annealz model.*got a function"):
        annealz.estimate_log_z(lambda x: x)


def test_schedules_are_compared_on_a_model_of_ones_own(seed):
    result = annealz.compare_schedules(
        MODEL, schedules=["linear", "mixing"], num_steps=200, num_chains=100, seed=seed
    )
    assert [c.name for c in result.contenders] == ["linear", "mixing"]
    assert result.base == "levels"


def test_a_given_path_starts_its_reverse_run_from_states_of_its_own():
    """Which layer a given path anneals is not known, so draws come from the forward run."""
    model = annealz.testing.random_rbm(8, 8, 0.5)
    base = annealz.BernoulliBase.uniform(8)
    path = annealz.GeometricPath(base, model, "hidden")
    options = {"num_steps": 50, "num_chains": 200, "schedule": "linear", "two_sided": True}
    options["second_opinion"] = False
    given = annealz.estimate_log_z(model, path=path, **options)
    assert given.plan.draws == "approximate"
    own = annealz.estimate_log_z(model, base=base, marginal="hidden", **options)
    assert own.plan.draws == "exact"


def test_another_model_than_that_of_the_folder_is_refused(tmp_path):
    one, other = (annealz.testing.random_rbm(3, 4, scale) for scale in (0.5, 1.0))
    options = {"num_steps": 5, "num_chains": 20, "schedule": "linear", "out": tmp_path / "r"}
    options |= {"base": "uniform", "second_opinion": False}
    annealz.estimate_log_z(one, **options)
    (tmp_path / "r" / "part-forward-1.npz").unlink()
    with pytest.raises(ValueError, match="another model than the one given"):
        annealz.resume(tmp_path / "r", model=other)
