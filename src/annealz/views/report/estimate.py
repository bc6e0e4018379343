"""The page of an estimate: the number, whether to trust it, and all that stands behind it."""

import datetime

import numpy as np

from annealz.diagnostics.diagnostics import pareto_k_limit
from annealz.diagnostics.islands import IslandJudgement
from annealz.diagnostics.status import Status
from annealz.io.schedules import described
from annealz.methods.annealing.advice import advice_of
from annealz.methods.annealing.estimate import Estimate
from annealz.schedules.schedule import Schedule
from annealz.views.report.again import Again, estimate_again
from annealz.views.report.page import Html, code, figures, items, join, page, section, table, tag
from annealz.views.report.picture import picture
from annealz.views.report.remark import remark

__all__ = ["again_section", "estimate_page", "provenance_rows"]

_MOST_SHOWN = 6  # numbers of one observed function
_IN_WORDS = {
    Status.OK: "The error bar can be used: the weights have a light enough tail, enough chains carry them, "
    "and no other evidence contradicts. No diagnosis can see a mode that no chain has reached.",
    Status.UNRELIABLE: "Do not use this number as it is: its error bar cannot be relied on, and log Z is "
    "often too low then.",
}
_IN_WORDS_TWO_SIDED = {
    Status.OK: "The error bar can be used: forward and reverse chains meet, and do not contradict each "
    "other.",
    Status.UNRELIABLE: "Do not use this number as it is: forward and reverse chains do not confirm each "
    "other.",
}


def estimate_page(estimate: Estimate) -> str:
    """The whole page."""
    return page(
        f"log Z of {estimate.model}",
        _headline(estimate),
        section("Result", table(estimate.rows()[1:])),
        section("The path and its schedule", _path_figures(estimate)),
        section("The weights", _weight_figures(estimate)),
        *_second_opinion(estimate),
        *_observed(estimate),
        section("Cost", _cost(estimate)),
        again_section(_again(estimate)),
        section("Provenance", table(_provenance(estimate))),
    )


def _headline(estimate: Estimate) -> Html:
    rows = dict(estimate.rows())
    status = estimate.status
    words = _IN_WORDS if estimate.two_sided is None else _IN_WORDS_TWO_SIDED
    mark = {Status.OK: "✓", Status.UNRELIABLE: "✗"}[status]
    parts = [tag("p", tag("strong", f"{mark} {estimate.status_in_words}")), tag("p", words[status])]
    if estimate.notes:
        parts.append(items(remark(note) for note in estimate.notes))
    parts += _next_try(estimate)
    return tag(
        "header",
        tag("h1", f"log Z of {estimate.model}"),
        tag("p", rows["log Z"], class_="number"),
        tag("p", f"95 % interval {rows['95 % interval']}", class_="interval"),
        tag("div", *parts, class_=f"status {status.value}", role="status"),
    )


def _observed(estimate: Estimate) -> list[Html]:
    """Weighted means of the functions that were observed, at the last step: of the model itself."""
    names = [name for name in estimate.trace.means if name != "slope"]
    if not names or not estimate.trace.steps.size:
        return []
    rows = [(name, _mean_in_words(estimate.trace.means[name][-1])) for name in sorted(names)]
    return [section("Observed", table(rows))]


def _mean_in_words(value: np.ndarray) -> str:
    """One number, or what many of them are like."""
    if value.size <= _MOST_SHOWN:
        return ", ".join(f"{one:.6g}" for one in value.ravel())
    shape = " × ".join(map(str, value.shape))
    return f"{shape} numbers from {value.min():.6g} to {value.max():.6g}, their mean {value.mean():.6g}"


def _next_try(estimate: Estimate) -> list[Html]:
    """The command to try next, if a setting is advised and the steps are not decided otherwise."""
    remedy, own = advice_of(estimate).next_try, _again(estimate).text
    if remedy is None or not (own.startswith("annealz estimate") and "--steps" in own):
        return []
    changes = remedy.settings
    again = estimate_again(estimate.settings, estimate.schedule.name, estimate.num_steps, changes)
    return [tag("p", "What to try next:"), code(again.text)]


