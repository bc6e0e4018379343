"""Every result as text and as HTML, and results as pandas tables and trees for ArviZ."""

import builtins
import dataclasses
import sys

import arviz_base
import arviz_stats
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import annealz
from annealz.core.weights import effective_sample_size
from annealz.diagnostics.sheet import Result, Sheet, Shown, Table
from annealz.methods.estimate import AbstractEstimate
from annealz.views.html import status_html, to_html
from annealz.views.report import render_report
from annealz.views.text import to_text
from support.html import Page
from support.views import MODEL, PLAIN


def test_a_sheet_as_text():
    rows = [("model", "m"), ("log Z", "1 ± 2"), ("status", "ok")]
    table = Table([("1", "long word"), ("22", "x")], ("run", "cell"))
    sheet = Sheet(name="Thing", headline=rows[1], rows=rows, table=table, notes=("careful.",))
    assert to_text(sheet).split("\n") == [
        "Thing",
        "  model   m",
        "  log Z   1 ± 2",
        "  status  ok",
        "",
        "  run  cell",
        "  1    long word",
        "  22   x",
        "  ! careful.",
    ]
    assert sheet.details == rows[:1]


def test_every_result_is_text_and_small_html_that_loads_nothing(results):
    for name, result in results.items():
        assert isinstance(result, Shown), name
        sheet, html = result.sheet(), result._repr_html_()
        page = Page(html)
        assert len(html) < 20_000, name
        assert page.text.startswith(" \n".join(sheet.headline)), name
        if name != "schedule":
            assert repr(result).split("\n")[0] == type(result).__name__
        for word in [] if sheet.status is None else [sheet.status.value]:
            assert word in page.text.split("\n"), name
        for label, value in sheet.details:
            assert label in page.text, name
            assert value in page.text, name
        assert not page.kinds & {"script", "link", "img", "style"}, name
        assert "color:#000" not in html  # black letters do not show on black
        assert "color:black" not in html


def test_records_are_json_with_status_and_messages(results):
    for name, result in results.items():
        if isinstance(result, Result) and name != "posterior":
            record = result.to_dict()
            assert isinstance(record["messages"], list), name
            status = result.sheet().status
            assert record.get("status") == (None if status is None else status.value), name
    assert list(results["posterior"].to_dict()) == ["x"]
    assert results["estimate"].to_dict()["method"] == "annealing"


def test_text_is_escaped(results):
    plan = dataclasses.replace(results["both"].plan, model="<script>x</script>")
    odd = dataclasses.replace(results["both"], plan=plan).with_message("a < b & c")
    html = odd._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;x&lt;/script&gt;" in html
    assert "a &lt; b &amp; c" in html
    assert "&lt;a&gt;" in results["models"]._repr_html_()


def test_remedies_are_arguments_in_python_and_options_in_the_record(results):
    poor = results["poor"]
    assert 'method="exchange"' in "".join(poor.messages)
    assert "--method exchange" in "".join(poor.to_dict()["messages"])
    assert "--" not in poor._repr_html_()
    assert repr(poor).endswith(f"! {poor.messages[-1]}")


def test_badges_differ_in_more_than_colour(results):
    assert ">ok<" in annealz.Status.OK._repr_html_()
    assert ">unreliable<" in status_html(annealz.Status.UNRELIABLE)
    assert results["models"]._repr_html_().count(">ok</span>") == 3  # and one in each row


def test_an_error_that_is_unknown_is_called_so():
    one = annealz.estimate_log_z(MODEL, schedule="linear", num_steps=3, num_chains=1, **PLAIN)
    assert "± unknown" in to_html(one.sheet())
    assert one.to_dict()["std_err"] is None


def test_a_message_is_added_to_any_estimate(results):
    for name in ("estimate", "exchange", "nested"):
        told = results[name].with_message("the disk is full.")
        assert "the disk is full." in told.messages
        assert told.log_z == results[name].log_z


class Guess(AbstractEstimate):
    """An estimate of another package, which has a number and its error."""

    log_z, std_err = 8.0, 0.25


def test_an_estimate_of_another_package_is_shown_as_any(results):
    guess = Guess(results["exchange"].plan)
    rows = dict(guess.rows())
    assert rows["log Z"] == "8.0000 ± 0.2500"
    assert rows["95 % interval"] == "7.5100 … 8.4900"
    assert guess.to_dict()["status"] == "ok"
    assert guess.with_message("late.").messages == ("late.",)
    assert Page(render_report(guess)).all("h2") == ["Result", "Cost", "Reproduce", "Provenance"]


