"""The engine: E[w] = Z_B / Z_A exactly and by z-test, the same bits however it is run.

Exact identities come first: on a few states the expected weight is a product of matrices. Then
the engine's own weights are tied to it by a z-test. Every mutant must break both.
"""

import importlib
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from annealz import advance, blocks
from annealz.anneal import Progress, anneal
from annealz.bases import BernoulliBase
from annealz.formats.archive import load_archive
from annealz.kernels import AbstractKernel, BlockGibbs
from annealz.models.exact import exact_log_z, exact_marginals
from annealz.names import MARGINALS
from annealz.observers import AbstractObserver, Expectation, Slope
from annealz.paths import GeometricPath
from annealz.random import Stream
from annealz.run import Run
from annealz.schedules import Schedule, linear, sm08
from annealz.testing import (
    assert_within_mc_error,
    binary_states,
    independent_spins,
    log_joint,
    random_rbm,
)
from test_gibbs import (
    BiasedGibbs,
    ScriptedBits,
    StaleGibbs,
    exact_in_float32,
    in_float64,
    scripts,
    state_index,
    transition_matrix,
)

engine = importlib.import_module("annealz.anneal")  # the package exports the function of this name
checkpoints = importlib.import_module("annealz.checkpoint")

marginals = pytest.mark.parametrize("marginal", MARGINALS)

# Few, uneven steps: the weights are far from constant and the kernel is far from mixing.
MODEL = exact_in_float32(random_rbm(4, 5, scale=1.2, seed=11))
BASE = BernoulliBase.from_logits([0.75, -1.5, 1.0, -0.25, 2.0])
SCHEDULE = Schedule(np.array([0.0, 0.3125, 0.5, 0.8125, 1.0]))
BETAS = jnp.asarray(SCHEDULE.betas, jnp.float32)
LOG_RATIO_OF_Z = exact_log_z(MODEL) - (BASE.log_z + 4 * np.log(2))


# --- the z-test itself ------------------------------------------------------------------------


def test_the_z_test_knows_four_errors_from_six():
    assert_within_mc_error(1.4, 1.0, 0.1)
    assert_within_mc_error([1.4, 0.7], 1.0, [0.1, 0.1])
    for estimate in (1.6, 0.4, np.nan, [1.0, 1.6]):
        with pytest.raises(AssertionError, match=r"z = .*seed \d+"):
            assert_within_mc_error(estimate, 1.0, 0.1)
    for std_err in (0.0, np.nan, np.inf, -1.0):
        with pytest.raises(AssertionError, match="positive and finite"):
            assert_within_mc_error(1.0, 1.0, std_err)
    assert_within_mc_error(1.6, 1.0, 0.1, num_replicates=8)  # Student's tails are wide
    with pytest.raises(AssertionError):
        assert_within_mc_error(1.6, 1.0, 0.1, num_replicates=800)


# --- mutants ----------------------------------------------------------------------------------


class EagerPath(GeometricPath):
    """Half of the mutant that moves before it reweights: the first state has already moved."""

    first_beta: jax.Array

    def __init__(self, base, model, marginal, first_beta):
        super().__init__(base, model, marginal)
        self.first_beta = first_beta

    def sample(self, bits):
        x = super().sample(bits)
        latent = bits.bernoulli(self.latent_logits(x, self.first_beta), draw=2)
        return bits.bernoulli(self.state_logits(latent, self.first_beta), draw=3)


def true_code(marginal: str) -> tuple[GeometricPath, AbstractKernel]:
    return GeometricPath(BASE, MODEL, marginal), BlockGibbs()


def stale_beta(marginal: str) -> tuple[GeometricPath, AbstractKernel]:
    """v_k ~ T of beta_{k-1}."""
    return GeometricPath(BASE, MODEL, marginal), StaleGibbs(BETAS)


def move_before_reweight(marginal: str) -> tuple[GeometricPath, AbstractKernel]:
    """v_k ~ T of beta_k, and only then the increment to beta_k, at v_k."""
    return EagerPath(BASE, MODEL, marginal, BETAS[1]), StaleGibbs(BETAS, shift=1)


def wrong_sign_of_base(marginal: str) -> tuple[GeometricPath, AbstractKernel]:
    """The biases change by b + b_A where b - b_A is due."""
    path = GeometricPath(BASE, MODEL, marginal)
    wrong = GeometricPath(BernoulliBase.from_logits(-BASE.logits), MODEL, marginal)
    starts = (path.base, path.state_bias, path.latent_bias)
    return eqx.tree_at(lambda p: (p.base, p.state_bias, p.latent_bias), wrong, starts), BlockGibbs()


