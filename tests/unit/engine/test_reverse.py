"""Reverse annealing: the exact time reversal of the forward run, from exact draws of the target.

E[w] = Z_A / Z_B and the bounds hold for any kernel that leaves p_beta invariant. What tells a reversal
from another invariant kernel is the law of whole paths, P(v) w(v) / Q(v) = Z_B / Z_A, and what follows
from it: E_P[f(w)] = (Z_B / Z_A) E_Q[f(w) / w] with w the forward weight, for any f. Both are checked
with a scan of fixed order, which is not reversible; the mutant leaves it as it is.
"""

import functools
import itertools
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.random import Stream
from annealz.engine import advance, blocks
from annealz.engine.anneal import anneal
from annealz.engine.observers import AbstractObserver, Slope
from annealz.engine.run import Run
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.exact import exact_log_z
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear
from annealz.schedules.schedule import Schedule
from annealz.testing import (
    GaussianPath,
    PerfectKernel,
    assert_within_mc_error,
    binary_states,
    independent_spins,
    log_joint,
    random_rbm,
)
from support.enumeration import state_index, transition_matrix
from support.kernels import BiasedGibbs
from support.runs import OBSERVERS, assert_same_run, interrupt_at
from support.structure import num_products
from support.systems import exact_in_float32, marginals

MODEL = exact_in_float32(random_rbm(3, 3, scale=2.0, seed=26))
BASE = BernoulliBase.from_logits([0.75, -1.5, 1.0])
SCHEDULE = Schedule(np.array([0.0, 0.5, 1.0]))
LOG_RATIO_OF_Z = exact_log_z(MODEL) - (BASE.log_z + 3 * np.log(2))
NUM_CHAINS = 2**17


class Scan(AbstractKernel):
    """One unit after the other from its conditional, in a fixed order; and the order of the reversal.

    Both are arrays, so that all scans are one program.
    """

    order: np.ndarray = eqx.field(default_factory=lambda: np.arange(3))
    back: np.ndarray = eqx.field(default_factory=lambda: np.arange(3)[::-1])

    def step(self, bits, x, path, beta):
        def draw(i, x):
            unit = jnp.asarray(self.order)[i]
            one, zero = (path.log_density(x.at[:, unit].set(v), beta) for v in (1.0, 0.0))
            return x.at[:, unit].set(bits.bernoulli((one - zero)[:, None], draw=unit)[:, 0])

        return jax.lax.fori_loop(0, 3, draw, x)

    def reversed(self) -> "Scan":
        return Scan(self.back, self.order)


def unreversed_scan() -> Scan:
    """Mutant: comes down in the order in which it went up."""
    return Scan(np.arange(3), np.arange(3))


class UnreversedBias(AbstractKernel):
    """Mutant: does not leave p_beta invariant, and says that it is reversible."""

    def step(self, bits, x, path, beta):
        latent = bits.bernoulli(path.latent_logits(x, beta) + 1.5, draw=0)
        return bits.bernoulli(path.state_logits(latent, beta), draw=1)

    def reversed(self) -> "UnreversedBias":
        return self


# --- by enumeration ---------------------------------------------------------------------------


def path_of(marginal: str = "visible") -> GeometricPath:
    return GeometricPath(BASE, MODEL, marginal)


def log_densities(marginal: str, beta: float) -> np.ndarray:
    """log p*_beta of every state, from the joint, float64."""
    joint = (1 - beta) * (binary_states(3) @ np.float64(BASE.logits)) + beta * log_joint(MODEL)
    return logsumexp(joint, axis=0 if marginal == "visible" else 1)


def law_at(marginal: str, beta: float) -> np.ndarray:
    logs = log_densities(marginal, beta)
    return np.exp(logs - logsumexp(logs))


def scan_matrix(marginal: str, beta: float, order: np.ndarray) -> np.ndarray:
    """T[x, y] of a scan: a product of the matrices of its units."""
    law, states, matrix = law_at(marginal, beta), np.arange(8), np.eye(8)
    for unit in order:
        flipped = states ^ (1 << unit)
        one = np.zeros((8, 8))
        one[states, states] = law / (law + law[flipped])
        one[states, flipped] = law[flipped] / (law + law[flipped])
        matrix = matrix @ one
    return matrix


