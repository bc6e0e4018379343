"""The page of an estimate by replica exchange."""

import numpy as np

from annealz.diagnostics.status import Status
from annealz.methods.annealing.advice import advice_of
from annealz.methods.exchange.estimate import ExchangeEstimate
from annealz.views.report.again import exchange_again
from annealz.views.report.estimate import again_section, provenance_rows
from annealz.views.report.page import Html, code, figures, items, join, page, section, table, tag
from annealz.views.report.picture import picture
from annealz.views.report.remark import remark

__all__ = ["exchange_page"]

_IN_WORDS = {
    Status.OK: "The error bar can be used: replicas went from the base to the target and back in all "
    "that was averaged, and log Z did not move on the way. No diagnosis can see a mode that no replica "
    "has reached.",
    Status.UNRELIABLE: "Do not use this number as it is: its error bar cannot be relied on, and log Z may "
    "be off on either side.",
}


def exchange_page(estimate: ExchangeEstimate) -> str:
    """The whole page."""
    return page(
        f"log Z of {estimate.model}",
        _headline(estimate),
        section("Result", table(estimate.rows()[1:])),
        section("Replica exchange", _rounds(estimate), _pictures(estimate)),
        section("Cost", _cost(estimate)),
        again_section(exchange_again(estimate.settings)),
        section("Provenance", table(_provenance(estimate))),
    )


def _headline(estimate: ExchangeEstimate) -> Html:
    rows, status = dict(estimate.rows()), estimate.status
    mark = {Status.OK: "✓", Status.UNRELIABLE: "✗"}[status]
    parts = [tag("p", tag("strong", f"{mark} {status.value}")), tag("p", _IN_WORDS[status])]
    if estimate.notes:
        parts.append(items(remark(note) for note in estimate.notes))
    remedy = advice_of(estimate).next_try
    if remedy is not None:
        again = exchange_again(estimate.settings, remedy.num_sweeps)
        if again.text.startswith("annealz estimate"):
            parts += [tag("p", "What to try next:"), code(again.text)]
    return tag(
        "header",
        tag("h1", f"log Z of {estimate.model}"),
        tag("p", rows["log Z"], class_="number"),
        tag("p", f"95 % interval {rows['95 % interval']}", class_="interval"),
        tag("div", *parts, class_=f"status {status.value}", role="status"),
    )


def _rounds(estimate: ExchangeEstimate) -> Html:
    ran = estimate.exchange
    words = (
        f"{ran.num_ensembles} independent ensembles of {ran.num_rungs} replicas exchanged their "
        "temperatures after every sweep. Between rounds the temperatures moved to where swaps are refused "
        "equally often. Only the last round gives log Z. A barrier and a log Z that "
        "no longer move are a good sign."
    )
    return join([tag("p", words), table(estimate.table(), estimate.headings())])


def _pictures(estimate: ExchangeEstimate) -> Html:
    from annealz.views.plots import plot_ladder, plot_rounds

    ran = estimate.exchange
    density = ran.last.rejections / np.diff(ran.betas)
    steep = int(np.argmax(density))
    half = float(np.interp(ran.num_rungs / 2, np.arange(ran.num_rungs), ran.betas))
    ladder = (
        f"The barrier up to each temperature, {ran.barrier:.2f} in all: an ensemble makes at "
        f"most one round trip in {2 + 2 * ran.barrier:.0f} sweeps. It is steepest near β = "
        f"{ran.betas[steep]:.3g}, and half of the temperatures lie above β = {half:.3g}."
    )
    rounds = (
        f"log Z of every round by itself: {ran.rounds[0].log_z:.3f} from the first, {ran.log_z:.3f} from "
        "the last. Rounds that still rise have not settled."
    )
    shown = [
        (plot_ladder(ran), "ladder", ladder),
        (plot_rounds(ran, exact_log_z=estimate.exact_log_z), "rounds", rounds),
    ]
    return figures(
        *((picture(ax, name, f"{ax.get_title()}. {words}"), words) for ax, name, words in shown)
    )


def _cost(estimate: ExchangeEstimate) -> Html:
    settings, ran = estimate.settings, estimate.exchange
    rows = [
        ("pilot", settings.pilot_sweeps, settings.pilot_seconds),
        ("rounds", ran.sweeps, ran.seconds),
        ("all", sum(estimate.sweeps.values()), estimate.seconds),
    ]
    shown = table(
        [(name, f"{sweeps:,}", f"{seconds:.1f}") for name, sweeps, seconds in rows],
        ("part", "sweeps", "seconds"),
    )
    if estimate.evaluations is None:
        return shown
    spent = estimate.evaluations
    words = (
        f"Evaluations of the density: {spent['pilot']:,} in pilots, {spent['main']:,} in rounds."
    )
    return join([shown, tag("p", words)])


def _provenance(estimate: ExchangeEstimate) -> list[tuple[str, str]]:
    settings = estimate.settings
    rows = [
        ("model", str(settings.asked.model or settings.source or estimate.model)),
        ("model digest", settings.model_digest),
        ("base", estimate.base),
        ("base digest", settings.base_digest or "none"),
        ("ladder", f"{settings.num_rungs} temperatures, {settings.num_ensembles} ensembles"),
        ("seed", str(estimate.seed)),
    ]
    return rows + provenance_rows(settings.versions)