def biased_coin(marginal: str) -> tuple[GeometricPath, AbstractKernel]:
    return GeometricPath(BASE, MODEL, marginal), BiasedGibbs()


MUTANTS = [stale_beta, move_before_reweight, wrong_sign_of_base, biased_coin]
mutants = pytest.mark.parametrize("mutant", MUTANTS)


# --- the identity, without noise --------------------------------------------------------------


def first_law(path: GeometricPath) -> np.ndarray:
    """The law of path.sample, by running it over all scripts of its coins."""
    num_latent, num_units = path.to_state.shape
    sizes = {0: num_units, 2: num_latent, 3: num_units}
    bits = ScriptedBits(dict(zip(sizes, scripts(*sizes.values()), strict=True)))
    states = path.sample(bits)
    repeats = 2 ** sum(size for draw, size in sizes.items() if draw not in bits.used)
    probabilities = np.exp(bits.log_probability) / repeats
    return np.bincount(state_index(states), probabilities, minlength=2**num_units)


def expected_weight(path: GeometricPath, kernel: AbstractKernel, betas: np.ndarray) -> float:
    """E[w] of Algorithm 1, in float64: the law of the state, reweighted and moved step by step."""
    with jax.enable_x64(True):
        wide = in_float64(path)
        law = first_law(wide)
        states = binary_states(path.to_state.shape[1])
        for low, high in itertools.pairwise(betas):
            law = law * np.exp(np.float64(wide.log_ratio(states, low, high)))
            law = law @ transition_matrix(kernel, path, high)
    return float(law.sum())


@marginals
def test_expected_weight_is_the_ratio_of_z(marginal: str):
    weight = expected_weight(*true_code(marginal), SCHEDULE.betas)
    assert weight == pytest.approx(np.exp(LOG_RATIO_OF_Z), rel=1e-10)


@marginals
@pytest.mark.parametrize("num_steps", [1, 2, 7])
def test_expected_weight_does_not_depend_on_the_schedule(marginal: str, num_steps: int):
    """Unbiased whatever the mixing: one step is plain importance sampling."""
    for betas in (np.linspace(0, 1, num_steps + 1), np.linspace(0, 1, num_steps + 1) ** 3):
        weight = expected_weight(*true_code(marginal), betas)
        assert weight == pytest.approx(np.exp(LOG_RATIO_OF_Z), rel=1e-10)


@marginals
@mutants
def test_mutants_break_the_identity(marginal: str, mutant: Callable):
    """By far more than the z-test below needs to see them."""
    bias = expected_weight(*mutant(marginal), SCHEDULE.betas) / np.exp(LOG_RATIO_OF_Z) - 1
    assert abs(bias) > 0.02


# --- the engine meets the identity ------------------------------------------------------------

NUM_CHAINS = 2**18


@pytest.fixture
def large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(blocks._MAX_BLOCK, jax.default_backend(), 2**16)


def relative_weight(path, kernel, seed: int) -> tuple[float, float]:
    """Mean of w Z_A / Z_B, which is to be 1, and its standard error over independent chains."""
    run = anneal(path, kernel, SCHEDULE, num_chains=NUM_CHAINS, seed=seed, observers={})
    weights = np.exp(run.log_weights - LOG_RATIO_OF_Z)
    return weights.mean(), weights.std(ddof=1) / np.sqrt(NUM_CHAINS)


@marginals
def test_mean_weight_of_the_engine(marginal: str, seed: int, large_blocks: None):
    for replicate in range(3):
        mean, std_err = relative_weight(*true_code(marginal), seed + replicate)
        assert_within_mc_error(mean, 1.0, std_err)


@marginals
@mutants
def test_mean_weight_refuses_mutants(marginal: str, mutant: Callable, seed: int, large_blocks):
    """Stale beta, move before reweight, wrong sign of the base, biased coin: every seed sees it."""
    for replicate in range(3):
        mean, std_err = relative_weight(*mutant(marginal), seed + replicate)
        with pytest.raises(AssertionError, match="z = "):
            assert_within_mc_error(mean, 1.0, std_err)
        assert abs(mean - 1) > 8 * std_err  # no luck is involved


@marginals
@mutants
def test_mutants_in_the_engine_are_those_enumerated(
    marginal: str, mutant: Callable, seed: int, large_blocks: None
):
    """The engine's order of operations is that of Algorithm 1: even its mutants agree."""
    mean, std_err = relative_weight(*mutant(marginal), seed)
    expected = expected_weight(*mutant(marginal), SCHEDULE.betas) / np.exp(LOG_RATIO_OF_Z)
    assert_within_mc_error(mean, expected, std_err)