def matrices(kernel: AbstractKernel, marginal: str) -> list[np.ndarray]:
    """T of every step of the schedule, and of none at beta = 0, so that matrix k is that of beta_k."""
    if isinstance(kernel, Scan):
        steps = [scan_matrix(marginal, beta, kernel.order) for beta in SCHEDULE.betas[1:]]
    else:
        steps = [transition_matrix(kernel, path_of(marginal), beta) for beta in SCHEDULE.betas[1:]]
    return [np.eye(8), *steps]


def path_laws(kernel: AbstractKernel, marginal: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(P, Q, log w) of every path v_0 .. v_K, an axis for every state; K = 2."""
    up, down = matrices(kernel, marginal), matrices(kernel.reversed(), marginal)
    first, last = law_at(marginal, 0.0), law_at(marginal, 1.0)
    forward = np.einsum("a,ab,bc->abc", first, up[1], up[2])
    reverse = np.einsum("c,cb,ba->abc", last, down[2], down[1])
    logs = [log_densities(marginal, beta) for beta in SCHEDULE.betas]
    log_w = (logs[1] - logs[0])[:, None, None] + (logs[2] - logs[1])[:, None]
    return forward, reverse, np.broadcast_to(log_w, (8, 8, 8))


@marginals
@pytest.mark.parametrize("kernel", [BlockGibbs(), Scan()], ids=["gibbs", "scan"])
def test_every_path_and_its_reversal(marginal: str, kernel: AbstractKernel):
    """P(v) w(v) / Q(v) is the ratio of Z on each of 512 paths; the reverse weight is 1 / w."""
    forward, reverse, log_w = path_laws(kernel, marginal)
    np.testing.assert_allclose([forward.sum(), reverse.sum()], 1, rtol=1e-12)
    ratio = np.exp(log_w - LOG_RATIO_OF_Z)
    np.testing.assert_allclose(forward * ratio, reverse, rtol=1e-9, atol=1e-15)


@marginals
def test_an_unreversed_scan_is_no_reversal(marginal: str):
    """Yet it is unbiased and keeps the bounds: neither of them can tell."""
    forward, reverse, log_w = path_laws(unreversed_scan(), marginal)
    ratio = np.exp(log_w - LOG_RATIO_OF_Z)
    assert np.abs(forward * ratio - reverse).sum() > 0.02
    assert (reverse / ratio).sum() == pytest.approx(1, rel=1e-9)
    assert (forward * log_w).sum() < LOG_RATIO_OF_Z < (reverse * log_w).sum()


def half_moments(kernel: AbstractKernel) -> tuple[float, float]:
    """E_P[w^1/2] and (Z_B / Z_A) E_Q[w^-1/2], over sqrt(Z_B / Z_A), exact."""
    forward, reverse, log_w = path_laws(kernel, "visible")
    half = np.exp((log_w - LOG_RATIO_OF_Z) / 2)
    return float((forward * half).sum()), float((reverse / half).sum())


# --- the engine -------------------------------------------------------------------------------


@pytest.fixture
def large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(blocks._MAX_BLOCK, jax.default_backend(), 2**16)


def draws(marginal: str, num_chains: int, seed: int, beta: float = 1.0) -> np.ndarray:
    """Exact draws from p_beta."""
    law = law_at(marginal, beta)
    return binary_states(3)[np.random.default_rng(seed).choice(8, num_chains, p=law / law.sum())]


class Route(AbstractObserver):
    """Carries the states that were weighed, as one number in base 8."""

    def init(self, x, path):
        return jnp.zeros(x.shape[0], jnp.int32)

    def update(self, carry, x, path, beta0, beta1):
        digit = (x * 2 ** jnp.arange(x.shape[1])).sum(1).astype(jnp.int32)
        return 8 * carry + digit

    def measure(self, carry, x, path, beta):
        return jnp.zeros(x.shape[0])


def reverse_run(kernel: AbstractKernel, marginal: str, seed: int, **options) -> Run:
    """All of them with the same observer, so that a kernel is compiled once for every test."""
    observers = {"route": Route()}
    settings = {"num_chains": NUM_CHAINS, "observers": observers, "purpose": "reverse", **options}
    start = settings.pop("start", None)
    if start is None:
        start = draws(marginal, settings["num_chains"], seed)
    schedule = settings.pop("schedule", SCHEDULE)
    path = path_of(marginal)
    return anneal(path, kernel, schedule, start=start, reverse=True, seed=seed, **settings)


KERNELS = {
    "gibbs": BlockGibbs(), "scan": Scan(), "unreversed": unreversed_scan(), "bias": UnreversedBias(),
}  # fmt: skip


@functools.cache
def long_run(kernel: str, marginal: str, seed: int) -> Run:
    """Of NUM_CHAINS, for every test that takes `large_blocks`."""
    return reverse_run(KERNELS[kernel], marginal, seed)


def route_p_value(kernel: str, marginal: str, seed: int) -> float:
    """Chi-square of the engine's routes (v_1, v_0) against the law of the true reversal."""
    run = long_run(kernel, marginal, seed)
    true = Scan() if isinstance(KERNELS[kernel], Scan) else BlockGibbs()
    _, reverse, log_w = path_laws(true, marginal)
    later, earlier = np.divmod(run.carries["route"], 8)
    np.testing.assert_allclose(run.log_weights, -log_w[earlier, later, 0], atol=1e-5)
    np.testing.assert_array_equal(run.work, -run.log_weights)
    law = reverse.sum(2).T.reshape(-1)  # by 8 v_1 + v_0
    counts = np.bincount(run.carries["route"], minlength=64)
    rare = law * NUM_CHAINS < 10
    pooled = [np.append(a[~rare], a[rare].sum()) for a in (counts, law * NUM_CHAINS / law.sum())]
    keep = pooled[1] > 0
    return float(stats.chisquare(pooled[0][keep], pooled[1][keep]).pvalue)


@marginals
@pytest.mark.parametrize("kernel", ["gibbs", "scan"])
def test_routes_of_the_engine(marginal: str, kernel: str, seed: int, large_blocks):
    assert route_p_value(kernel, marginal, seed) > 1e-6


@marginals
@pytest.mark.parametrize("mutant", ["unreversed", "bias"], ids=["scan", "bias"])
def test_routes_of_mutants(marginal: str, mutant: str, seed: int, large_blocks):
    assert route_p_value(mutant, marginal, seed) < 1e-6


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def relative_weight(run: Run) -> tuple[float, float]:
    """Mean of w Z_B / Z_A, which is to be 1, and its standard error."""
    return mean_and_error(np.exp(run.log_weights + LOG_RATIO_OF_Z))


@marginals
@pytest.mark.parametrize("kernel", ["gibbs", "scan"])
def test_mean_weight(marginal: str, kernel: str, seed: int, large_blocks):
    for replicate in range(2):
        mean, std_err = relative_weight(long_run(kernel, marginal, seed + replicate))
        assert_within_mc_error(mean, 1.0, std_err)


@marginals
def test_mean_weight_refuses_mutants(marginal: str, seed: int, large_blocks):
    """A kernel that is not invariant, and draws that are not the target's."""
    wrong = draws(marginal, NUM_CHAINS, seed, beta=0.5)
    for run in (
        long_run("bias", marginal, seed),
        reverse_run(BlockGibbs(), marginal, seed, start=wrong),
    ):
        mean, std_err = relative_weight(run)
        assert abs(mean - 1) > 8 * std_err


def engine_half_moments(kernel: AbstractKernel, seed: int) -> tuple[float, float]:
    """The difference of the two half moments, and its standard error."""
    many = {"num_chains": 2**19, "observers": {}}
    forward = anneal(path_of(), kernel, SCHEDULE, seed=seed, **many)
    reverse = reverse_run(kernel, "visible", seed, **many)
    one, two = (mean_and_error(np.exp((run.log_weights + sign * LOG_RATIO_OF_Z) / 2))
                for run, sign in ((forward, -1), (reverse, 1)))  # fmt: skip
    return one[0] - two[0], float(np.hypot(one[1], two[1]))


@pytest.mark.slow
def test_half_moments_tell_a_reversal(seed: int, large_blocks):
    """E_P[w^1/2] = (Z_B / Z_A) E_Q[w^-1/2] if and only if the kernel is reversed (here)."""
    one, two = half_moments(Scan())
    assert one == pytest.approx(two, rel=1e-9)
    difference, std_err = engine_half_moments(Scan(), seed)
    assert_within_mc_error(difference, 0.0, std_err)
    one, two = half_moments(unreversed_scan())
    difference, std_err = engine_half_moments(unreversed_scan(), seed)
    assert abs(difference) > 8 * std_err
    assert_within_mc_error(difference, one - two, std_err)


@marginals
def test_the_truth_lies_between_the_mean_works(marginal: str, seed: int, large_blocks):
    reverse = long_run("gibbs", marginal, seed)
    forward = anneal(path_of(marginal), BlockGibbs(), SCHEDULE, num_chains=NUM_CHAINS, seed=seed)
    (low, low_error), (high, high_error) = (mean_and_error(r.work) for r in (forward, reverse))
    assert low + 8 * low_error < LOG_RATIO_OF_Z < high - 8 * high_error


class SluggishGaussian(AbstractKernel):
    """x' = mu + rho (x - mu) + noise, which leaves a Gaussian invariant and is reversible."""

    rho: float = 0.6

    def step(self, bits, x, path, beta):
        fresh, mean = path.draw(bits, beta), path._moments(beta)[0]
        return mean + self.rho * (x - mean) + (1 - self.rho**2) ** 0.5 * (fresh - mean)

    def reversed(self) -> "SluggishGaussian":
        return self


@pytest.mark.parametrize("kernel", [SluggishGaussian(), PerfectKernel()], ids=["slow", "perfect"])
def test_gaussian(kernel: AbstractKernel, seed: int, large_blocks):
    path = GaussianPath(0.8, 0.7)
    start = np.random.default_rng(seed).normal(path.mean, path.scale, NUM_CHAINS)
    run = anneal(path, kernel, linear(8), num_chains=NUM_CHAINS, seed=seed, start=start,
                 reverse=True, purpose="reverse", observers={})  # fmt: skip
    mean, std_err = mean_and_error(np.exp(run.log_weights + path.log_z - path.log_z0))
    assert_within_mc_error(mean, 1.0, std_err)
    work, std_err = mean_and_error(run.work)
    assert work - 8 * std_err > path.log_z - path.log_z0


# --- the same bits however it is run ----------------------------------------------------------


def small_run(marginal: str = "visible", **options) -> Run:
    settings = {"num_chains": 37, "record_every": 3, "observers": OBSERVERS, "seed": 3}
    return reverse_run(BlockGibbs(), marginal, **{**settings, "schedule": linear(50), **options})


@marginals
@pytest.mark.parametrize("chunk_steps", [1, 7, 1000])
def test_chunks_change_no_bit(marginal: str, chunk_steps: int):
    assert_same_run(small_run(marginal), small_run(marginal, chunk_steps=chunk_steps))


def test_a_resumed_run_ends_in_the_same_bits(tmp_path: Path):
    whole = small_run()
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=tmp_path / "c", chunk_steps=7, on_progress=interrupt_at(25))
    assert_same_run(whole, small_run(checkpoint=tmp_path / "c", chunk_steps=4))


