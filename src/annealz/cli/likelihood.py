"""`annealz likelihood`: the mean log-likelihood of data under a model."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annealz.cli.estimate import resuming_command
from annealz.cli.options import (
    MODEL,
    OF_RUNS,
    Options,
    argument,
    command,
    option,
    request_options,
    shared,
)
from annealz.cli.run import open_session
from annealz.cli.show import check_free, show_sheet
from annealz.core import interrupts
from annealz.core.names import packaged_models
from annealz.io.files import check_file, write_atomic, writing

if TYPE_CHECKING:
    import numpy as np

_TABLES = (".npy", ".csv")


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
    with open_session(options, resuming_command(options)) as session:
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
