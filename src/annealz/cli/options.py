"""The options that commands share; `help.py` fills in what stands in braces."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from annealz.cli import strict
from annealz.core.names import BASES, KERNELS, MARGINALS, METHODS, packaged_models
from annealz.io.registry.schedules import SCHEDULES

__all__ = [
    "Along",
    "Base",
    "Chains",
    "CheckpointSeconds",
    "Cluster",
    "Data",
    "Draws",
    "Ensembles",
    "Evidence",
    "Exact",
    "Force",
    "Json",
    "Kernel",
    "Log10",
    "Map",
    "Marginal",
    "MaxSeconds",
    "Method",
    "Mnist",
    "Model",
    "Models",
    "Out",
    "Plot",
    "Quiet",
    "Report",
    "Resample",
    "Rungs",
    "Schedule",
    "SecondOpinion",
    "Seed",
    "Steps",
    "Strict",
    "TargetStdErr",
    "TlsCa",
    "TlsCert",
    "TlsKey",
    "TwoSided",
]


def _completes(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What a shell completes a word to: these names, or files where none of them begins like it."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


Model = Annotated[
    str,
    typer.Argument(
        help="Packaged name (see 'annealz models'), model file ({suffixes}), or module:name of a Python "
        "object.",
        autocompletion=_completes(packaged_models),
    ),
]
Map = Annotated[
    str | None,
    typer.Option(
        "--map",
        help="What the arrays of the file are called: weights=W.T,hidden_bias=bh,visible_bias=bv.",
        metavar="NAMES",
    ),
]
Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL",
        help="module:name or path/to/file.py:name, a density or a function that makes one; several are "
        "compared.",
    ),
]
Schedule = Annotated[
    str,
    typer.Option(
        help="{schedules}, or a file of betas.",
        autocompletion=_completes(SCHEDULES.names),
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="annealing; exchange: replica exchange between values of beta; nested: nested sampling.",
        autocompletion=_completes(lambda: METHODS),
    ),
]
Rungs = Annotated[
    int | None, typer.Option(help="Temperatures of a ladder, of exchange (default: 32).")
]
Ensembles = Annotated[
    int | None, typer.Option(help="Independent ladders, of exchange (default: 32).")
]
Live = Annotated[
    int | None, typer.Option(help="Live points in all runs, of nested (default: 500).")
]
Runs = Annotated[int | None, typer.Option(help="Independent runs, of nested (default: 4).")]
InnerSteps = Annotated[
    int | None, typer.Option(help="Slices per new point, of nested (default: 5 per variable).")
]
MaxEvaluations = Annotated[
    int | None, typer.Option(help="Evaluations of the density at most, of nested.")
]
Steps = Annotated[
    int | None, typer.Option(help="Annealing steps K (default: 10000; densities: as needed).")
]
Chains = Annotated[int | None, typer.Option(help="Chains N (default: 1000; densities: 256).")]
TargetStdErr = Annotated[
    float | None, typer.Option(help="Take the steps and chains that this error needs.")
]
MaxSeconds = Annotated[
    float | None, typer.Option(help="End in about this time, with the chains that are done.")
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit with status 4 where the result is unreliable.",
        callback=strict.ask,  # which does it all
    ),
]
TwoSided = Annotated[
    bool, typer.Option("--two-sided", help="Anneal in reverse too: BAR, and bounds on both sides.")
]
Draws = Annotated[
    str | None,
    typer.Option(
        help="Where --two-sided starts in reverse: exchange (by default exact or forward)."
    ),
]
SecondOpinion = Annotated[
    bool,
    typer.Option(
        "--second-opinion/--no-second-opinion", help="Anneal some chains from an unlike base too."
    ),
]
Resample = Annotated[
    float | None, typer.Option(help="Resample islands of chains whose ESS falls below this share.")
]
Along = Annotated[
    str | None, typer.Option(help="Betas at which log Z is wanted too: 0.25,0.5,0.75.")
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Compute the exact log Z too, by enumeration or contraction."),
]
Out = Annotated[Path | None, typer.Option(help="Folder for checkpoints and results.")]
CheckpointSeconds = Annotated[float, typer.Option(help="Seconds between checkpoints.", min=0)]
Mnist = Annotated[
    Path | None, typer.Option(help="Folder with the MNIST files (else fetched once).")
]
Seed = Annotated[int, typer.Option(help="All randomness is a function of it.")]
Base = Annotated[
    str,
    typer.Option(
        help=f"Where to start: of an RBM {', '.join(BASES)}; docs/models.md, docs/densities.md.",
        autocompletion=_completes(lambda: BASES),
    ),
]
Data = Annotated[
    Path | None, typer.Option(help="Training data or means for the base rate: npy, npz, IDX.")
]
Marginal = Annotated[
    str | None,
    typer.Option(help=f"The layer annealed, of models with two: {', '.join(MARGINALS)}."),
]
Kernel = Annotated[
    str | None,
    typer.Option(
        help="The transition: clusters or gibbs of Ising and Potts models, gradient or gibbs of discrete "
        "functions.",
        autocompletion=_completes(lambda: KERNELS),
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Dask workers that compute: tcp://host:8786, a scheduler file, or local processes, like 4.",
        metavar="WHERE",
    ),
]
TlsCa = Annotated[
    Path | None, typer.Option(help="Certificate of who signs, of a cluster at tls://…")
]
TlsCert = Annotated[Path | None, typer.Option(help="Certificate of this client, with --tls-ca.")]
TlsKey = Annotated[Path | None, typer.Option(help="Its private key, with --tls-ca.")]
Plot = Annotated[Path | None, typer.Option(help="Write a picture (png, pdf, svg).")]
Report = Annotated[Path | None, typer.Option(help="Write an HTML page that holds all of it.")]
Evidence = Annotated[
    Path | None, typer.Option(help="Observed variables of a UAI network: an evid file.")
]
Log10 = Annotated[
    bool, typer.Option("--log10", help="Show log10 Z too, as the UAI competitions do.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