def _path_figures(estimate: Estimate) -> Html:
    schedule, terrain = estimate.schedule, estimate.terrain
    had_pilot = schedule.terrain is not None
    shown = [
        _shown(
            schedule.plot(),
            "schedule",
            f"β against the fraction of steps: {schedule.name}, {schedule.num_steps:,} steps"
            f"{_rule_of(schedule)}. Half of them are spent above β = "
            f"{schedule.betas[schedule.num_steps // 2]:.3g}.",
        )
    ]
    source = (
        f"the pilot saw this path at {terrain.betas.size:,} values of β"
        if had_pilot
        else "no pilot is recorded with this schedule: g is what the run itself saw"
    )
    asked = "√(g τ), which least variance asks for, and √g" if terrain.tau is not None else "√g"
    shown.append(
        _shown(
            estimate.plot_dwell(),
            "dwell",
            f"The filled area is the share of the steps spent at each β, the lines are {asked}; {source}.",
        )
    )
    top = int(np.argmax(terrain.variance))
    shown.append(
        _shown(
            terrain.plot_variance(),
            "variance",
            f"Variance g of the slope d log p*/dβ: largest at β = {terrain.betas[top]:.3g} with "
            f"{terrain.variance[top]:.3g}.",
        )
    )
    if terrain.tau is not None and terrain.tau_is_bound is not None:
        top, bounds = int(np.argmax(terrain.tau)), int(terrain.tau_is_bound.sum())
        note = (
            f" At {bounds} of {terrain.tau.size} values it is only a lower bound." if bounds else ""
        )
        shown.append(
            _shown(
                terrain.plot_tau(),
                "tau",
                f"Sweeps that chains remember: up to τ = {terrain.tau[top]:.3g} at β = "
                f"{terrain.betas[top]:.3g}.{note}",
            )
        )
    return figures(*shown)


def _rule_of(schedule: Schedule) -> str:
    """What the rule is, in brackets; of another package it is recorded with the schedule."""
    recorded = (schedule.provenance.get(key) for key in ("description", "package"))
    words = [text for text in recorded if isinstance(text, str)] or [described(schedule.name)]
    return f" ({'; '.join(words)})" if words[0] else ""


def _weight_figures(estimate: Estimate) -> Html:
    size, trace = estimate.num_chains, estimate.trace
    fell = f"Effective chains along the way: {trace.ess[-1]:.1f} of {size:,} at the end"
    if estimate.run.num_resamplings:
        fell += f", after islands were resampled {estimate.run.num_resamplings:,} times"
    shown = [
        _shown(estimate.plot_ess(), "ess", f"{fell}."),
        _shown(
            estimate.plot_weights(),
            "weights",
            _tail(estimate),
        ),
    ]
    if estimate.two_sided is not None:
        both = estimate.two_sided
        low, high = (estimate.run.log_z0 + bound for bound in (both.lower, both.upper))
        shown.append(
            _shown(
                estimate.plot_work(),
                "work",
                f"Work of forward and reverse chains. Their means {low:.4f} and {high:.4f} bound log Z, "
                f"and where the two meet, BAR finds it; overlap {both.overlap:.2g}.",
            )
        )
    path = estimate.convergence()
    first = int(path.num_chains[0])
    shown.append(
        _shown(
            estimate.plot_convergence(),
            "convergence",
            f"log Z from the first chains: {path.log_z[0]:.4f} from {first:,}, {path.log_z[-1]:.4f} "
            f"from {int(path.num_chains[-1]):,}. A curve that still rises in jumps has not settled.",
        )
    )
    return figures(*shown)


