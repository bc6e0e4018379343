"""The page of an estimate by nested sampling."""

from annealz.diagnostics.status import Status
from annealz.methods.nested.estimate import NestedEstimate
from annealz.views.report.again import nested_again
from annealz.views.report.estimate import again_section, provenance_rows
from annealz.views.report.page import Html, code, figures, items, join, page, section, table, tag
from annealz.views.report.picture import picture
from annealz.views.report.remark import remark

__all__ = ["nested_page"]

_IN_WORDS = {
    Status.OK: "The error bar can be used: independent runs agree. No comparison of runs can see a mode "
    "that none of them has found.",
    Status.UNRELIABLE: "Do not use this number as it is: its error bar cannot be relied on, and log Z may "
    "be off on either side.",
}


def nested_page(estimate: NestedEstimate) -> str:
    """The whole page."""
    return page(
        f"log Z of {estimate.model}",
        _headline(estimate),
        section("Result", table(estimate.rows()[1:])),
        section("Nested sampling", _runs(estimate), _pictures(estimate)),
        again_section(nested_again(estimate.settings)),
        section("Provenance", table(_provenance(estimate))),
    )


def _headline(estimate: NestedEstimate) -> Html:
    rows, status = dict(estimate.rows()), estimate.status
    mark = {Status.OK: "✓", Status.UNRELIABLE: "✗"}[status]
    parts = [tag("p", tag("strong", f"{mark} {status.value}")), tag("p", _IN_WORDS[status])]
    if estimate.notes:
        parts.append(items(remark(note) for note in estimate.notes))
    if estimate.next_try is not None:
        again = nested_again(estimate.settings, estimate.next_try.settings)
        if again.text.startswith("annealz estimate"):
            parts += [tag("p", "What to try next:"), code(again.text)]
    return tag(
        "header",
        tag("h1", f"log Z of {estimate.model}"),
        tag("p", rows["log Z"], class_="number"),
        tag("p", f"95 % interval {rows['95 % interval']}", class_="interval"),
        tag("div", *parts, class_=f"status {status.value}", role="status"),
    )


def _runs(estimate: NestedEstimate) -> Html:
    settings = estimate.settings
    live, deleted = settings.num_live // settings.num_runs, settings.num_delete
    words = (
        f"{settings.num_runs} independent runs of {live} live points. The {deleted} lowest points of a run "
        f"die at once; each new one is {settings.num_inner_steps} slices away from another live point, "
        "above all that died. The points of all runs together give log Z."
    )
    return join([tag("p", words), table(estimate.table(), estimate.headings())])


def _pictures(estimate: NestedEstimate) -> Html:
    from annealz.views.plots import plot_evidence, plot_runs

    evidence = (
        "Where the evidence lies as the prior shrinks: most of it "
        f"{estimate.information:.1f} nats below the whole prior. Two humps are two kinds of states, which "
        "annealing cannot join."
    )
    runs = (
        "log Z of every run by itself: runs that differ beyond their errors have missed something."
    )
    shown = [(plot_evidence(estimate), "evidence", evidence), (plot_runs(estimate), "runs", runs)]
    return figures(
        *((picture(ax, name, f"{ax.get_title()}. {words}"), words) for ax, name, words in shown)
    )


def _provenance(estimate: NestedEstimate) -> list[tuple[str, str]]:
    settings = estimate.settings
    rows = [
        ("model", str(settings.asked or estimate.model)),
        ("model digest", settings.model_digest),
        ("prior", estimate.base),
        ("prior digest", settings.base_digest),
        ("seed", str(estimate.seed)),
    ]
    return rows + provenance_rows(settings.versions)