def test_blocks_change_no_chain(monkeypatch: pytest.MonkeyPatch):
    """37 chains in blocks of 13, two of them filling."""
    whole = small_run()
    monkeypatch.setitem(blocks._MAX_BLOCK, jax.default_backend(), 16)
    blocked = small_run()
    np.testing.assert_array_equal(blocked.states, whole.states)
    np.testing.assert_allclose(blocked.log_weights, whole.log_weights, atol=1e-5)
    np.testing.assert_allclose(blocked.trace.log_z, whole.trace.log_z, atol=1e-5)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, np.float64])
def test_zeros_and_ones_of_any_kind(dtype: type):
    start = draws("visible", 37, 3)
    assert_same_run(small_run(start=start), small_run(start=start.astype(dtype)))
    assert_same_run(small_run(start=start), small_run(start=jnp.asarray(start.astype(dtype))))
    assert_same_run(small_run(start=start), small_run(start=start.tolist()))


@marginals
def test_the_engine_is_the_reversal(marginal: str):
    """A plain loop gives the same states and weights: first a move at beta = 1."""
    run = small_run(marginal)
    path, kernel, chains = path_of(marginal), BlockGibbs(), jnp.arange(37)
    step = jax.jit(lambda bits, x, beta: kernel.step(bits, x, path, beta))
    log_ratio = jax.jit(lambda x, low, high: path.log_ratio(x, low, high))
    betas = linear(50).betas.astype(np.float32)[::-1]
    stream = Stream(3, "reverse")
    x = step(stream.at(0, chains), jnp.asarray(draws(marginal, 37, 3), jnp.float32), betas[0])
    total = np.zeros(37)
    for k, (high, low) in enumerate(itertools.pairwise(betas), start=1):
        total -= np.float64(log_ratio(x, low, high))
        x = step(stream.at(k, chains), x, low)
    np.testing.assert_array_equal(run.states, x)
    np.testing.assert_allclose(run.log_weights, total, atol=1e-5)
    assert run.is_reverse
    assert run.sweeps == 37 * 51