def _second_opinion(estimate: Estimate) -> list[Html]:
    """What chains from another base say, and why the first base was taken."""
    opinion, reason = estimate.second_opinion, estimate.settings.base_reason
    parts = []
    if opinion is not None:
        rows = [
            ("first", estimate.base, _number(estimate.first_log_z, estimate.first_std_err)),
            ("second", opinion.base, _number(opinion.log_z, opinion.std_err)),
            ("difference", "", _number(opinion.difference, opinion.difference_std_err)),
        ]
        parts.append(table(rows, ("estimate", "base", "log Z")))
        words = "The two agree." if opinion.confirms else "The two contradict each other."
        if opinion.confirms and opinion.judgement.status is Status.UNRELIABLE:
            words = "The second is probably too low, by its own weights: no contradiction."
        if estimate.runs.probe is not None:
            words += (
                f" Of {estimate.runs.probe.num_chains:,} ends of second chains, annealed back along the "
                f"first path, those that no first chain reaches hold {100 * opinion.missed:.1f} % of the "
                "mass."
            )
        parts.append(tag("p", words))
    if reason:
        parts.append(tag("p", f"The base was found by pilots. {reason[0].upper()}{reason[1:]}."))
    return [section("The second opinion", *parts)] if parts else []


def _number(value: float, error: float) -> str:
    return f"{value:.4f} ± " + (f"{error:.4f}" if np.isfinite(error) else "unknown")


def _tail(estimate: Estimate) -> str:
    words = f"log weights of {estimate.num_chains:,} forward chains: {estimate.tail}."
    if isinstance(estimate.judgement, IslandJudgement) or np.isnan(estimate.judgement.pareto_k):
        return words
    limit = f"{pareto_k_limit(estimate.num_chains):.2f}"
    words += f" The upper tail makes the mean, which is trusted for k̂ below {limit}."
    alone = " That is of the forward chains only; log Z comes from both sides here."
    return words + (alone if estimate.two_sided is not None else "")


def _shown(ax, name: str, words: str) -> tuple[Html, str]:
    return picture(ax, name, f"{ax.get_title()}. {words}"), words


def _cost(estimate: Estimate) -> Html:
    settings, run, reverse = estimate.settings, estimate.run, estimate.reverse
    rows = [
        ("pilot", settings.pilot_sweeps, settings.pilot_seconds),
        ("forward run", run.sweeps, run.seconds),
    ]
    if reverse is not None:
        draws = settings.sweeps_of_draws(estimate.num_chains)
        rows.append(("reverse run and its draws", reverse.sweeps + draws, reverse.seconds))
    if estimate.runs.second is not None:
        second, probe = estimate.runs.second, estimate.runs.probe
        spent = second.seconds + (0.0 if probe is None else probe.seconds)
        rows.append(("second opinion", estimate.sweeps["second"], spent))
    rows.append(("all", sum(estimate.sweeps.values()), estimate.seconds))
    shown = table(
        [(name, f"{sweeps:,}", f"{seconds:.1f}") for name, sweeps, seconds in rows],
        ("part", "sweeps", "seconds"),
    )
    if estimate.evaluations is None:
        return shown
    spent = estimate.evaluations
    words = f"Evaluations of the density: {spent['pilot']:,} in pilots, {spent['main']:,} in runs"
    words += f", {spent['second']:,} in the second opinion." if "second" in spent else "."
    return join([shown, tag("p", words)])


def _again(estimate: Estimate) -> Again:
    return estimate_again(estimate.settings, estimate.schedule.name, estimate.num_steps)


def again_section(again: Again) -> Html:
    """What to type, and what must be said with it."""
    notes = [items(again.notes)] if again.notes else []
    given = "the same bits" if again.is_exact else "another run like it"
    promise = f"With the versions below, on a processor of the same kind, this gives {given}:"
    return section("Reproduce", tag("p", promise), code(again.text), *notes)


def _provenance(estimate: Estimate) -> list[tuple[str, str]]:
    settings, schedule = estimate.settings, estimate.schedule
    rows = [
        ("model", str(settings.asked.model or settings.source or estimate.model)),
        ("model digest", settings.model_digest),
        ("base", estimate.base),
        ("base digest", settings.base_digest or "none"),
        ("schedule", f"{schedule.name}, {schedule.num_steps:,} steps"),
        ("schedule digest", schedule.digest),
        ("seed", str(estimate.seed)),
    ]
    return rows + provenance_rows(settings.versions)


def provenance_rows(versions: dict[str, str]) -> list[tuple[str, str]]:
    """The device and the versions."""
    named = {name: version for name, version in versions.items() if name != "device"}
    software = ", ".join(f"{name} {version}" for name, version in named.items())
    return [("device", versions["device"]), ("software", software), ("page written", _today())]


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
