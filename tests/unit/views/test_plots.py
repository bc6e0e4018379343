"""Pictures: made without a display, showing what they should, and told by more than colour."""

import dataclasses
import functools
import inspect

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

import annealz
from annealz.results.compare import Comparison, compare_schedules
from annealz.schedules.terrain import Terrain
from annealz.testing import random_rbm
from annealz.views.plots import results, schedule, style
from support.bumps import BUMP, SMALL

MODEL = random_rbm(4, 6, 1.5, 1)
PLAIN = {"base": "visible-bias", "second_opinion": False}  # one base, no search
FIGURES = {"plot_estimate", "plot_exchange", "plot_nested", "plot_terrain", "plot_comparison"}


@pytest.fixture(scope="module")
def estimate() -> annealz.Estimate:
    return annealz.estimate_log_z(random_rbm(4, 6, 0.5, 1), num_steps=40, num_chains=100, **PLAIN)


@pytest.fixture(scope="module")
def both() -> annealz.Estimate:
    return annealz.estimate_log_z(
        MODEL, schedule="linear", num_steps=20, num_chains=300, two_sided=True, **PLAIN
    )


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    names = ["linear", "sm08"]
    return compare_schedules(
        MODEL, schedules=names, num_steps=100, num_chains=100, num_replicates=2, base="visible-bias"
    )


@functools.cache
def exchanged() -> annealz.ExchangeEstimate:
    return annealz.estimate_log_z(
        MODEL, method="exchange", num_rungs=5, num_ensembles=8, num_steps=64, base="visible-bias"
    )


@functools.cache
def nested() -> annealz.NestedEstimate:
    return annealz.estimate_log_z(BUMP, method="nested", **SMALL, exact_log_z=0.0)


def panels(estimate, both, comparison) -> dict[str, tuple]:
    """For every function of axes, what it is a picture of, and the method that does the same."""
    terrain, ran = estimate.terrain, exchanged().exchange
    return {
        "plot_ladder": ((ran,), ran.plot_ladder),
        "plot_rounds": ((ran,), ran.plot_rounds),
        "plot_evidence": ((nested(),), nested().plot_evidence),
        "plot_runs": ((nested(),), nested().plot_runs),
        "plot_schedule": ((estimate.schedule,), estimate.schedule.plot),
        "plot_dwell": ((estimate.schedule, terrain), estimate.plot_dwell),
        "plot_mean": ((terrain,), terrain.plot_mean),
        "plot_variance": ((terrain,), terrain.plot_variance),
        "plot_tau": ((terrain,), terrain.plot_tau),
        "plot_pilot_ess": ((terrain,), None),
        "plot_ess": ((estimate,), estimate.plot_ess),
        "plot_weights": ((estimate,), estimate.plot_weights),
        "plot_work": ((both,), both.plot_work),
        "plot_convergence": ((estimate,), estimate.plot_convergence),
        "plot_contender_log_z": ((comparison,), comparison.plot_log_z),
        "plot_contender_ess": ((comparison,), comparison.plot_ess),
        "plot_contender_schedules": ((comparison,), comparison.plot_schedules),
    }


def steps_of(ax: Axes) -> list[StepPatch]:
    return [patch for patch in ax.patches if isinstance(patch, StepPatch)]


def marks_of(ax: Axes) -> list[float]:
    return [float(np.asarray(line.get_xdata())[0]) for line in ax.get_lines()]


PLOTS = {
    name: function
    for module in (results, schedule)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if name.startswith("plot_")
}


# --- all of them -----------------------------------------------------------------------------


def test_every_panel_takes_axes_or_makes_them(estimate, both, comparison, tmp_path):
    known = panels(estimate, both, comparison)
    assert PLOTS.keys() == known.keys() | FIGURES
    for name, (what, method) in known.items():
        function = PLOTS[name]
        assert inspect.signature(function).parameters["ax"].default is None
        given = Figure(layout="constrained").add_subplot()
        assert function(*what, ax=given) is given
        own = function(*what) if method is None else method()
        assert isinstance(own, Axes)
        assert own.get_title()
        assert own.get_xlabel()
        own.figure.savefig(tmp_path / f"{name}.png")
        if method is not None:
            given = Figure().add_subplot()
            assert method(given) is given