def test_independent_spins_are_annealed_without_weights_noise(seed: int):
    """From its own base, a model without weights has log w constant: log Z is exact."""
    model, log_z = independent_spins([0.5, -2.0], [1.0, -1.0, 0.5])
    path = GeometricPath(BernoulliBase.from_logits(model.visible_bias), model)
    run = anneal(path, BlockGibbs(), linear(50), num_chains=8, seed=seed)
    np.testing.assert_allclose(run.log_weights + run.log_z0, log_z, atol=1e-5)
    np.testing.assert_allclose(run.trace.ess, 8, rtol=1e-6)


# --- the same bits however it is run ----------------------------------------------------------


class RunningSum(AbstractObserver):
    """Carries the sum of all states that were weighted, and how many they were."""

    def init(self, x, path):
        return {"sum": jnp.zeros_like(x), "count": jnp.zeros(x.shape[0], jnp.int32)}

    def update(self, carry, x, path, beta0, beta1):
        return {"sum": carry["sum"] + x, "count": carry["count"] + 1}

    def measure(self, carry, x, path, beta):
        return carry["sum"]


OBSERVERS = {"slope": Slope(), "sum": RunningSum()}


def assert_same_run(one: Run, two: Run) -> None:
    """Bit for bit: weights, states, every trace, every carry."""
    first, second = (
        (run.log_weights, run.states, run.carries, *vars(run.trace).values()) for run in (one, two)
    )
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def small_run(marginal: str = "visible", **options) -> Run:
    settings = {"num_chains": 37, "seed": 3, "record_every": 3, "observers": OBSERVERS}
    path, kernel = true_code(marginal)
    return anneal(path, kernel, options.pop("schedule", linear(100)), **{**settings, **options})


@marginals
@pytest.mark.parametrize("chunk_steps", [1, 7, 1000])
def test_chunks_change_no_bit(marginal: str, chunk_steps: int):
    """A step that ends a chunk runs in another branch of the program than one within it."""
    assert_same_run(small_run(marginal), small_run(marginal, chunk_steps=chunk_steps))


@marginals
def test_chunks_change_no_bit_of_wider_models(marginal: str):
    """Wide enough for vector units and tiled products."""
    path = GeometricPath(BernoulliBase.uniform(131), random_rbm(33, 131, 0.3, seed=4), marginal)
    runs = [
        anneal(path, BlockGibbs(), sm08(90), num_chains=50, seed=1, record_every=8, chunk_steps=c)
        for c in (None, 1, 13)
    ]
    assert_same_run(runs[0], runs[1])
    assert_same_run(runs[0], runs[2])


def test_more_steps_than_a_chunk_can_hold(monkeypatch: pytest.MonkeyPatch):
    """Chunks are cut by the capacity for steps or for records, whichever is smaller."""
    whole = small_run(schedule=linear(700), record_every=1)
    assert_same_run(whole, small_run(schedule=linear(700), record_every=1, chunk_steps=10**6))
    assert whole.trace.steps.tolist() == list(range(1, 701))
    monkeypatch.setattr(engine, "CHUNK_CAPACITY", 64)
    assert_same_run(whole, small_run(schedule=linear(700), record_every=1, chunk_steps=10**6))


@pytest.mark.parametrize(
    ("num_steps", "every", "steps"),
    [(10, 4, [4, 8, 10]), (10, 5, [5, 10]), (10, 100, [10]), (3, 1, [1, 2, 3]), (1, 1, [1])],
)
@pytest.mark.parametrize("chunk_steps", [None, 1, 3])
def test_records_are_where_they_were_asked_for(num_steps, every, steps, chunk_steps):
    run = small_run(schedule=linear(num_steps), record_every=every, chunk_steps=chunk_steps)
    assert run.trace.steps.tolist() == steps
    np.testing.assert_allclose(run.trace.betas, np.array(steps) / num_steps, rtol=1e-6)
    for column in (run.trace.log_z, run.trace.ess, run.trace.means["slope"]):
        assert column.shape == (len(steps),)
    assert run.trace.means["sum"].shape == (len(steps), 5)


def test_records_by_default_are_about_a_thousand():
    run = small_run(schedule=linear(2500), record_every=None)
    assert run.trace.steps.tolist() == [*range(3, 2500, 3), 2500]


@marginals
def test_one_step_is_importance_sampling(marginal: str):
    path, _ = true_code(marginal)
    run = small_run(marginal, schedule=linear(1))
    x = path.sample(Stream(3, "anneal").at(0, jnp.arange(37)))
    np.testing.assert_allclose(run.log_weights, path.log_ratio(x, 0.0, 1.0), rtol=1e-5, atol=1e-6)
    assert run.trace.log_z[-1] == pytest.approx(log_mean(run), abs=1e-5)


