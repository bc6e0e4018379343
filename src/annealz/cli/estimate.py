"""`annealz estimate`, `annealz evidence` and `annealz entropy`: log Z, and what follows from it."""

from __future__ import annotations

import dataclasses
import re
import shlex
import sys
from typing import Any

from annealz.cli.network import shown_in, with_evidence
from annealz.cli.options import Options, given_words, request_options
from annealz.cli.run import (
    check_outputs,
    drop_scratch,
    end,
    open_client,
    resume_run,
    run_estimate,
)

__all__ = ["check_run", "entropy", "estimate", "evidence", "resume", "resuming_command"]

_MOST_ROWS = 40  # of a posterior


def estimate(options: Options) -> None:
    """Estimate log Z of MODEL."""
    from annealz.methods.annealing.advice import next_command
    from annealz.models.formats.naming import MappedFile

    check_outputs(options)
    model = MappedFile.of(options.model, options.names)
    model = with_evidence(model, options.evidence, options.quiet)
    with open_client(options.cluster, options.quiet) as client:
        result, store = run_estimate(options, client, model=model)
    shown = shown_in(result, options.log10)
    end(options, shown, "log Z", [(result, store)], next_command(result), result)


def resume(options: Options) -> None:
    """Resume the run or training in FOLDER; the result is the same as without the interruption."""
    from annealz.io.store import Store
    from annealz.models.formats.load import load_model

    store = Store(options.folder)
    if store.method == "training":
        from annealz.cli.train import resume_training

        for name in ("plot", "report", "model", "cluster"):
            if getattr(options, name) is not None:
                raise ValueError(f"a training has no use for --{name}: leave it out.")
        resume_training(options.folder, options.as_json, options.quiet)
        return
    check_outputs(options)
    store.record()  # a folder that cannot be resumed is refused before workers are started
    model = None if options.model is None else load_model(options.model)
    with open_client(options.cluster, options.quiet) as client:
        result, store = resume_run(options.folder, options, client, model)
    end(options, result, "log Z", [(result, store)])


def entropy(options: Options) -> None:
    """Entropy of MODEL, log Z − ⟨log p*⟩, in nats and bits.

    Of RBMs it is that of the visible units, of Ising, Potts and deep models that of all units, of densities
    the differential one.
    """
    from annealz.methods.annealing.advice import next_command
    from annealz.models.formats.load import load_model

    check_outputs(options)
    go_on = resuming_command(options)
    with open_client(options.cluster, options.quiet) as client:
        if options.run is None:
            estimate, store = run_estimate(options, client, go_on=go_on)
        else:
            target = load_model(options.model)
            check_run(options, target)
            estimate, store = resume_run(options.run, options, client, target, go_on)
    try:
        result = estimate.entropy()
    except ValueError:
        drop_scratch(store)
        raise
    again = None if options.run is not None else next_command(estimate)
    end(options, result, "entropy", [(estimate, store)], again, estimate)


def resuming_command(options: Options) -> str:
    """Return the command that takes the chains of an interrupted run, before its folder."""
    made_by_run = {one.name for one in request_options()}
    words = given_words(options.context, {*made_by_run, "run", "out", "force", "checkpoint_seconds"})
    return f"{shlex.join(words)} --run"


def check_run(options: Options, model: Any) -> None:
    """Refuse the run of another model, and options that ask for a new one."""
    from annealz.io.store import Store

    made_by_run = [*(one.name for one in request_options()), "exact", "out"]
    source = options.context.get_parameter_source
    given = [name for name in made_by_run if getattr(source(name), "name", "") == "COMMANDLINE"]
    if given:
        from annealz.diagnostics.findings import option_of

        words = ", ".join(option_of(name) for name in given)
        raise ValueError(
            f"--run takes log Z from {options.run}, and {words} would make another: leave one out."
        )
    record = Store(options.run).record()
    if record.get("model_digest") != model.digest:
        raise ValueError(
            f"the run in {options.run} is that of another model, {record.get('model')}: give its own."
        )


def evidence(options: Options) -> None:
    """Log evidence of Bayesian models, and their Bayes factors.

    Of one model the posterior means are shown too, of several a table, the best first. Several models have
    seeds that follow each other, so that their errors are independent, and folders of their own in --out.
    """
    models, names = options.models, _names(options.models)
    if len(models) > 1 and (options.plot is not None or options.report is not None):
        raise ValueError("--plot and --report are of one model: leave them out, or give one model.")
    check_outputs(options)
    results: list[tuple[Any, Any]] = []
    try:
        with open_client(options.cluster, options.quiet) as client:
            for i, (model, name) in enumerate(zip(models, names, strict=True)):
                if len(models) > 1 and not options.quiet:
                    print(f"annealz: {model}, {i + 1} of {len(models)}", file=sys.stderr)
                out = options.out
                out = out if out is None or len(models) == 1 else out / name
                changes = {"model": model, "out": out, "seed": options.seed + i}
                options.model = model
                results.append(run_estimate(options, client, **changes))
    except BaseException:
        for _, store in results:  # which nobody will read
            drop_scratch(store)
        raise
    if len(results) == 1:
        _finish_one(options, *results[0])
    else:
        _finish_several(options, results, names)


def _finish_one(options: Options, result: Any, store: Any) -> None:
    from annealz.methods.annealing.advice import next_command

    posterior = result.posterior
    shown = result if posterior is None else _WithPosterior(result, posterior)
    end(options, shown, "log Z", [(result, store)], next_command(result), result)


def _finish_several(options: Options, results: list[tuple[Any, Any]], names: list[str]) -> None:
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
    end(options, shown, "best model", results)


def _names(models: list[str]) -> list[str]:
    """Return what a table calls the models: the words after the colon, or the full name if those clash."""
    if len({*models}) < len(models):
        raise ValueError(f"the models must differ, got {', '.join(models)}: name each once.")
    for words in ([model.rpartition(":")[2] for model in models], models):
        names = [re.sub(r"[^\w.-]+", "-", word).strip("-.") or "model" for word in words]
        if len({*names}) == len(names):
            return names
    return [f"{i}-{name}" for i, name in enumerate(names, 1)]


class _WithPosterior:
    """An estimate, and the means of its posterior below it."""

    def __init__(self, estimate: Any, posterior: Any):
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

    def __init__(self, models: Any, estimates: dict[str, Any]):
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
