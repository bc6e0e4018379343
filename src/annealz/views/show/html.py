"""Results in a notebook: the number, its error and its status first, then a small table.

Colours are the notebook's own, light or dark, except the badge of the status, which is white on dark green
or dark red in both. All text is escaped. Nothing is loaded from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from annealz.diagnostics.status import Status
from annealz.views.html import status_html

if TYPE_CHECKING:
    from annealz.diagnostics.two_sided import TwoSided
    from annealz.engine.run import Run
    from annealz.results.bayes_factor import BayesFactor
    from annealz.results.compare import Comparison
    from annealz.results.entropy import Entropy
    from annealz.results.likelihood import Likelihood
    from annealz.results.model_table import ModelTable
    from annealz.schedules.schedule import Schedule
    from annealz.schedules.terrain import Terrain

__all__ = [
    "bayes_factor_html",
    "comparison_html",
    "curve",
    "entropy_html",
    "likelihood_html",
    "model_table_html",
    "run_html",
    "schedule_html",
    "terrain_html",
    "two_sided_html",
]

_GREEN, _RED = "#1a7f37", "#b3261e"
_LEFT = "text-align:left;vertical-align:top"
_CURVE_POINTS = 80

Row = tuple[str, str]


def likelihood_html(likelihood: Likelihood) -> str:
    hidden = ("log-likelihood", "status")
    rows = [row for row in likelihood.rows() if row[0] not in hidden]
    number = f"{_number(likelihood.log_likelihood, likelihood.std_err)} nats per example"
    return _page("log-likelihood", number, likelihood.status, rows, likelihood.messages)


def entropy_html(entropy: Entropy) -> str:
    rows = [row for row in entropy.rows() if row[0] not in ("entropy", "status")]
    number = f"{_number(entropy.value, entropy.std_err)} nats"
    return _page("entropy", number, entropy.status, rows, entropy.messages)


def bayes_factor_html(factor: BayesFactor) -> str:
    rows = [row for row in factor.rows() if row[0] not in ("log Bayes factor", "status")]
    number = _number(factor.value, factor.std_err)
    return _page("log Bayes factor", number, factor.status, rows, factor.messages)


def model_table_html(models: ModelTable) -> str:
    lines = [
        [*map(escape, row[:-1]), status_html(status)]
        for row, status in zip(models.table(), models.statuses, strict=True)
    ]
    words = dict(models.rows()).get("in words", "")
    return (
        f"<div><div>best model <b>{escape(models.best)}</b>"
        f"{f': {escape(words)}' if words else ''}</div>"
        f"{_grid(models.headings(), lines)}{_notes(models.messages)}</div>"
    )


def two_sided_html(both: TwoSided) -> str:
    bounds = both.sandwich
    low, high = both.interval()
    rows = [
        ("95 % interval", f"{low:.4f} … {high:.4f}"),
        ("mean forward work", _number(bounds.lower, bounds.lower_std_err)),
        ("mean reverse work", _number(bounds.upper, bounds.upper_std_err)),
        ("gap", _number(bounds.gap, bounds.gap_std_err)),
        ("overlap", f"{both.overlap:.4f}"),
        ("forward estimate", f"{both.forward_log_mean:.4f}"),
    ]
    number = _number(both.log_ratio, both.std_err)
    return _page("log Z_B / Z_A", number, both.status, rows, both.messages)


def run_html(run: Run) -> str:
    from annealz.diagnostics.diagnostics import judge
    from annealz.diagnostics.islands import judge_islands

    is_alone = run.island_size is None
    found = judge(run.log_weights) if is_alone else judge_islands(run.island_log_means)
    sign = -1 if run.is_reverse else 1
    number = _number(run.log_z0 + sign * found.log_mean, found.std_err)
    rows = [
        ("direction", "from the target down" if run.is_reverse else "from the base up"),
        ("chains", f"{run.num_chains:,}"),
        ("schedule", f"{run.schedule.name}, {run.num_steps:,} steps"),
        ("log Z of the base", f"{run.log_z0:.4f}"),
        ("seed", f"{run.seed}, {run.purpose}"),
        ("cost", f"{run.sweeps:,} sweeps, {run.seconds:.1f} s"),
    ]
    return _page("log Z", number, found.status, rows, (*found.messages, *run.messages))


def schedule_html(schedule: Schedule) -> str:
    record = schedule.provenance
    rows = [("steps", f"{schedule.num_steps:,}"), ("largest step", f"{_largest(schedule):.3g}")]
    if "predicted_variance" in record:
        rows.append(("predicted variance of log w", f"{record['predicted_variance']:.3g}"))
    if "predicted_gain" in record:
        rows.append(("predicted gain on linear", f"{record['predicted_gain']:.2f} ×"))
    if "pilot_sweeps" in record:
        rows.append(("pilot", f"{record['pilot_sweeps']:,} sweeps"))
    rows.append(("digest", schedule.digest[:12]))
    pictures = [("β(t)", curve(_thinned(schedule.betas)))]
    return _page("schedule", schedule.name, None, rows, (), pictures)


def terrain_html(terrain: Terrain) -> str:
    rows = [
        ("least cost J", f"{terrain.least_cost:.4g} under perfect mixing"),
        ("cost of linear", f"{terrain.linear_cost:.4g}"),
        ("largest g(β)", f"{terrain.variance.max():.4g}"),
    ]
    if terrain.tau is not None:
        bound = ", at least" if np.any(terrain.tau_is_bound) else ""
        rows.append(("largest τ(β)", f"{terrain.tau.max():.3g} sweeps{bound}"))
    rows.append(("pilot", f"{terrain.sweeps:,} sweeps, {terrain.seconds:.1f} s"))
    grid, g = terrain.on_grid(201)
    even = np.interp(np.linspace(0, 1, _CURVE_POINTS), grid, np.sqrt(g))
    pictures = [("√g(β)", curve(even / max(even.max(), 1e-300)))]
    return _page("terrain", f"{terrain.betas.size} betas", None, rows, (), pictures)


def comparison_html(comparison: Comparison) -> str:
    head = ("schedule", "log Z", "status", "mean ESS", "steps", "pilot sweeps", "Var log w")
    lines = [
        (
            escape(one.name),
            escape(_number(one.log_z, one.std_err)),
            status_html(one.status),
            f"{one.ess.mean():.1f}",
            f"{one.num_steps:,}",
            f"{one.sweeps['pilot']:,}",
            f"{one.variance.mean():.3f}",
        )
        for one in comparison.contenders
    ]
    exact = comparison.exact_log_z
    known = "" if exact is None else f", exact log Z {exact:.4f}"
    title = (
        f"{comparison.model}: {comparison.budget:,} sweeps per run, base {comparison.base}{known}"
    )
    return (
        f"<div><div><b>{escape(comparison.verdict)}</b></div>{_grid(head, lines)}"
        f"<div>{escape(title)}</div>{_notes(comparison.messages)}</div>"
    )


def curve(levels: Sequence[float] | np.ndarray, width: int = 200, height: int = 24) -> str:
    """Values between 0 and 1 as a line, in the colour of the text around it."""
    count = max(len(levels) - 1, 1)
    points = " ".join(
        f"{1 + i * (width - 2) / count:.1f},{(1 - level) * (height - 2) + 1:.1f}"
        for i, level in enumerate(levels)
    )
    return (
        f"<svg width='{width}' height='{height}' style='vertical-align:middle' role='img'>"
        f"<polyline points='{points}' fill='none' stroke='currentColor' stroke-width='1.5'/></svg>"
    )


def _page(
    quantity: str,
    number: str,
    status: Status | None,
    rows: Iterable[Row],
    messages: Iterable[str],
    pictures: Iterable[Row] = (),
) -> str:
    badge = "" if status is None else f" {status_html(status)}"
    cells = [(escape(label), escape(value)) for label, value in rows]
    cells += [(escape(label), picture) for label, picture in pictures]
    body = "".join(
        _line([f"<th style='{_LEFT}'>{label}</th>", f"<td style='{_LEFT}'>{value}</td>"])
        for label, value in cells
    )
    return (
        f"<div><div style='font-size:115%'>{escape(quantity)} <b>{escape(number)}</b>{badge}</div>"
        f"{_notes(messages)}<table><tbody>{body}</tbody></table></div>"
    )


def _grid(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table with a line of headings; its cells are HTML already."""
    top = "".join(f"<th style='{_LEFT}'>{escape(word)}</th>" for word in head)
    body = "".join(_line(f"<td style='{_LEFT}'>{cell}</td>" for cell in line) for line in lines)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _line(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _notes(messages: Iterable[str]) -> str:
    return "".join(
        f"<div style='border-left:3px solid #c77700;padding-left:8px;margin:4px 0'>"
        f"{escape(message)}</div>"
        for message in messages
    )


def _number(value: float, std_err: float) -> str:
    return f"{value:.4f} ± {f'{std_err:.4f}' if np.isfinite(std_err) else 'unknown'}"


def _largest(schedule: Schedule) -> float:
    return float(np.diff(schedule.betas).max())


def _thinned(values: np.ndarray) -> np.ndarray:
    pick = np.linspace(0, len(values) - 1, min(len(values), _CURVE_POINTS)).round().astype(int)
    return np.clip(values[pick], 0, 1)