def test_the_trace_comes_down_to_the_base(seed: int):
    """From its own base a model without weights has log w constant: log Z is exact all along."""
    model, log_z = independent_spins([0.5, -2.0, 1.5], [1.0, -1.0, 0.5])
    path = GeometricPath(BernoulliBase.from_logits(model.visible_bias), model)
    start = np.random.default_rng(seed).integers(0, 2, (37, 3))
    seen = []
    run = anneal(path, BlockGibbs(), linear(50), num_chains=37, seed=seed, reverse=True,
                 start=start, record_every=10, observers=OBSERVERS,
                 on_progress=lambda p: seen.append(p.log_z))  # fmt: skip
    np.testing.assert_allclose(run.trace.betas, [0.8, 0.6, 0.4, 0.2, 0.0], rtol=1e-6)
    hidden = np.float64(model.hidden_bias)
    exact = [np.logaddexp(0, b * hidden).sum() for b in run.trace.betas]
    known = np.logaddexp(0, np.float64(model.visible_bias)).sum()
    np.testing.assert_allclose(run.trace.log_z, exact + known, atol=1e-5)
    assert run.trace.log_z[-1] == pytest.approx(path.log_z0, rel=1e-14)
    assert run.log_z0 == path.log_z0
    np.testing.assert_allclose(run.log_z0 + run.work, log_z, atol=1e-5)
    assert seen[-1] == pytest.approx(log_z, abs=1e-5)


