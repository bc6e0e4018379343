"""The page of a comparison of schedules."""

import numpy as np

from annealz.io.schedules import described
from annealz.results.compare import Comparison
from annealz.views.report.again import compare_again
from annealz.views.report.estimate import again_section, provenance_rows
from annealz.views.report.page import figures, items, page, section, table, tag
from annealz.views.report.picture import picture

__all__ = ["comparison_page"]

_HEADINGS = (
    "schedule",
    "steps",
    "pilot sweeps",
    "log Z",
    "ESS, median (range)",
    "Var log w",
    "status",
)


def comparison_page(comparison: Comparison) -> str:
    """The whole page."""
    title = f"Schedules compared on {comparison.model}"
    count = len(comparison.contenders[0].log_weights)
    exact = comparison.exact_log_z
    given = (
        f"{count} replicates of {comparison.budget:,} sweeps for every schedule, its pilot included, from "
        f"the base {comparison.base}"
        + ("." if exact is None else f". The exact log Z is {exact:.4f}.")
    )
    remarks = [items(comparison.messages)] if comparison.messages else []
    names = ", ".join(contender.name for contender in comparison.contenders)
    shown = [
        (comparison.plot_ess(), "ess", "Effective chains of every replicate: more is better."),
        (
            comparison.plot_log_z(),
            "log-z",
            "log Z from all replicates together. Intervals that miss the others mean trouble.",
        ),
        (comparison.plot_schedules(), "schedules", f"β(t) of the first replicates: {names}."),
    ]
    pictures = [
        (picture(ax, name, f"{ax.get_title()}. {words}"), words) for ax, name, words in shown
    ]
    provenance = comparison.provenance
    rest = []
    if provenance:
        rest = [
            section("Cost", tag("p", _cost(comparison))),
            again_section(compare_again(provenance)),
            section(
                "Provenance",
                table(
                    [
                        ("model", str(provenance["model"] or comparison.model)),
                        ("model digest", provenance["model_digest"]),
                        ("base", comparison.base),
                        ("seed", str(comparison.seed)),
                        *provenance_rows(provenance["versions"]),
                    ]
                ),
            ),
        ]
    rules = [(c.name, described(c.name)) for c in comparison.contenders]
    return page(
        title,
        tag("header", tag("h1", title), tag("p", _sentence(comparison.verdict), class_="verdict")),
        section("Schedules", tag("p", given), _table(comparison), *remarks, table(rules)),
        section("Pictures", figures(*pictures)),
        *rest,
    )


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _table(comparison: Comparison):
    rows = []
    for c in comparison.contenders:
        low, high = c.variance_interval()
        rows.append(
            (
                c.name,
                f"{c.num_steps:,}",
                f"{c.sweeps['pilot']:,}",
                f"{c.log_z:.4f} ± {c.std_err:.4f}",
                f"{np.median(c.ess):.0f} ({c.ess.min():.0f}–{c.ess.max():.0f})",
                f"{c.variance.mean():.3f} ({low:.3f} … {high:.3f})",
                c.status.value,
            )
        )
    return table(rows, _HEADINGS)


def _cost(comparison: Comparison) -> str:
    provenance = comparison.provenance
    count = provenance["num_replicates"] * len(comparison.contenders)
    words = f"{count * comparison.budget:,} sweeps at most, {provenance['seconds']:.1f} s"
    tuning = provenance["tuning_sweeps"]
    return words + (f", and {tuning:,} sweeps of tuning." if tuning else ".")