def log_mean(run: Run) -> float:
    return run.log_z0 + float(logsumexp(run.log_weights)) - np.log(run.num_chains)


@marginals
def test_one_chain(marginal: str):
    run = small_run(marginal, num_chains=1)
    assert run.log_weights.shape == (1,)
    np.testing.assert_allclose(run.trace.ess, 1)
    np.testing.assert_array_equal(run.trace.variances["slope"], 0)
    first = small_run(marginal)
    np.testing.assert_array_equal(run.states[0], first.states[0])
    assert run.log_weights[0] == pytest.approx(first.log_weights[0], abs=1e-5)


@marginals
@pytest.mark.parametrize("largest", [16, 10, 1])
def test_blocks_change_no_chain(marginal: str, largest: int, monkeypatch: pytest.MonkeyPatch):
    """37 chains in blocks of 13, 10 or 1: filled-up chains must not count, statistics must merge.

    The model's products are exact in float32, so that the size of a block rounds nothing.
    """
    whole = small_run(marginal)
    monkeypatch.setitem(blocks._MAX_BLOCK, jax.default_backend(), largest)
    starts, size = blocks.split_chains(37)
    assert len(starts) == -(-37 // largest)
    assert largest == 1 or len(starts) * size > 37  # the last block is filled up
    blocked = small_run(marginal)
    np.testing.assert_array_equal(blocked.states, whole.states)
    np.testing.assert_array_equal(blocked.carries["sum"]["sum"], whole.carries["sum"]["sum"])
    np.testing.assert_allclose(blocked.log_weights, whole.log_weights, atol=1e-5)
    np.testing.assert_allclose(blocked.trace.log_z, whole.trace.log_z, atol=1e-5)
    np.testing.assert_allclose(blocked.trace.ess, whole.trace.ess, rtol=1e-5)
    for name in OBSERVERS:
        for kind in ("means", "variances"):
            one, two = (getattr(run.trace, kind)[name] for run in (whole, blocked))
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5, err_msg=f"{kind} {name}")


def test_traces_are_those_of_the_weights():
    """The last record against the log weights themselves, in float64."""
    run = small_run(num_chains=500)
    weights = np.exp(run.log_weights - run.log_weights.max())
    assert run.trace.log_z[-1] == pytest.approx(log_mean(run), abs=1e-5)
    assert run.trace.ess[-1] == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-5)
    share = weights / weights.sum()
    mean = share @ run.carries["sum"]["sum"]
    np.testing.assert_allclose(run.trace.means["sum"][-1], mean, rtol=1e-5)
    variance = share @ (run.carries["sum"]["sum"] - mean) ** 2
    np.testing.assert_allclose(run.trace.variances["sum"][-1], variance, rtol=1e-4)


def test_a_run_is_a_function_of_seed_and_purpose():
    first = small_run()
    assert_same_run(first, small_run())
    for other in (small_run(seed=4), small_run(purpose="pilot")):
        assert not np.array_equal(first.log_weights, other.log_weights)
    assert (first.seed, first.purpose, first.sweeps) == (3, "anneal", 3700)


def test_recording_changes_no_weight():
    first = small_run()
    for options in ({"record_every": 50}, {"observers": {}}):
        other = small_run(**options)
        np.testing.assert_array_equal(first.log_weights, other.log_weights)
        np.testing.assert_array_equal(first.states, other.states)


def test_progress_ends_with_the_result():
    seen: list[Progress] = []
    run = small_run(chunk_steps=30, on_progress=seen.append)
    assert [progress.step for progress in seen] == [30, 60, 90, 100]
    assert {progress.num_steps for progress in seen} == {100}
    assert seen[-1].log_z == pytest.approx(log_mean(run), rel=1e-12)
    assert seen[-1].ess == pytest.approx(run.trace.ess[-1], rel=1e-4)


# --- checkpoints ------------------------------------------------------------------------------


def interrupt_at(*steps: int) -> Callable[[Progress], None]:
    """Raise KeyboardInterrupt at the first report at or after each of these steps."""
    waiting = sorted(steps)

    def on_progress(progress: Progress) -> None:
        if waiting and progress.step >= waiting[0]:
            del waiting[0]
            raise KeyboardInterrupt

    return on_progress


