"""Replica exchange gives the same bits however it is run, stored and resumed."""

from pathlib import Path

import jax
import numpy as np
import pytest

import annealz
from annealz.core.names import MARGINALS
from annealz.engine import blocks
from annealz.engine.progress import Progress
from annealz.kernels.gibbs import BlockGibbs
from annealz.methods.exchange.exchange import exchange
from annealz.methods.exchange.result import Exchange
from annealz.paths.geometric import GeometricPath
from annealz.testing import random_rbm
from support.exchanges import ASKED, BASE, BETAS, MODEL, PATH, SMALL, advanced, begun, same
from support.structure import num_products


@pytest.fixture(scope="module")
def whole() -> Exchange:
    return exchange(PATH, BlockGibbs(), **SMALL, num_draws=20, seed=4)


@pytest.mark.parametrize("chunk_sweeps", [1, 7, 128])
def test_chunks_change_no_bit(whole: Exchange, chunk_sweeps: int):
    same(
        whole,
        exchange(PATH, BlockGibbs(), **SMALL, num_draws=20, seed=4, chunk_sweeps=chunk_sweeps),
    )


def test_seeds_and_purposes_change_bits(whole: Exchange):
    for change in ({"seed": 5}, {"purpose": "other"}):
        other = exchange(PATH, BlockGibbs(), **SMALL, num_draws=20, **{"seed": 4, **change})
        assert other.log_z != whole.log_z


@pytest.mark.parametrize("stop", [3, 32, 80, 120])
def test_a_resumed_run_ends_in_the_same_bits(whole: Exchange, tmp_path: Path, stop: int):
    file = tmp_path / "checkpoint.npz"

    def interrupt(now: Progress) -> None:
        if now.step >= stop:
            raise KeyboardInterrupt

    options = {**SMALL, "num_draws": 20, "seed": 4, "chunk_sweeps": 5, "checkpoint": file}
    with pytest.raises(KeyboardInterrupt):
        exchange(PATH, BlockGibbs(), **options, on_progress=interrupt)
    assert file.exists()
    seen = []
    same(whole, exchange(PATH, BlockGibbs(), **options, on_progress=seen.append))
    assert seen[0].step > stop
    with pytest.raises(ValueError, match="another run"):
        exchange(PATH, BlockGibbs(), **{**options, "seed": 5})


def test_blocks_change_no_statistics(monkeypatch, seed: int):
    """Several blocks, the last one filled up: ensembles keep their bits."""
    one = exchange(PATH, BlockGibbs(), **SMALL, seed=seed)
    monkeypatch.setattr(blocks, "_MAX_BLOCK", {"cpu": 12})  # 3 ensembles a block
    many = exchange(PATH, BlockGibbs(), **SMALL, seed=seed)
    np.testing.assert_array_equal(one.last.round_trips, many.last.round_trips)
    np.testing.assert_allclose(one.last.values, many.last.values, rtol=1e-6)


def test_progress_tells_the_running_log_z():
    seen: list[Progress] = []
    result = exchange(PATH, BlockGibbs(), **SMALL, seed=4, chunk_sweeps=4, on_progress=seen.append)
    assert [now.step for now in seen] == sorted({now.step for now in seen})
    assert seen[-1].step == seen[-1].num_steps == 128
    assert {now.stage for now in seen} == {"exchange"}
    assert abs(seen[-1].log_z - result.log_z) < 1e-9
    assert np.isnan(seen[0].log_z)


def test_one_program_serves_all_rounds():
    traces = []

    class Counted(BlockGibbs):
        def step(self, bits, x, path, beta):
            traces.append(beta)
            return super().step(bits, x, path, beta)

    exchange(PATH, Counted(), **SMALL, seed=1, chunk_sweeps=5)
    first = len(traces)
    assert first <= 6  # the loop's body, and a look at its shapes
    exchange(PATH, Counted(), **{**SMALL, "num_sweeps": 100}, seed=2)
    exchange(GeometricPath(BASE, random_rbm(3, 4, seed=8)), Counted(), **SMALL, seed=2)
    assert len(traces) <= first + 4 * 2  # shapes are looked at again, nothing is compiled again


@pytest.mark.parametrize("marginal", MARGINALS)
def test_a_sweep_costs_two_products(marginal: str):
    path = GeometricPath(BASE, MODEL, marginal)
    stream, block = begun(path, 3, 4, 0)

    def run(path, block):
        return advanced(path, BlockGibbs(), stream, block, BETAS, np.zeros(3), 0, 10)

    assert num_products(jax.jit(run).lower(path, block).compile().as_text()) == 2


# --- what a result is -------------------------------------------------------------------------


def test_arrays_hold_all_of_a_result(whole: Exchange):
    again = Exchange.from_arrays(*whole.to_arrays())
    same(whole, again)
    assert repr(again) == repr(whole)
    assert again._repr_html_() == whole._repr_html_()


def test_a_workflow_is_resumed_to_the_same_bits(tmp_path: Path):
    def interrupt(now: Progress) -> None:
        if now.stage == "exchange" and now.step >= 30:
            raise KeyboardInterrupt

    options = {**ASKED, "base": BASE, "chunk_steps": 5, "seed": 3}
    whole = annealz.estimate_log_z(MODEL, **options, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(MODEL, **options, out=tmp_path / "cut", on_progress=interrupt)
    resumed = annealz.resume(tmp_path / "cut")
    same(whole.exchange, resumed.exchange)  # pyright: ignore
    read = annealz.resume(tmp_path / "whole")
    assert read.to_dict() == whole.to_dict()
    assert sorted(p.name for p in (tmp_path / "cut").iterdir()) == [
        "inputs.npz", "part-exchange.npz", "result.json", "run.json"
    ]  # fmt: skip
    with pytest.raises(ValueError, match="already holds a finished run"):
        annealz.estimate_log_z(MODEL, **options, out=tmp_path / "cut")
    with pytest.raises(ValueError, match="marginal must be one of"):
        annealz.estimate_log_z(MODEL, **ASKED, marginal="auto")