def test_colours_are_of_one_palette_and_never_tell_alone(estimate, both, comparison):
    palette = {style.BLUE, style.RED, style.GREEN, style.PURPLE, style.GREY, style.INK}
    for name, (what, _) in panels(estimate, both, comparison).items():
        ax = PLOTS[name](*what)
        shown = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
        kinds = [(line.get_linestyle(), line.get_marker()) for line in shown]
        assert len(set(kinds)) == len(kinds), name
        assert {to_hex(line.get_color()) for line in ax.get_lines()} <= palette, name
        filled = [patch.get_fill() for patch in steps_of(ax)]
        assert len(set(filled)) == len(filled), name


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of two colours."""

    def light(colour: str) -> float:
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    high, low = sorted([light(one), light(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_colour_can_be_seen_on_white():
    for colour in (style.BLUE, style.RED, style.GREEN, style.PURPLE):
        assert contrast(colour, "#ffffff") >= 3
    for colour in (style.GREY, style.INK):  # of text
        assert contrast(colour, "#ffffff") >= 4.5


# --- an estimate -----------------------------------------------------------------------------


def test_estimate_shows_schedule_ess_and_weights(estimate):
    left, middle, right = estimate.plot().axes
    assert left.get_lines()[0].get_ydata()[-1] == 1
    assert middle.get_lines()[0].get_ydata()[-1] == pytest.approx(estimate.ess, rel=1e-4)
    assert marks_of(right) == pytest.approx([estimate.log_z, estimate.exact_log_z])
    assert right.get_title() == f"log weights: {estimate.tail}"


def test_nested_sampling_shows_the_evidence_and_the_runs():
    left, right, _ = nested().plot().axes
    (mass,) = steps_of(left)
    assert mass.get_data().values.max() == 1
    (points,) = right.containers
    np.testing.assert_allclose(
        points[0].get_ydata(), [one.log_z for one in nested().judgement.each]
    )


def test_exchange_shows_the_ladder_and_the_rounds():
    estimate = exchanged()
    left, right = estimate.plot().axes
    ran = estimate.exchange
    barrier = left.get_lines()[0]
    np.testing.assert_allclose(barrier.get_xdata(), ran.betas)
    assert barrier.get_ydata()[-1] == pytest.approx(ran.barrier)
    levels = [float(np.asarray(line.get_ydata())[0]) for line in right.get_lines()[-2:]]
    assert levels == pytest.approx([ran.log_z, estimate.exact_log_z])


def test_two_sides_show_both_works_their_means_and_log_z(both):
    right = both.plot().axes[2]
    sides = both.to_dict()["two_sided"]
    assert marks_of(right) == pytest.approx(
        [sides["lower"], sides["upper"], both.log_z, both.exact_log_z]
    )
    assert [text.get_text() for text in right.get_legend().get_texts()][:2] == [
        "forward",
        "reverse",
    ]
    counts = [patch.get_data().values.sum() for patch in steps_of(right)]
    assert counts == [298, 298]  # all but the lowest forward and the highest reverse 0.5 %


def test_one_side_has_no_reverse_work(estimate):
    with pytest.raises(ValueError, match="one side has no reverse work"):
        estimate.plot_work()


def test_resampling_is_told():
    result = annealz.estimate_log_z(
        random_rbm(4, 6, 2.0, 1),
        schedule="linear",
        num_steps=20,
        num_chains=100,
        resample=1.0,
        **PLAIN,
    )
    assert f"resampled {result.run.num_resamplings} times" in result.plot_ess().get_title()
    assert "without k̂" in result.plot_weights().get_title()
    last = result.plot_convergence().get_lines()[0].get_ydata()[-1]
    assert last == pytest.approx(result.log_z, abs=1e-9)


def test_one_chain_can_be_plotted(tmp_path):
    single = annealz.estimate_log_z(MODEL, schedule="linear", num_steps=3, num_chains=1, **PLAIN)
    single.plot().savefig(tmp_path / "one.png")
    single.plot_convergence().figure.savefig(tmp_path / "convergence.png")
    single.plot_dwell().figure.savefig(tmp_path / "dwell.png")


def test_convergence_ends_at_the_estimate_and_its_error(estimate, both):
    for result in (estimate, both):
        ax = result.plot_convergence()
        curve, final, exact = ax.get_lines()
        assert np.asarray(curve.get_xdata())[-1] == result.num_chains
        assert np.asarray(curve.get_ydata())[-1] == pytest.approx(result.log_z, abs=1e-9)
        assert np.asarray(final.get_ydata())[0] == result.log_z
        assert np.asarray(exact.get_ydata())[0] == result.exact_log_z
        corners = ax.collections[0].get_paths()[0].vertices
        last = corners[corners[:, 0] == result.num_chains, 1]
        own = (result.two_sided or result.judgement).std_err  # of the chains alone
        assert last.max() == pytest.approx(result.log_z + 2 * own, abs=1e-9)
        assert last.min() == pytest.approx(result.log_z - 2 * own, abs=1e-9)


# --- a schedule over its terrain -------------------------------------------------------------


def test_a_long_schedule_is_thinned():
    assert annealz.sm08(100_000).plot().get_lines()[0].get_xdata().size <= 2001


@pytest.mark.parametrize("num_steps", [7, 100, 5000])
def test_time_spent_is_a_density(num_steps):
    (area,) = steps_of(annealz.sm08(num_steps).plot_dwell())
    values, edges, _ = area.get_data()
    assert (values * np.diff(edges)).sum() == pytest.approx(1, abs=1e-12)


def test_time_is_spent_where_the_rule_wants_it():
    """mixing on a terrain without bounds is √(g τ); varopt is √g; both are drawn on their own line."""
    betas = np.linspace(0, 1, 41)
    terrain = Terrain(
        betas=betas,
        mean=betas,
        variance=np.exp(3 * betas),
        ess=np.full(41, 1e6),
        tau=1 + 9 * betas,
    )
    for rule, place in ((annealz.mixing, 0), (annealz.varopt, 1)):
        schedule = rule(terrain, 20_000)
        assert schedule.terrain is terrain
        ax = schedule.plot_dwell()
        values, edges, _ = steps_of(ax)[0].get_data()
        gaps = []
        for line in ax.get_lines():
            middle = (edges[1:] + edges[:-1]) / 2
            gaps.append(np.abs(values - np.interp(middle, *line.get_data())).max())
        assert gaps[place] < 0.02
        assert gaps[1 - place] > 0.2


def test_without_a_pilot_the_run_tells_the_terrain(both):
    assert both.schedule.terrain is None
    terrain = both.terrain
    np.testing.assert_allclose(terrain.betas, both.trace.betas)
    np.testing.assert_allclose(terrain.variance, both.trace.variances["slope"])
    labels = [text.get_text() for text in both.plot_dwell().get_legend().get_texts()]
    assert labels == ["time spent, dt/dβ", "∝ √g"]
    with pytest.raises(ValueError, match="no tau"):
        terrain.plot_tau()


def test_a_flat_terrain_can_be_drawn(tmp_path):
    """A path along which nothing changes has g = 0, which no logarithm takes."""
    betas = np.linspace(0, 1, 5)
    flat = Terrain(betas=betas, mean=0 * betas, variance=0 * betas, ess=betas + 1)
    flat.plot().savefig(tmp_path / "flat.png")
    annealz.linear(10).plot_dwell(terrain=flat).figure.savefig(tmp_path / "dwell.png")


def test_wide_ranges_are_logarithmic_and_narrow_ones_start_at_zero(estimate):
    wide = dataclasses.replace(estimate.terrain, variance=np.geomspace(1, 1e4, 8))
    assert wide.betas.size == 8
    assert wide.plot_variance().get_yscale() == "log"
    narrow = dataclasses.replace(wide, variance=np.linspace(1, 2, 8))
    ax = narrow.plot_variance()
    assert (ax.get_yscale(), ax.get_ylim()[0]) == ("linear", 0)


# --- a comparison ----------------------------------------------------------------------------


def test_comparison_shows_every_schedule(comparison):
    left, right = comparison.plot().axes
    names = [contender.name for contender in comparison.contenders]
    assert [label.get_text() for label in left.get_yticklabels()] == names
    medians = [line for line in right.get_lines() if line.get_marker() == "|"]
    assert [float(line.get_xdata()[0]) for line in medians] == pytest.approx(
        [np.median(contender.ess) for contender in comparison.contenders]
    )
    curves = comparison.plot_schedules().get_lines()
    assert [line.get_label() for line in curves] == names
    for line, contender in zip(curves, comparison.contenders, strict=True):
        assert np.asarray(line.get_ydata())[[0, -1]].tolist() == [0, 1]
        middle = np.interp(0.5, np.linspace(0, 1, contender.num_steps + 1), contender.betas)
        assert np.asarray(line.get_ydata())[200] == pytest.approx(middle)


def test_many_schedules_are_told_apart_without_colour(comparison):
    many = dataclasses.replace(comparison, contenders=comparison.contenders * 6)
    lines = many.plot_schedules().get_lines()
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == 12
