"""`annealz evidence`: log Z of densities, with the posterior of one and a table of several."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from annealz.cli.cluster import open_client
from annealz.cli.estimate import drop_scratch, finish, run_estimate, settle
from annealz.cli.options import (
    Base,
    Chains,
    CheckpointSeconds,
    Cluster,
    Force,
    Json,
    MaxSeconds,
    Models,
    Out,
    Plot,
    Quiet,
    Report,
    Resample,
    Schedule,
    SecondOpinion,
    Seed,
    Steps,
    Strict,
    TargetStdErr,
    TlsCa,
    TlsCert,
    TlsKey,
    TwoSided,
)
from annealz.cli.show import check_page, check_plot, show_result
from annealz.core.names import DEFAULT_SCHEDULE

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate
    from annealz.methods.folder import RunFolder
    from annealz.methods.posterior import Posterior
    from annealz.results.models import ModelTable

__all__ = ["evidence"]

_MOST_ROWS = 40  # of a posterior


def evidence(
    context: typer.Context,
    models: Models,
    schedule: Schedule = DEFAULT_SCHEDULE,
    steps: Steps = None,
    chains: Chains = None,
    seed: Seed = 0,
    base: Base = "auto",
    target_std_err: TargetStdErr = None,
    max_seconds: MaxSeconds = None,
    two_sided: TwoSided = False,
    second_opinion: SecondOpinion = True,
    resample: Resample = None,
    out: Out = None,
    force: Force = False,
    checkpoint_seconds: CheckpointSeconds = 15.0,
    cluster: Cluster = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    plot: Plot = None,
    report: Report = None,
    strict: Strict = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Log evidence of Bayesian models, and their Bayes factors.

    Of one model the posterior means are shown too, of several a table, the best first. Several models have
    seeds that follow each other, so that their errors are independent, and folders of their own in --out.
    """
    names = _names(models)
    if len(models) > 1 and (plot is not None or report is not None):
        raise ValueError("--plot and --report are of one model: leave them out, or give one model.")
    check_plot(plot)
    check_page(report)
    options: dict[str, Any] = {
        "schedule": schedule,
        "num_steps": steps,
        "num_chains": chains,
        "base": base,
        "target_std_err": target_std_err,
        "max_seconds": max_seconds,
        "two_sided": two_sided,
        "second_opinion": second_opinion,
        "resample": resample,
        "force": force,
        "checkpoint_seconds": checkpoint_seconds,
    }
    results: list[tuple[Estimate, RunFolder | None]] = []
    try:
        with open_client(cluster, tls_ca, tls_cert, tls_key, quiet) as client:
            for i, (model, name) in enumerate(zip(models, names, strict=True)):
                if len(models) > 1 and not quiet:
                    print(f"annealz: {model}, {i + 1} of {len(models)}", file=sys.stderr)
                folder = out if out is None or len(models) == 1 else out / name
                options |= {"seed": seed + i, "client": client}
                results.append(run_estimate(model, folder, quiet, **options))
    except BaseException:
        for _, folder in results:  # which nobody will read
            drop_scratch(folder)
        raise
    if len(results) == 1:
        _finish_one(*results[0], plot, report, as_json, context.find_root().obj)
    else:
        _finish_several(results, names, as_json)


def _finish_one(
    result: Estimate,
    folder: RunFolder | None,
    plot: Path | None,
    report: Path | None,
    as_json: bool,
    arguments: list[str] | None,
) -> None:
    again = None if arguments is None else ["estimate", *arguments[1:]]  # which has every remedy
    posterior = result.posterior
    shown = None if posterior is None else _WithPosterior(result, posterior)
    finish(result, folder, plot, report, as_json, again, shown)


def _finish_several(
    results: list[tuple[Estimate, RunFolder | None]], names: list[str], as_json: bool
) -> None:
    from annealz.results.models import compare_models

    estimates = dict(zip(names, (result for result, _ in results), strict=True))
    table = compare_models(estimates)
    reasons = tuple(
        one
        if one.reason is None
        else dataclasses.replace(
            one, reason=estimates[one.name].to_dict()["messages"][0].rstrip(".")
        )
        for one in table.evidences
    )
    shown = _Several(dataclasses.replace(table, evidences=reasons), estimates)
    show_result(shown, as_json, "best model")
    for result, folder in results:
        settle(result, folder)


def _names(models: list[str]) -> list[str]:
    """What a table calls them: the words after the colon, or all of it where these are not unlike."""
    if len({*models}) < len(models):
        raise ValueError(f"the models must differ, got {', '.join(models)}: name each once.")
    for words in ([model.rpartition(":")[2] for model in models], models):
        names = [re.sub(r"[^\w.-]+", "-", word).strip("-.") or "model" for word in words]
        if len({*names}) == len(names):
            return names
    return [f"{i}-{name}" for i, name in enumerate(names, 1)]


class _WithPosterior:
    """An estimate, and the means of its posterior below it."""

    def __init__(self, estimate: Estimate, posterior: Posterior):
        self.estimate, self.posterior = estimate, posterior

    def rows(self) -> list[tuple[str, str]]:
        return self.estimate.rows()

    def headings(self) -> tuple[str, ...]:
        return self.posterior.headings()

    def table(self) -> list[tuple[str, ...]]:
        rows = self.posterior.table()
        more = [("…", f"{len(rows) - _MOST_ROWS:,} more", "", "")] if len(rows) > _MOST_ROWS else []
        return [*rows[:_MOST_ROWS], *more]

    def to_dict(self) -> dict[str, Any]:
        return {**self.estimate.to_dict(), "posterior": self.posterior.to_dict()}


class _Several:
    """A table of models; its record holds all of every estimate."""

    def __init__(self, models: ModelTable, estimates: dict[str, Estimate]):
        self.models, self.estimates = models, estimates

    def rows(self) -> list[tuple[str, str]]:
        return self.models.rows()

    def headings(self) -> tuple[str, ...]:
        return self.models.headings()

    def table(self) -> list[tuple[str, ...]]:
        return self.models.table()

    def to_dict(self) -> dict[str, Any]:
        record = self.models.to_dict()
        for row in record["models"]:
            estimate = self.estimates[row["model"]]
            posterior = estimate.posterior
            own = {} if posterior is None else {"posterior": posterior.to_dict()}
            row |= {**estimate.to_dict(), **row, **own}
        return record