@marginals
def test_a_resumed_run_ends_in_the_same_bits(marginal: str, tmp_path: Path, seed: int):
    """Interrupted at random steps, some of them between two records, with other chunks after."""
    whole = small_run(marginal)
    generator = np.random.default_rng(seed)
    for trial in range(4):
        path = tmp_path / f"{trial}.npz"
        steps = generator.choice(np.arange(1, 100), 3, replace=False).tolist()
        on_progress = interrupt_at(*steps)
        for _ in range(20):
            try:
                chunk_steps = int(generator.integers(1, 12))
                resumed = small_run(
                    marginal, checkpoint=path, chunk_steps=chunk_steps, on_progress=on_progress
                )
                break
            except KeyboardInterrupt:
                assert path.exists()
        assert_same_run(whole, resumed)
        assert resumed.messages == ()


def test_resumed_blocks_end_in_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(blocks._MAX_BLOCK, jax.default_backend(), 16)
    whole = small_run()
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=tmp_path / "c", chunk_steps=7, on_progress=interrupt_at(50))
    assert_same_run(whole, small_run(checkpoint=tmp_path / "c"))


def test_a_run_before_its_first_record_is_resumed(tmp_path: Path):
    whole = small_run(record_every=90)
    with pytest.raises(KeyboardInterrupt):
        small_run(
            record_every=90, checkpoint=tmp_path / "c", chunk_steps=2, on_progress=interrupt_at(2)
        )
    assert_same_run(whole, small_run(record_every=90, checkpoint=tmp_path / "c"))


def test_a_finished_run_is_read_back(tmp_path: Path):
    whole = small_run(checkpoint=tmp_path / "c")
    steps: list[Progress] = []
    again = small_run(checkpoint=tmp_path / "c", on_progress=steps.append)
    assert_same_run(whole, again)
    assert steps == []


def test_seconds_add_up_over_resumes(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=tmp_path / "c", chunk_steps=7, on_progress=interrupt_at(50))
    _, meta = load_archive(tmp_path / "c")
    assert meta["step"] == 56
    assert small_run(checkpoint=tmp_path / "c").seconds > meta["seconds"] > 0


def test_checkpoints_are_written_while_the_run_goes(tmp_path: Path):
    """With no time between them, one after every chunk: a killed process loses one chunk."""
    steps = []

    def look(_: Progress) -> None:
        if (tmp_path / "c").exists():
            steps.append(load_archive(tmp_path / "c")[1]["step"])

    small_run(checkpoint=tmp_path / "c", checkpoint_seconds=0, chunk_steps=25, on_progress=look)
    assert steps == [25, 50, 75]


def expected_state(x):
    return x


def other_state(x):
    return 1 - x


OTHER_RUNS = {
    "seed": {"seed": 4},
    "purpose": {"purpose": "pilot"},
    "schedule": {"schedule": sm08(100)},
    "more steps": {"schedule": linear(101)},
    "num_chains": {"num_chains": 38},
    "record_every": {"record_every": 4},
    "fewer observers": {"observers": {"slope": Slope()}},
    "other observer": {"observers": {"slope": Slope(), "sum": Slope()}},
    "other marginal": {"marginal": "hidden"},
}


@pytest.mark.parametrize("difference", OTHER_RUNS)
def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, difference: str):
    """Going on would end in a plausible number of neither run."""
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=tmp_path / "c", chunk_steps=7, on_progress=interrupt_at(50))
    before = (tmp_path / "c").read_bytes()
    with pytest.raises(ValueError, match="c belongs to another run"):
        small_run(checkpoint=tmp_path / "c", **OTHER_RUNS[difference])
    assert (tmp_path / "c").read_bytes() == before


def checkpointed(path: Path, model, kernel, observers=None, base=BASE) -> Run:
    return anneal(
        GeometricPath(base, model), kernel, linear(6), num_chains=5, checkpoint=path,
        observers=observers or {},
    )  # fmt: skip


def test_a_checkpoint_of_another_model_base_or_kernel_is_refused(tmp_path: Path):
    path = tmp_path / "c"
    checkpointed(path, MODEL, BlockGibbs())
    changed = eqx.tree_at(
        lambda m: m.weights, MODEL, MODEL.weights.at[0, 0].set(np.nextafter(MODEL.weights[0, 0], 9))
    )
    base = BernoulliBase.uniform(5)
    for model, kernel, other_base in (
        (changed, BlockGibbs(), BASE),
        (MODEL, BiasedGibbs(), BASE),
        (MODEL, BlockGibbs(), base),
    ):
        with pytest.raises(ValueError, match="belongs to another run"):
            checkpointed(path, model, kernel, base=other_base)


def test_a_checkpoint_of_another_function_is_refused(tmp_path: Path):
    path = tmp_path / "c"
    checkpointed(path, MODEL, BlockGibbs(), {"f": Expectation(expected_state)})
    checkpointed(path, MODEL, BlockGibbs(), {"f": Expectation(expected_state)})
    with pytest.raises(ValueError, match="belongs to another run"):
        checkpointed(path, MODEL, BlockGibbs(), {"f": Expectation(other_state)})


