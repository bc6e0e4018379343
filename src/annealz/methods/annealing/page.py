"""The page of an annealed estimate: its sections, with figures and what they show in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from annealz.core.numerics import with_error
from annealz.diagnostics.diagnostics import IslandJudgement, pareto_k_limit
from annealz.diagnostics.sheet import Figure, Part, Section, Table
from annealz.io.schedules import described
from annealz.schedules.schedule import Schedule

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate
    from annealz.methods.annealing.second_opinion import SecondOpinion

MEANINGS = {
    "reliable": "The error bar can be used: the weights have a light enough tail, enough chains carry "
    "them, and no other evidence contradicts. No diagnosis can see a mode that no chain has reached.",
    "unreliable": "Do not use this number as it is: its error bar cannot be relied on, and log Z is often "
    "too low then.",
}
MEANINGS_TWO_SIDED = {
    "reliable": "The error bar can be used: forward and reverse chains meet, and do not contradict each "
    "other.",
    "unreliable": "Do not use this number as it is: forward and reverse chains do not confirm each other.",
}
_MOST_SHOWN = 6  # numbers of one observed function


def sections_of(estimate: Estimate) -> list[Section]:
    """Return the sections of a page between the result and its cost."""
    sections = [
        Section("The path and its schedule", _path_figures(estimate)),
        Section("The weights", _weight_figures(estimate)),
    ]
    opinion, reason = estimate.second_opinion, estimate.plan.base_reason
    parts = [] if opinion is None else _opinion_parts(estimate, opinion)
    if reason:
        parts.append(f"The base was found by pilots. {reason[0].upper()}{reason[1:]}.")
    if parts:
        sections.append(Section("The second opinion", parts))
    means = estimate.trace.means
    names = [name for name in sorted(means) if name != "slope"]
    if names and estimate.trace.steps.size:
        rows = [(name, _mean_in_words(means[name][-1])) for name in names]
        sections.append(Section("Observed", [Table(rows)]))
    return sections


def _path_figures(estimate: Estimate) -> list[Figure]:
    schedule, terrain = estimate.schedule, estimate.terrain
    middle = schedule.betas[schedule.num_steps // 2]
    source = (
        f"the pilot saw this path at {terrain.betas.size:,} values of β"
        if schedule.terrain is not None
        else "no pilot is recorded with this schedule: g is what the run itself saw"
    )
    asked = "√(g τ), which least variance asks for, and √g" if terrain.tau is not None else "√g"
    top = int(np.argmax(terrain.variance))
    figures = [
        Figure(
            "schedule",
            schedule.plot,
            f"β against the fraction of steps: {schedule.name}, {schedule.num_steps:,} steps"
            f"{_rule_of(schedule)}. Half of them are spent above β = {middle:.3g}.",
        ),
        Figure(
            "dwell",
            estimate.plot_dwell,
            f"The filled area is the share of the steps spent at each β, the lines are {asked}; {source}.",
        ),
        Figure(
            "variance",
            terrain.plot_variance,
            f"Variance g of the slope d log p*/dβ: largest at β = {terrain.betas[top]:.3g} with "
            f"{terrain.variance[top]:.3g}.",
        ),
    ]
    if terrain.tau is not None and terrain.tau_is_bound is not None:
        top, bounds = int(np.argmax(terrain.tau)), int(terrain.tau_is_bound.sum())
        note = (
            f" At {bounds} of {terrain.tau.size} values it is only a lower bound." if bounds else ""
        )
        words = (
            f"Sweeps that chains remember: up to τ = {terrain.tau[top]:.3g} at β = "
            f"{terrain.betas[top]:.3g}.{note}"
        )
        figures.append(Figure("tau", terrain.plot_tau, words))
    return figures


def _rule_of(schedule: Schedule) -> str:
    """Return what the rule is, in brackets; of another package it is recorded with the schedule."""
    recorded = (schedule.provenance.get(key) for key in ("description", "package"))
    words = [text for text in recorded if isinstance(text, str)] or [described(schedule.name)]
    return f" ({'; '.join(words)})" if words[0] else ""


def _weight_figures(estimate: Estimate) -> list[Figure]:
    size, ess = estimate.num_chains, estimate.trace.ess[-1]
    fell = f"Effective chains along the way: {ess:.1f} of {size:,} at the end"
    if estimate.run.num_resamplings:
        fell += f", after islands were resampled {estimate.run.num_resamplings:,} times"
    figures = [
        Figure("ess", estimate.plot_ess, f"{fell}."),
        Figure("weights", estimate.plot_weights, _tail(estimate)),
    ]
    if estimate.two_sided is not None:
        both = estimate.two_sided
        low, high = (estimate.run.log_z0 + bound for bound in (both.lower, both.upper))
        words = (
            f"Work of forward and reverse chains. Their means {low:.4f} and {high:.4f} bound log Z, and "
            f"where the two meet, BAR finds it; overlap {both.overlap:.2g}."
        )
        figures.append(Figure("work", estimate.plot_work, words))
    path = estimate.convergence()
    words = (
        f"log Z from the first chains: {path.log_z[0]:.4f} from {int(path.num_chains[0]):,}, "
        f"{path.log_z[-1]:.4f} from {int(path.num_chains[-1]):,}. A curve that still rises in jumps has "
        "not settled."
    )
    return [*figures, Figure("convergence", estimate.plot_convergence, words)]


def _tail(estimate: Estimate) -> str:
    words = f"log weights of {estimate.num_chains:,} forward chains: {estimate.tail}."
    judgement = estimate.judgement
    if isinstance(judgement, IslandJudgement) or np.isnan(judgement.pareto_k):
        return words
    limit = f"{pareto_k_limit(estimate.num_chains):.2f}"
    words += f" The upper tail makes the mean, which is trusted for k̂ below {limit}."
    alone = " That is of the forward chains only; log Z comes from both sides here."
    return words + (alone if estimate.two_sided is not None else "")


def _opinion_parts(estimate: Estimate, opinion: SecondOpinion) -> list[Part]:
    """Return what chains from another base say."""
    difference = with_error(opinion.difference, opinion.difference_std_err)
    rows = [
        ("first", estimate.base, with_error(estimate.first_log_z, estimate.first_std_err)),
        ("second", opinion.base, with_error(opinion.log_z, opinion.std_err)),
        ("difference", "", difference),
    ]
    parts: list[Part] = [
        Table(rows, ("estimate", "base", "log Z")),
        f"The second opinion is {opinion.in_words}.",
    ]
    if estimate.runs.probe is not None:
        parts.append(
            f"Of {estimate.runs.probe.num_chains:,} final states of the second run, annealed back "
            "along the first path, those that no first chain reaches hold "
            f"{100 * opinion.missed:.1f} % of the mass."
        )
    return parts


def _mean_in_words(value: np.ndarray) -> str:
    """Return one number, or what many of them are like."""
    if value.size <= _MOST_SHOWN:
        return ", ".join(f"{one:.6g}" for one in value.ravel())
    shape = " × ".join(map(str, value.shape))
    return f"{shape} numbers from {value.min():.6g} to {value.max():.6g}, their mean {value.mean():.6g}"