def test_costs_add_up(results):
    for name in ("estimate", "both", "normal", "exchange", "nested"):
        result = results[name]
        assert result.seconds == pytest.approx(sum(one.seconds for one in result.costs.values()))
        assert result.sweeps == {stage: one.sweeps for stage, one in result.costs.items()}
        assert (result.evaluations is None) == (name in ("estimate", "both", "exchange"))
    assert results["normal"].evaluations == {"pilot": 8, "main": 2100}


# --- tables ------------------------------------------------------------------------------------


def test_table_of_estimates(results):
    both, poor = results["both"], results["poor"]
    table = pd.concat([both.to_pandas(), poor.to_pandas()], ignore_index=True)
    assert table["log_z"].tolist() == [both.log_z, poor.log_z]
    assert table["status"].tolist() == ["ok", "unreliable"]
    assert (table["low"] < table["log_z"]).all()
    assert table["main_sweeps"].tolist() == [both.sweeps["main"], poor.sweeps["main"]]


def test_tables_hold_what_the_results_hold(results):
    both, terrain = results["both"], results["terrain"]
    chains = both.run.to_pandas()
    assert chains["weight"].sum() == pytest.approx(1)
    ess = effective_sample_size(both.log_weights)
    assert 1 / (chains["weight"] ** 2).sum() == pytest.approx(ess)
    trace = both.trace.to_pandas()
    assert trace["beta"].iloc[-1] == 1
    np.testing.assert_array_equal(trace["share_mean"], both.trace.means["share"])
    assert "units_mean" not in trace  # eight numbers a step
    np.testing.assert_array_equal(both.schedule.to_pandas()["beta"], both.schedule.betas)
    np.testing.assert_array_equal(terrain.to_pandas()["tau"], terrain.tau)
    np.testing.assert_array_equal(terrain.to_pandas()["beta"], terrain.betas)
    assert results["comparison"].to_pandas()["schedule"].tolist() == ["linear", "sm08"]
    likelihood = results["likelihood"]
    rows = likelihood.to_pandas()
    assert rows["log_likelihood"].mean() == pytest.approx(likelihood.log_likelihood)


def test_tree_has_named_dimensions_and_units(results):
    both = results["both"]
    tree = both.to_xarray()
    assert isinstance(tree, xr.DataTree)
    assert tree["sample_stats/log_weight"].dims == ("chain", "draw")
    assert tree["annealing/units_mean"].dims == ("record", "units_dim_0")
    np.testing.assert_array_equal(tree["sample_stats/log_weight"][0], both.log_weights)
    reverse = tree["reverse_sample_stats/log_weight"][0]
    np.testing.assert_array_equal(reverse, both.reverse.log_weights)
    np.testing.assert_array_equal(tree["schedule/beta"], both.schedule.betas)
    found = tree["diagnostics"]
    assert found["log_z"] == both.log_z
    assert tuple(found["interval"].values) == both.interval()
    assert found["lower_bound"] == both.run.log_z0 + both.two_sided.lower
    for group in ("sample_stats", "annealing", "schedule", "diagnostics"):
        for name, variable in tree[group].data_vars.items():
            assert name.startswith(("share", "units")) or variable.attrs["units"], (group, name)
    assert tree.attrs["status"] == "ok"
    assert all(isinstance(value, str | int | float) for value in tree.attrs.values())
    assert results["normal"].to_xarray()["posterior/x"].shape == (1, 100, 2)


def test_islands_and_observers_stand_in_the_tree():
    run = annealz.estimate_log_z(
        MODEL,
        schedule="linear",
        num_steps=20,
        num_chains=100,
        resample=0.9,
        observe={"on/off": lambda v: v},
        **PLAIN,
    )
    tree = run.to_xarray()
    assert tree["annealing/on_off_mean"].shape == run.trace.means["on/off"].shape
    assert tree["sample_stats/island"].max() + 1 == 100 // run.run.island_size
    assert "pareto_k" not in tree["diagnostics"]
    assert run.to_dict()["islands"]["size"] == run.run.island_size


def test_arviz_reads_the_tree(results):
    both = results["both"]
    tree = both.to_xarray()
    assert arviz_base.convert_to_datatree(tree) is tree
    samples = arviz_base.extract(tree, group="sample_stats")
    assert samples.sizes == {"sample": both.num_chains}
    summary = arviz_stats.summary(
        tree, group="sample_stats", var_names=["log_weight"], round_to="none"
    )
    assert float(summary.loc["log_weight", "mean"]) == pytest.approx(both.log_weights.mean())


@pytest.mark.parametrize(("method", "package"), [("to_pandas", "pandas"), ("to_xarray", "xarray")])
def test_a_missing_package_is_named_in_one_sentence(results, monkeypatch, method, package):
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, package)
    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("importlib.import_module", without)
    with pytest.raises(ValueError, match=r"pip install 'annealz\[notebook\]'\.$") as error:
        getattr(results["both"], method)()
    assert str(error.value).count(". ") == 0