def test_a_checkpoint_of_another_lambda_is_refused(tmp_path: Path):
    path = tmp_path / "c"
    checkpointed(path, MODEL, BlockGibbs(), {"f": Expectation(lambda x: x)})
    with pytest.raises(ValueError, match="belongs to another run"):
        checkpointed(path, MODEL, BlockGibbs(), {"f": Expectation(lambda x: 1 - x)})


def test_a_damaged_checkpoint_is_refused(tmp_path: Path):
    path = tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=path, chunk_steps=7, on_progress=interrupt_at(50))
    raw = path.read_bytes()
    damages = [raw[:0], raw[:10], raw[: len(raw) // 2], raw[:-1], b"hello"]
    middle = len(raw) // 2
    damages.append(raw[:middle] + bytes([raw[middle] ^ 0xFF]) + raw[middle + 1 :])
    for damage in damages:
        path.write_bytes(damage)
        with pytest.raises(ValueError, match=rf"{path} "):
            small_run(checkpoint=path)
        assert path.read_bytes() == damage


def test_a_full_disk_stops_nothing_and_is_mentioned_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = small_run()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "save_archive", fail)
    run = small_run(checkpoint=tmp_path / "c", checkpoint_seconds=0, chunk_steps=10)
    assert_same_run(whole, run)
    assert len(run.messages) == 1
    assert str(tmp_path / "c") in run.messages[0]
    assert "No space left on device" in run.messages[0]


def test_a_missing_folder_stops_nothing(tmp_path: Path):
    run = small_run(checkpoint=tmp_path / "none" / "c")
    assert "No such file or directory" in run.messages[0]


# --- observers --------------------------------------------------------------------------------

NUM_REPLICATES = 48


def replicates(kernel: AbstractKernel, marginal: str, seed: int, num_steps: int, **options):
    """Independent runs of 1,024 chains."""
    path, _ = true_code(marginal)
    for i in range(NUM_REPLICATES):
        yield anneal(
            path, kernel, linear(num_steps), num_chains=1024, seed=seed + i, chunk_steps=num_steps,
            **options,
        )  # fmt: skip


def mean_and_error(values: list) -> tuple[np.ndarray, np.ndarray]:
    stacked = np.array(values)
    return stacked.mean(0), stacked.std(0, ddof=1) / np.sqrt(len(stacked))


@marginals
@pytest.mark.parametrize("kernel", [BlockGibbs(), BiasedGibbs()], ids=["true", "biased coin"])
def test_weighted_means_at_the_end_are_the_models(marginal: str, kernel, seed: int):
    """The states' means under the last weights, and after the last move, against enumeration."""
    observers = {"x": Expectation(expected_state)}
    recorded, moved = [], []
    for run in replicates(kernel, marginal, seed, 12, observers=observers, record_every=12):
        recorded.append(run.trace.means["x"][-1])
        weights = np.exp(run.log_weights - run.log_weights.max())
        moved.append(weights @ run.states / weights.sum())
    truth = exact_marginals(MODEL)[0 if marginal == "visible" else 1]
    for values in (recorded, moved):
        mean, std_err = mean_and_error(values)
        if isinstance(kernel, BlockGibbs):
            assert_within_mc_error(mean, truth, std_err, num_replicates=NUM_REPLICATES)
        else:
            with pytest.raises(AssertionError, match="z = "):
                assert_within_mc_error(mean, truth, std_err, num_replicates=NUM_REPLICATES)


def exact_curve(beta: float) -> tuple[float, np.ndarray, np.ndarray]:
    """log Z of beta, and the law and the joint densities, by enumeration, float64."""
    base = binary_states(5) @ np.float64(BASE.logits)
    joint = (1 - beta) * base + beta * log_joint(MODEL)
    log_z = logsumexp(joint)
    return float(log_z), np.exp(joint - log_z), log_joint(MODEL) - base


def exact_slope(marginal: str, beta: float) -> tuple[float, float]:
    """Mean and variance of U_beta on the annealed layer."""
    _, law, energy = exact_curve(beta)
    axis = 0 if marginal == "visible" else 1
    weights = law.sum(axis)
    slope = (law * energy).sum(axis) / weights  # U is the conditional mean of the energy change
    mean = weights @ slope
    return float(mean), float(weights @ (slope - mean) ** 2)


@marginals
def test_the_slope_integrates_to_log_z(marginal: str, seed: int):
    """Thermodynamic integration; and its mean, its variance and log Z along the whole path."""
    num_steps, integrals, means, variances, ratios = 128, [], [], [], []
    recorded = np.arange(1, num_steps + 1) / num_steps
    some = [15, 63, 127]
    exact_log_zs = np.array([exact_curve(recorded[i])[0] for i in some])
    start = exact_slope(marginal, 0.0)[0]
    for run in replicates(BlockGibbs(), marginal, seed, num_steps, record_every=1):
        slopes = np.concatenate([[start], run.trace.means["slope"]])
        integrals.append(np.trapezoid(slopes, np.concatenate([[0.0], recorded])))
        means.append(run.trace.means["slope"][some])
        variances.append(run.trace.variances["slope"][some])
        ratios.append(np.exp(run.trace.log_z[some] - exact_log_zs))
    truth_means, truth_variances = np.array([exact_slope(marginal, recorded[i]) for i in some]).T
    for values, truth in (
        (integrals, LOG_RATIO_OF_Z),
        (means, truth_means),
        (variances, truth_variances),
        (ratios, 1.0),
    ):
        mean, std_err = mean_and_error(values)
        assert_within_mc_error(mean, truth, std_err, num_replicates=NUM_REPLICATES)
    mean, std_err = mean_and_error(means)
    stale = [exact_slope(marginal, recorded[i] - 0.1)[0] for i in some]
    with pytest.raises(AssertionError, match="z = "):  # mutant: the slope of a stale beta
        assert_within_mc_error(mean, stale, std_err, num_replicates=NUM_REPLICATES)


def replay(marginal: str, num_steps: int, num_chains: int, seed: int) -> list[np.ndarray]:
    """The states v_0 .. v_K of Algorithm 1, in plain Python, with the engine's bits."""
    path, kernel = true_code(marginal)
    step = jax.jit(lambda bits, x, beta: kernel.step(bits, x, path, beta))
    stream, chains = Stream(seed, "anneal"), jnp.arange(num_chains)
    states = [path.sample(stream.at(0, chains))]
    for k, beta in enumerate(linear(num_steps).betas.astype(np.float32)[1:], start=1):
        states.append(step(stream.at(k, chains), states[-1], beta))
    return [np.asarray(state) for state in states]


@marginals
def test_the_engine_is_algorithm_1(marginal: str):
    """A plain loop gives the same states, and the carried sum is that of v_0 .. v_{K-1}."""
    run = small_run(marginal)
    states = replay(marginal, 100, 37, seed=3)
    np.testing.assert_array_equal(run.states, states[-1])
    np.testing.assert_array_equal(run.carries["sum"]["sum"], np.sum(states[:-1], axis=0))
    np.testing.assert_array_equal(run.carries["sum"]["count"], 100)
    path, _ = true_code(marginal)
    betas = linear(100).betas.astype(np.float32)
    total = sum(np.float64(path.log_ratio(states[k], betas[k], betas[k + 1])) for k in range(100))
    np.testing.assert_allclose(run.log_weights, total, atol=1e-5)


# --- structure --------------------------------------------------------------------------------


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

    arguments = (path, bits, path.sample(bits), jnp.float32(0.1), jnp.float32(0.2))
    return num_products(jax.jit(step).lower(*arguments).compile().as_text())


class WastefulGibbs(AbstractKernel):
    """Mutant: a product that cannot be shared with that of the increment."""

    def step(self, bits, x, path, beta):
        latent = bits.bernoulli(path.latent_logits(beta * x, 1.0), draw=0)
        return bits.bernoulli(path.state_logits(latent, beta), draw=1)


@marginals
@pytest.mark.parametrize("shape", [(4, 5), (24, 100)], ids=str)
def test_a_step_is_two_products(marginal: str, shape: tuple[int, int]):
    """The product of the increment is that of the conditional, recorded or not."""
    path = GeometricPath(BernoulliBase.uniform(shape[1]), random_rbm(*shape, 0.5), marginal)
    assert products_of_a_step(path, BlockGibbs(), record=False) == 2
    assert products_of_a_step(path, BlockGibbs(), record=True) == 2
    assert products_of_a_step(path, WastefulGibbs(), record=False) == 3


def test_the_engine_has_two_products_a_step():
    """One plain branch and one recorded branch: four in the whole program."""
    path, kernel = true_code("visible")
    stream, observers = Stream(0, "structure"), {"slope": Slope()}
    block = advance.start(path, observers, stream, jnp.int32(0), 32)
    numbers = (jnp.int32(i) for i in (0, 4, 2, 4))
    lowered = advance.advance.lower(
        path, kernel, observers, stream, block, jnp.int32(0), jnp.int32(32),
        advance.window(np.linspace(0, 1, 5, dtype=np.float32), 0), *numbers,
    )  # fmt: skip
    assert num_products(lowered.compile().compiled.as_text()) == 4


TRACED: list[str] = []


class TracedPath(GeometricPath):
    """Notes every time its increment is traced by the compiler."""

    def log_ratio(self, x, beta0, beta1):
        TRACED.append("log_ratio")
        return super().log_ratio(x, beta0, beta1)


def test_one_program_serves_every_schedule():
    """Compilation costs more than a short run: lengths and chunks must not cause another."""
    path = TracedPath(BASE, MODEL)

    def run(num_steps: int, **options) -> None:
        anneal(path, BlockGibbs(), linear(num_steps), num_chains=21, **options)

    TRACED.clear()
    run(5)
    once = len(TRACED)
    assert once > 0
    for num_steps in (1, 2, 300, 5000):
        run(num_steps)
    run(50, chunk_steps=1)
    run(50, chunk_steps=7, record_every=3, seed=9)
    assert len(TRACED) == once
    anneal(path, BlockGibbs(), linear(5), num_chains=22)  # another shape is another program
    assert len(TRACED) == 2 * once


# --- rounding and failure ---------------------------------------------------------------------


class Film(AbstractObserver):
    """Keeps every state that was weighted: (chains, steps, units)."""

    num_steps: int = eqx.field(static=True)

    def init(self, x, path):
        film = jnp.zeros((x.shape[0], self.num_steps, x.shape[1]), jnp.uint8)
        return {"film": film, "next": jnp.zeros(x.shape[0], jnp.int32)}

    def update(self, carry, x, path, beta0, beta1):
        film = carry["film"].at[:, carry["next"][0]].set(x.astype(jnp.uint8))
        return {"film": film, "next": carry["next"] + 1}

    def measure(self, carry, x, path, beta):
        return jnp.zeros(x.shape[0])


@marginals
def test_log_weights_keep_their_digits(marginal: str):
    """Along the engine's own states, the weights recomputed in float64, over 1,000 steps.

    A sum without compensation is off by 3e-4 here, the engine by 3e-6.
    """
    num_steps = 1000
    model = random_rbm(64, 200, scale=0.4, seed=7)
    base = BernoulliBase.from_logits(np.linspace(-3, 3, 200))
    path = GeometricPath(base, model, marginal)
    run = anneal(
        path, BlockGibbs(), linear(num_steps), num_chains=8, observers={"film": Film(num_steps)}
    )
    film = run.carries["film"]["film"].astype(np.float64)  # (chains, steps, units)
    betas = run.schedule.betas.astype(np.float32).astype(np.float64)
    weights, hidden_bias, visible_bias, logits = (
        np.float64(a) for a in (model.weights, model.hidden_bias, model.visible_bias, base.logits)
    )
    total = np.zeros(8)
    for k in range(num_steps):
        x = film[:, k]
        densities = []
        for beta in betas[k : k + 2]:
            visible = (1 - beta) * logits + beta * visible_bias
            hidden = beta * hidden_bias
            if marginal == "visible":
                fields, linear_part = hidden + beta * x @ weights.T, x @ visible
            else:
                fields, linear_part = visible + beta * x @ weights, x @ hidden
            densities.append(linear_part + np.logaddexp(0, fields).sum(1))
        total += densities[1] - densities[0]
    assert np.abs(total).max() > 100  # a sum worth rounding
    np.testing.assert_allclose(run.log_weights, total, rtol=0, atol=5e-5)


def broken_run(checkpoint: Path | None = None) -> Run:
    """Fields of 1e38 overflow float32."""
    model = eqx.tree_at(lambda m: m.weights, MODEL, jnp.full((4, 5), 3e38))
    path = GeometricPath(BASE, model)
    return anneal(path, BlockGibbs(), linear(3), num_chains=7, checkpoint=checkpoint)


def test_weights_that_are_no_numbers_are_no_result(tmp_path: Path):
    """The error says where, and a resumed run does not smuggle the number through."""
    with pytest.raises(ValueError, match=r"\d of 7 log weights became infinite or NaN by step"):
        broken_run()
    for _ in range(2):
        with pytest.raises(ValueError, match="infinite or NaN"):
            broken_run(tmp_path / "c")


@pytest.mark.parametrize("name", ["num_chains", "record_every", "chunk_steps"])
@pytest.mark.parametrize("value", [0, -1])
def test_counts_under_one_are_refused(name: str, value: int):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {value}"):
        small_run(**{name: value})


@pytest.mark.parametrize("wrong", [-1, 2**64, 1.5, "a"])
def test_other_seeds_are_refused(wrong):
    with pytest.raises(ValueError, match="seed must be an integer"):
        small_run(seed=wrong)