def test_weighted_means_along_the_way(seed: int):
    """The slope under the weights is that of p_beta, by replicates of 1,024 chains."""
    found = []
    for i in range(24):
        run = reverse_run(
            BlockGibbs(), "visible", seed + i, schedule=linear(32), num_chains=1024,
            record_every=16, observers={"slope": Slope()},
        )  # fmt: skip
        found.append(run.trace.means["slope"])
    mean, std_err = np.mean(found, 0), np.std(found, 0, ddof=1) / np.sqrt(24)
    joint = log_joint(MODEL) - binary_states(3) @ np.float64(BASE.logits)
    truth = []
    for beta in (0.5, 0.0):
        logs = (1 - beta) * (binary_states(3) @ np.float64(BASE.logits)) + beta * log_joint(MODEL)
        truth.append((np.exp(logs - logsumexp(logs)) * joint).sum())
    assert_within_mc_error(mean, truth, std_err, num_replicates=24)


def test_a_step_is_two_products():
    """One plain branch and one recorded branch: four in the whole program, as forward."""
    path, stream, observers = path_of(), Stream(0, "structure"), {"slope": Slope()}
    block = advance.start_reverse(
        path, BlockGibbs(), observers, stream, jnp.int32(0), np.zeros((32, 3), np.float32)
    )
    numbers = (jnp.int32(i) for i in (0, 4, 2, 4))
    betas = advance.window(np.linspace(1, 0, 5, dtype=np.float32), 0)
    chunk = advance.Chunk(jnp.int32(0), jnp.int32(32), betas, *numbers)
    lowered = advance.advance.lower(path, BlockGibbs(), observers, stream, block, chunk, True)
    assert num_products(lowered.compile().compiled.as_text()) == 4


