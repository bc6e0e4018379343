"""The options that commands share."""

from pathlib import Path
from typing import Annotated

import typer

from annealz.bases.choose import BASES
from annealz.paths.geometric import MARGINALS

__all__ = ["Base", "Data", "Force", "Json", "Marginal", "Model", "Plot", "Quiet", "Seed"]

Model = Annotated[str, typer.Argument(help="Packaged name (see 'annealz models') or npz file.")]
Seed = Annotated[int, typer.Option(help="All randomness is a function of it.")]
Base = Annotated[str, typer.Option(help=f"Where to start: {', '.join(BASES)}.")]
Data = Annotated[
    Path | None, typer.Option(help="Training data or means for the base rate: npy, npz, IDX.")
]
Marginal = Annotated[str, typer.Option(help=f"The layer annealed: {', '.join(MARGINALS)}.")]
Plot = Annotated[Path | None, typer.Option(help="Write a picture (png, pdf, svg).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
