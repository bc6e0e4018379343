"""`annealz estimate`, `evidence`, `entropy`, `resume`, `report`, `likelihood`: log Z, and what follows."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annealz.cli.options import (
    MODEL,
    OF_RUNS,
    Options,
    argument,
    command,
    given_words,
    option,
    request_options,
    shared,
)
from annealz.cli.run import open_session
from annealz.cli.show import check_free, check_outputs, show_sheet, with_log10
from annealz.core import interrupts
from annealz.core.errors import InputError
from annealz.core.names import packaged_models
from annealz.io.files import check_file, write_atomic, writing
from annealz.methods.annealing.request import AnnealingRequest

if TYPE_CHECKING:
    import numpy as np

    from annealz.diagnostics.sheet import Sheet
_TABLES = (".npy", ".csv")


@command(
    MODEL,
    *shared("method"),
    *request_options(),
    *shared("map", "evidence", "exact", *OF_RUNS, "plot", "report", "log10"),
    examples="""
        annealz estimate
        annealz estimate model.npz --steps 20000 --chains 2000 --out run
        annealz estimate model.npz --target-std-err 0.02 --json
        annealz estimate model.npz --two-sided --report page.html
        annealz estimate model.npz --method exchange --out run
        annealz estimate module:name --method nested
        annealz estimate network.uai --evidence network.uai.evid --log10
    """,
)
def estimate(options: Options) -> None:
    """Estimate log Z of MODEL."""
    from annealz.models.formats.naming import MappedFile

    check_outputs(options)
    model = _with_evidence(MappedFile.of(options.model, options.map), options)
    with open_session(options) as session:
        sheet = session.estimate(model=model).sheet()
        sheet = with_log10(sheet) if options.log10 else sheet
        session.end(sheet, sheet.next_command)


def _with_evidence(model: str, options: Options) -> str:
    """Return the model given the evidence of a file, as `load_model` takes it.

    Evidence that lies beside a network is not used unasked: it would change log Z unseen. It is mentioned.
    """
    evidence, path = options.evidence, Path(model)
    if evidence is None:
        beside = Path(f"{model}.evid")
        if model.endswith(".uai") and beside.is_file() and not options.quiet:
            print(
                f"annealz: {beside} lies beside the network and is not used: give --evidence {beside}.",
                file=sys.stderr,
            )
        return model
    from annealz.models.formats.uai import evidence_part, is_uai

    if path.parent.is_file():
        raise ValueError(f"{model} has evidence already: leave it out, or --evidence.")
    reason = "is not a file"
    if path.is_file():
        with path.open("rb") as file:
            reason = None if is_uai(file.read(1024)) else "is not one"
    if reason is not None:
        raise ValueError(f"--evidence is for networks of the UAI format, and {model} {reason}.")
    part = evidence_part(evidence)
    return f"{model}/{part}" if part else model


@command(
    argument(
        "models",
        "module:name or path/to/file.py:name, a density or a function that makes one; several are "
        "compared.",
        kind=list[str],
        metavar="MODEL",
    ),
    *shared("method"),
    *request_options(),
    *shared(*OF_RUNS, "plot", "report"),
    examples="""
        annealz evidence my_models:line
        annealz evidence my_models:line my_models:parabola
        annealz evidence analysis/models.py:line --target-std-err 0.05 --json
    """,
)
def evidence(options: Options) -> None:
    """Log evidence of Bayesian models, and their Bayes factors.

    Of one model the posterior means are shown too, of several a table, the best first. Several models have
    seeds that follow each other, so that their errors are independent, and folders of their own in --out.
    """
    models, names, out = options.models, _names(options.models), options.out
    if len(models) > 1 and (options.plot is not None or options.report is not None):
        raise ValueError("--plot and --report are of one model: leave them out, or give one model.")
    check_outputs(options)
    with open_session(options) as session:
        results: dict[str, Any] = {}
        for i, (model, name) in enumerate(zip(models, names, strict=True)):
            if len(models) > 1 and not options.quiet:
                print(f"annealz: {model}, {i + 1} of {len(models)}", file=sys.stderr)
            folder = out if out is None or len(models) == 1 else out / name
            results[name] = session.estimate(model=model, out=folder, seed=options.seed + i)
        if len(models) > 1:
            session.end(_sheet_of_several(results))
        else:
            sheet = _with_posterior(results[names[0]])
            session.end(sheet, sheet.next_command)


def _with_posterior(estimate: Any) -> Sheet:
    """Return the sheet of an estimate, with the means of its posterior."""
    sheet, posterior = estimate.sheet(), estimate.posterior
    if posterior is None:
        return sheet
    record = {**sheet.record, "posterior": posterior.to_dict()}
    return dataclasses.replace(sheet, table=posterior.sheet().table, record=record)


def _sheet_of_several(estimates: dict[str, Any]) -> Sheet:
    """Return the sheet of a table of models; its record holds all of every estimate."""
    from annealz.results.models import compare_models

    sheet = compare_models(estimates).sheet()
    models = [
        {**_with_posterior(estimates[row["model"]]).to_dict(), **row}
        for row in sheet.record["models"]
    ]
    return dataclasses.replace(sheet, record={**sheet.record, "models": models})


def _names(models: list[str]) -> list[str]:
    """Return what a table calls the models: the words after the colon, or the full name if those clash."""
    if len({*models}) < len(models):
        raise ValueError(f"the models must differ, got {', '.join(models)}: name each once.")
    for words in ([model.rpartition(":")[2] for model in models], models):
        names = [re.sub(r"[^\w.-]+", "-", word).strip("-.") or "model" for word in words]
        if len({*names}) == len(names):
            return names
    return [f"{i}-{name}" for i, name in enumerate(names, 1)]


@command(
    MODEL,
    *request_options(AnnealingRequest),
    *shared("exact", "run", *OF_RUNS, "report"),
    examples="""
        annealz entropy mnist-pcd-20
        annealz entropy lattice.npz --steps 2000 --json
    """,
)
def entropy(options: Options) -> None:
    """Entropy of MODEL, log Z − ⟨log p*⟩, in nats and bits.

    Of RBMs it is that of the visible units, of Ising, Potts and deep models that of all units, of densities
    the differential one.
    """
    from annealz.methods.annealing.advice import next_command
    from annealz.models.formats.load import load_model

    check_outputs(options)
    model = None if options.run is None else load_model(options.model)
    with open_session(options, _resuming_command(options)) as session:
        estimate = session.chains_of(model)
        again = next_command(estimate, "entropy") if options.run is None else None
        session.end(estimate.entropy().sheet(), again)


def _resuming_command(options: Options) -> str:
    """Return the command that takes the chains of an interrupted run, before its folder."""
    makes_run = {"method", "run", "exact", "out", "force", "checkpoint_seconds", "cluster"}
    words = given_words(options.context, {*makes_run, *(one.name for one in request_options())})
    return f"{shlex.join(words)} --run"


@command(
    argument("folder", "The folder of the run or training.", kind=Path),
    option(
        "model",
        "The model again, module:name, if it was imported: no module that a folder names is imported.",
    ),
    *shared("cluster", "plot", "report", "strict", "as_json", "quiet"),
    examples="""
        annealz resume run
        annealz resume digits.training
    """,
)
def resume(options: Options) -> None:
    """Resume the run or training in FOLDER; the result is the same as without the interruption."""
    from annealz.io.store import Store
    from annealz.models.formats.load import load_model

    store = Store(options.folder)
    if store.method == "training":
        from annealz.cli.tools import resume_training

        for name in ("plot", "report", "model", "cluster"):
            if getattr(options, name) is not None:
                raise InputError(name, "is of no use to a training", remedy=f"leave out {{{name}}}")
        resume_training(options)
        return
    check_outputs(options)
    store.record()  # a folder that cannot be resumed is refused before workers start
    model = None if options.model is None else load_model(options.model)
    with open_session(options) as session:
        session.end(session.resumed(options.folder, model).sheet())


@command(
    argument("run", "The folder of a finished run (estimate --out).", kind=Path),
    option("out", "The page, .html.", None, Path, ["-o", "--out"], show_default="RUN/report.html"),
    examples="""
        annealz report run
        annealz report run -o page.html
    """,
)
def report(options: Options) -> None:
    """Write the finished run in the folder RUN as one HTML page that needs nothing else.

    It holds the number with its error and status, pictures, the cost, and the command that reproduces it.
    """
    from annealz.api import resume as read_run
    from annealz.io.store import Store
    from annealz.views.report import check_report

    store = Store(options.run)
    if store.method == "training":
        raise ValueError(
            f"{options.run} holds a training, which has no report: give the folder of a run."
        )
    store.check_done()
    path = check_report(store.report if options.out is None else options.out)
    read_run(options.run).report(path)
    print(f"report: {path}")


@command(
    MODEL,
    argument(
        "examples",
        "mnist-test (default for models of MNIST), mnist, a file of rows (npy, npz, IDX), or aligned "
        "sequences in FASTA.",
        None,
        metavar="DATA",
        show_default=False,
    ),
    option(
        "alphabet",
        "Of sequences: protein, rna, dna, or the letters in the order of their states.",
        show_default=False,
    ),
    *shared("method"),
    *request_options(),
    option("conservative", "Also compute a lower bound, by reverse annealing.", False),
    option("per_example", "Write log p(v) of every example (npy, csv).", kind=Path),
    *shared("map", "exact", "run", "mnist", *OF_RUNS),
    examples="""
        annealz likelihood mnist-pcd-500
        annealz likelihood model.npz rows.npy --conservative
        annealz likelihood potts.npz sequences.fasta --per-example p.csv
    """,
)
def likelihood(options: Options) -> None:
    """Mean log-likelihood of DATA under MODEL, with the error of log Z and that of the data apart."""
    from annealz.models.formats.load import read_model
    from annealz.models.formats.naming import MappedFile
    from annealz.results.examples import read_examples
    from annealz.results.likelihood import check_conservative, log_likelihood

    options.model = MappedFile.of(options.model, options.map)
    model, meta = read_model(options.model)
    data = options.examples or _default_data(options.model, meta)
    if options.conservative:
        check_conservative(model)
    if options.per_example is not None:
        check_file(options.per_example, "file", _TABLES)
        check_free(options.per_example, options.force)
    examples = read_examples(data, model, alphabet=options.alphabet, mnist=options.mnist)
    with open_session(options, _resuming_command(options)) as session:
        estimate = session.chains_of(model)
        with session.ending():
            result = log_likelihood(
                model,
                examples.rows,
                estimate=estimate,
                conservative=options.conservative,
                data_name=examples.name,
                progress=options.conservative and not options.quiet,
            )
            interrupts.check()
            sheet = result.sheet()
            show_sheet(sheet, options.as_json)
            if options.per_example is not None:
                _save_table(result.log_likelihoods, options.per_example, examples.labels)
        session.settle(sheet)


def _default_data(model: str, meta: dict[str, Any]) -> str:
    """Return MNIST's test split for a model that was trained on its training split."""
    trained_on = (meta.get("training") or {}).get("data", {}).get("name", "")
    if model in packaged_models() or trained_on in ("mnist", "mnist-train"):
        return "mnist-test"
    raise ValueError(f"DATA is missing: give mnist-test, mnist or a file of rows for {model}.")


def _save_table(values: np.ndarray, path: Path, labels: tuple[str, ...] | None) -> None:
    """Write one value per example, in their order, and their labels if they have any."""
    import numpy as np

    if path.suffix == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, values, allow_pickle=False)
        content: bytes | str = buffer.getvalue()
    else:
        text = io.StringIO()
        columns = {"example": range(len(values)), "log_likelihood": map(repr, values.tolist())}
        columns |= {} if labels is None else {"name": labels}
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([columns, *zip(*columns.values(), strict=True)])
        content = text.getvalue()
    with writing(str(path)):
        write_atomic(path, content)
