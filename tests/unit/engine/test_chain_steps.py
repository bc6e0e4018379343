"""Fused steps with a block per chain, their programs emulated: the same numbers as the engine's own steps.

On a GPU the programs themselves are checked by test_chain_steps_gpu.py.
"""

import importlib

import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.engine.anneal import anneal
from annealz.engine.blocks import check_start
from annealz.engine.gpu import choose_fused, cuda
from annealz.engine.gpu.chain_steps import num_threads
from annealz.engine.gpu.lattice import LatticeSteps
from annealz.engine.gpu.pairs import PairSteps
from annealz.engine.gpu.tables import TableSteps
from annealz.engine.observers import Slope
from annealz.kernels.colours import ColourGibbs
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.ising import Ising
from annealz.models.ising_lattice import SquareIsing
from annealz.models.potts import Potts
from annealz.pilots.survey_mixing import survey_mixing
from annealz.schedules.rules import linear
from annealz.testing import default_seed
from support import emulate_cuda
from support.chain_systems import SYSTEMS, system

WORK, VISITS, CHOOSE = (
    importlib.import_module(f"annealz.{name}")
    for name in ("engine.run_program", "pilots.visits", "engine.gpu.choose")
)
KINDS = {"lattice": LatticeSteps, "pair": PairSteps, "table": TableSteps}


def fuse(path, kernel, *_):
    found = (kind.of(path, kernel) for kind in KINDS.values())
    return next(steps for steps in found if steps is not None)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch):
    """As on a GPU, once it is asked for."""

    def begin():
        monkeypatch.setattr(cuda, "call", emulate_cuda.call)
        monkeypatch.setattr(WORK, "choose_fused", fuse)
        monkeypatch.setattr(VISITS, "choose_fused", fuse)

    return begin


@pytest.mark.parametrize("name", SYSTEMS)
def test_steps_agree_with_the_engine(name, fused):
    """States are equal, log weights and records up to rounding; chunks change no bit."""
    path, kernel = system(name)
    options = {"num_chains": 13, "seed": default_seed(), "record_every": 3}
    plain = anneal(path, kernel, linear(10), **options)
    fused()
    whole, pieces = (anneal(path, kernel, linear(10), **options, chunk_steps=c) for c in (10, 4))
    assert np.array_equal(whole.states, plain.states)
    assert whole.log_weights == pytest.approx(plain.log_weights, abs=2e-4)
    assert whole.trace.steps.tolist() == plain.trace.steps.tolist()
    for kind in ("means", "variances"):
        one, other = (getattr(run.trace, kind)["slope"] for run in (whole, plain))
        assert one == pytest.approx(other, rel=1e-3, abs=1e-4)
    assert np.array_equal(pieces.log_weights, whole.log_weights)
    assert np.array_equal(pieces.states, whole.states)


@pytest.mark.parametrize("name", SYSTEMS)
def test_reverse_agrees_with_the_engine(name, fused):
    path, kernel = system(name)
    forward = anneal(path, kernel, linear(4), num_chains=9, seed=default_seed())
    start = check_start(path, np.asarray(path.position(forward.states)), 9)
    options = {"num_chains": 9, "purpose": "reverse", "start": start, "reverse": True}
    plain = anneal(path, kernel, linear(8), **options)
    fused()
    found = anneal(path, kernel, linear(8), **options)
    assert np.array_equal(found.states, plain.states)
    assert found.log_weights == pytest.approx(plain.log_weights, abs=2e-4)


def test_a_survey_by_them(fused):
    """Slopes are those before a sweep instead of after it, so that the terrain is nearly the same."""
    path, kernel = system("lattice 4x6")
    plain = survey_mixing(path, kernel, budget=20_000, seed=default_seed())
    fused()
    found = survey_mixing(path, kernel, budget=20_000, seed=default_seed())
    assert found.sweeps == pytest.approx(plain.sweeps, rel=0.2)
    assert found.mean[[0, -1]] == pytest.approx(plain.mean[[0, -1]], rel=0.1)


class Hopper:
    platform, compute_capability, core_count = "gpu", "9.0", 132


