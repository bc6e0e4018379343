"""`annealz entropy`: the entropy of a model, from the run that estimates its log Z."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from annealz.cli.cluster import open_client
from annealz.cli.estimate import drop_scratch, run_estimate, settle
from annealz.cli.kept_run import check_run, resume_kept
from annealz.cli.options import (
    Base,
    Chains,
    CheckpointSeconds,
    Cluster,
    Data,
    Exact,
    Force,
    Json,
    Marginal,
    MaxSeconds,
    Model,
    Out,
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
from annealz.cli.retry import retry
from annealz.cli.show import check_page, save_pages, show_result
from annealz.core.names import DEFAULT_MODEL, DEFAULT_SCHEDULE

__all__ = ["entropy"]


def entropy(
    context: typer.Context,
    model: Model = DEFAULT_MODEL,
    schedule: Schedule = DEFAULT_SCHEDULE,
    steps: Steps = None,
    chains: Chains = None,
    seed: Seed = 0,
    base: Base = "auto",
    data: Data = None,
    marginal: Marginal = None,
    target_std_err: TargetStdErr = None,
    max_seconds: MaxSeconds = None,
    two_sided: TwoSided = False,
    second_opinion: SecondOpinion = True,
    resample: Resample = None,
    exact: Exact = False,
    run: Annotated[
        Path | None, typer.Option(help="Take the chains of the run in this folder, done or not.")
    ] = None,
    out: Out = None,
    force: Force = False,
    checkpoint_seconds: CheckpointSeconds = 15.0,
    cluster: Cluster = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    report: Report = None,
    strict: Strict = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Entropy of MODEL, log Z − ⟨log p*⟩, in nats and bits.

    Of RBMs it is that of the visible units, of Ising, Potts and deep models that of all units, of densities
    the differential one.
    """
    from annealz.methods.folder import RunFolder
    from annealz.models.formats.load import load_model
    from annealz.training.data.array import read_data

    check_page(report)
    making: dict[str, Any] = {
        "schedule": schedule,
        "num_steps": steps,
        "num_chains": chains,
        "seed": seed,
        "base": base,
        "data": None if data is None else read_data(data),
        "marginal": marginal,
        "target_std_err": target_std_err,
        "max_seconds": max_seconds,
        "two_sided": two_sided,
        "second_opinion": second_opinion,
        "resample": resample,
    }
    go_on = f"{shlex.join(['annealz', 'entropy', model])} --run"
    with open_client(cluster, tls_ca, tls_cert, tls_key, quiet) as client:
        if run is None:
            estimate, folder = run_estimate(
                model,
                out,
                quiet,
                exact=exact,
                go_on=go_on,
                force=force,
                checkpoint_seconds=checkpoint_seconds,
                client=client,
                **making,
            )
        else:
            target = load_model(model)
            check_run(run, target, {**making, "exact": exact, "out": out})
            estimate, folder = resume_kept(run, quiet, go_on, target), RunFolder(run)
    try:
        result = estimate.entropy()
    except ValueError:
        if run is None:
            drop_scratch(folder)
        raise
    arguments = context.find_root().obj
    again = None if arguments is None or run is not None else retry(arguments, estimate)
    show_result(result, as_json, "entropy", again)
    save_pages(estimate, None, report, as_json)
    settle(estimate, folder)