def test_fields_beyond_exp_are_no_trouble():
    """Downwards in one step from fields of 200, where exp overflows in float32."""
    model = eqx.tree_at(lambda m: m.weights, MODEL, jnp.full((3, 3), 66.0))
    path, start = GeometricPath(BASE, model), np.ones((37, 3))
    run = anneal(path, BlockGibbs(), linear(2), num_chains=37, start=start, reverse=True,
                 observers=OBSERVERS)  # fmt: skip
    assert np.isfinite(run.log_weights).all()


# --- refusals ---------------------------------------------------------------------------------


def test_checkpoints_of_another_start_or_direction_are_refused(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=tmp_path / "c", chunk_steps=7, on_progress=interrupt_at(25))
    other = draws("visible", 37, 3)
    other[5, 1] = 1 - other[5, 1]
    with pytest.raises(ValueError, match="belongs to another run"):
        small_run(checkpoint=tmp_path / "c", start=other)
    with pytest.raises(ValueError, match="belongs to another run"):
        anneal(path_of(), BlockGibbs(), linear(50), num_chains=37, seed=3, purpose="reverse",
               record_every=3, observers=OBSERVERS, checkpoint=tmp_path / "c")  # fmt: skip


WRONG_STARTS = {
    "one state of the path for each of num_chains = 37 chains.*got shape (36, 3)": np.zeros(
        (36, 3)
    ),
    "got shape (37, 4)": np.zeros((37, 4)),
    "got shape (37,)": np.zeros(37),
    "real numbers, got dtype complex128": np.zeros((37, 3), complex),
    "zeros and ones, got 0.5 (111 of 111 values)": np.full((37, 3), 0.5),
    "zeros and ones, got nan": np.full((37, 3), np.nan),
}


@pytest.mark.parametrize("message", WRONG_STARTS)
def test_wrong_starts_are_refused(message: str):
    pattern = message.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=f"start must hold .*{pattern}"):
        small_run(start=WRONG_STARTS[message])


def test_starts_that_are_no_numbers_are_refused():
    start = np.array([0.0, np.inf])
    with pytest.raises(ValueError, match=r"start must hold finite numbers, got inf \(1 of 2"):
        anneal(GaussianPath(0.8, 0.7), PerfectKernel(), linear(3), num_chains=2, start=start,
               reverse=True)  # fmt: skip


def test_start_and_reverse_go_together():
    with pytest.raises(ValueError, match="reverse=True needs start"):
        anneal(path_of(), BlockGibbs(), linear(3), num_chains=2, reverse=True)
    with pytest.raises(ValueError, match="without reverse=True"):
        anneal(path_of(), BlockGibbs(), linear(3), num_chains=2, start=np.zeros((2, 3)))


def test_a_kernel_without_reversal_is_refused():
    with pytest.raises(ValueError, match="BiasedGibbs does not define it: define `reversed`"):
        reverse_run(BiasedGibbs(), "visible", 1, num_chains=4)


def test_reversals_are_the_kernels_own():
    """The matrix of the reversal is that of Bayes' rule, for the scan and for block Gibbs."""
    for kernel in (Scan(), BlockGibbs()):
        ups, downs = matrices(kernel, "visible"), matrices(kernel.reversed(), "visible")
        for beta, up, down in zip(SCHEDULE.betas, ups, downs, strict=True):
            flow = law_at("visible", beta)[:, None] * up
            np.testing.assert_allclose(flow.T, law_at("visible", beta)[:, None] * down, atol=1e-12)
    up, flow = matrices(Scan(), "visible")[1], law_at("visible", 0.5)[:, None]
    assert np.abs((flow * up).T - flow * up).max() > 0.005
    assert (state_index(binary_states(3)) == np.arange(8)).all()  # the order of all matrices