class TestChoice:
    """Of how a run is fused."""

    @pytest.fixture(autouse=True)
    def gpu(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("jax.local_devices", lambda: [Hopper()])
        monkeypatch.setattr(cuda, "is_usable", lambda: True)

    def choose(self, model):
        path = model.path(model.flat_base())
        return choose_fused(path, model.kernel(), {"slope": Slope()}, None, 100)

    def test_by_the_kind_of_the_path(self):
        assert isinstance(self.choose(SquareIsing(4, coupling=0.3)), LatticeSteps)
        assert isinstance(self.choose(Potts.square(8, 3, 0.5)), PairSteps)
        couplings = np.zeros((3, 2, 3, 2))
        couplings[0, 0, 1, 1] = couplings[1, 1, 0, 0] = 1.0
        assert isinstance(self.choose(Potts(couplings)), TableSteps)

    def test_not_where_most_units_are_neighbours(self):
        """Of pairs that agree: XLA forms a product."""
        ring = np.roll(np.eye(5), 1, 0) + np.roll(np.eye(5), -1, 0)
        assert self.choose(Ising(0.5 * ring)) is None

    def test_not_of_more_than_a_warp_of_states(self):
        assert isinstance(self.choose(Potts.square(8, 32, 0.5)), PairSteps)
        assert self.choose(Potts.square(8, 33, 0.5)) is None

    def test_not_beyond_the_memory_of_a_block(self):
        assert isinstance(self.choose(SquareIsing(256, coupling=0.3)), LatticeSteps)
        assert self.choose(SquareIsing(258, coupling=0.3)) is None

    def test_not_by_clusters(self):
        model = SquareIsing(4, coupling=0.3)
        path = model.path(BernoulliBase.uniform(16))
        kernel = model.named_kernels()["clusters"]()
        assert choose_fused(path, kernel, {"slope": Slope()}, None, 100) is None

    def test_kernels_without_arrays_are_not_mixed_up(self):
        class Other(BlockGibbs):
            """Another transition, of which nothing is known."""

        model, given = SquareIsing(4, coupling=0.3), ({"slope": Slope()}, None, 100)
        path = model.path(model.flat_base())
        assert choose_fused(path, Other(), *given) is None
        assert isinstance(choose_fused(path, BlockGibbs(), *given), LatticeSteps)
        assert choose_fused(path, Other(), *given) is None

    def test_not_where_a_sweep_draws_units_twice_or_never(self):
        """Their energies would count as often."""
        model, given = Potts.square(8, 3, 0.5), ({"slope": Slope()}, None, 100)
        path, blocks = model.path(model.flat_base()), np.asarray(model.kernel().blocks)
        assert isinstance(choose_fused(path, ColourGibbs(blocks[::-1]), *given), PairSteps)
        for wrong in (np.concatenate([blocks, blocks[:1]]), blocks[:1]):
            assert choose_fused(path, ColourGibbs(wrong), *given) is None

    def test_numbers_of_units_have_32_bits(self):
        pairs = Potts.square(8, 3, 0.5)
        tables = system("tables, some coupled")
        for path, kernel in ((pairs.path(pairs.flat_base()), pairs.kernel()), tables):
            narrow = ColourGibbs(np.asarray(kernel.blocks, np.int16))
            steps = choose_fused(path, narrow, {"slope": Slope()}, None, 100)
            assert steps.sites.dtype == np.int32

    def test_of_large_paths_nothing_is_held(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(CHOOSE, "_MOST_HELD", 100)
        model = SquareIsing(4, coupling=0.3)
        path, kernel = model.path(model.flat_base()), model.kernel()
        first, second = (choose_fused(path, kernel, {"slope": Slope()}, None, 100) for _ in "12")
        assert first is not second

    def test_prepared_once_a_path(self):
        model = SquareIsing(4, coupling=0.3)
        path, kernel = model.path(model.flat_base()), model.kernel()
        first, second = (
            choose_fused(path, kernel, {"slope": Slope()}, None, count) for count in (100, 20)
        )
        assert first is second


def test_warps_that_share_a_unit():
    teams = {
        name: fuse(*system(name)).launch.constants["TEAM"]
        for name in SYSTEMS
        if name.startswith("tables")
    }
    assert set(teams.values()) == {1, 2, 8}


def test_threads_of_a_block():
    assert [num_threads(n) for n in (1, 128, 129, 512, 10**6)] == [32, 32, 64, 128, 512]
