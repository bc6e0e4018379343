"""The models themselves: mean log-likelihood of MNIST, and pictures.

    python papers/kiwaki2015/models.py --mnist FOLDER

    log p(v) = log p*(v) - log Z, in nats a digit, digits binarised by sampling with a fixed seed

log Z is exact with 20 hidden units; with 500 it is the estimate of VAROPT at the largest K from the
base rate, all replicates pooled. Its error is common to all digits and stands apart from the error
of the mean over digits. As log Z-hat is biased low, such a log-likelihood is biased high.

The table needs MNIST and is therefore written by this script alone: `reproduce.py` takes it as it
is found.
"""

import argparse
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from annealz.models.formats.load import load_binary
from annealz.models.rbm import RBM
from annealz.training.data import binarise, load_mnist
from pooled import Pooled, pool
from portraits import write_portraits
from results import Key, Results
from settings import MODELS, model_label
from sheet import Column, Sheet

__all__ = ["NAME", "likelihoods"]

HERE = Path(__file__).parent
NAME = "models"
_SEED = 0
_ROWS = 5000  # at a time
_SCHEDULE, _BASE = "varopt", "base-rate"

_COLUMNS = (
    Column("model", "model"),
    Column("num_hidden", "hidden", shown="d", kept="d"),
    Column("algorithm", "algorithm"),
    Column("num_updates", "updates", shown=",d", kept="d"),
    Column("learning_rate", "", kept="g"),
    Column("final_learning_rate", "", kept="g"),
    Column("", "learning rate", shown="s"),
    Column("log_z", "", kept=".6f"),
    Column("log_z_std_err", "", kept=".6f"),
    Column("", "log Z", shown="s"),
    Column("train", "train, nats", shown=".3f", kept=".6f"),
    Column("train_std_err", "s.e.", shown=".3f", kept=".6f"),
    Column("test", "test, nats", shown=".3f", kept=".6f"),
    Column("test_std_err", "s.e.", shown=".3f", kept=".6f"),
)


def likelihoods(results: Results, mnist: str | None) -> Sheet:
    """One row a model: how it was trained, log Z, and mean log-likelihoods."""
    digits = {split: binarise(load_mnist(mnist, split), _SEED) for split in ("train", "test")}
    rows = []
    for name in results.record["models"]:
        model, meta = _load(results, name)
        training, log_z = meta["training"], _log_z(results, name)
        rate, final = training["learning_rate"], training.get("final_learning_rate")
        known = results.exact_log_z(name) is not None
        densities = [_log_densities(model, digits[split]) for split in ("train", "test")]
        rows.append(
            (
                model_label(name),
                training["num_hidden"],
                f"{training['algorithm'].upper()}-{training['gibbs_steps']}",
                training["num_updates"],
                rate,
                final,
                f"{rate:g}" if final is None else f"{rate:g} → {final:g}",
                *log_z,
                f"{log_z.log_z:.4f}" + (", exact" if known else f" ± {log_z.std_err:.4f}"),
                *(x for d in densities for x in _mean(d - log_z.log_z)),
            )
        )
    return Sheet(_COLUMNS, rows)


def _log_z(results: Results, name: str) -> Pooled:
    exact = results.exact_log_z(name)
    if exact is not None:
        return Pooled(exact, 0.0)
    return pool(results.cells[Key(name, _BASE, _SCHEDULE, results.largest)], results.num_chains)


def _load(results: Results, name: str) -> tuple[RBM, dict]:
    model, meta = load_binary(name)
    if model.digest != results.record["models"][name]["digest"]:
        raise ValueError(f"the results are of another {name}: run them afresh.")
    return model, meta


def _log_densities(model: RBM, digits: np.ndarray) -> np.ndarray:
    """log p*(v) of every digit."""
    blocks = np.split(digits, range(_ROWS, len(digits), _ROWS))
    return np.concatenate(
        [np.asarray(model.log_density(jnp.asarray(v)), np.float64) for v in blocks]
    )


def _mean(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def main() -> int:
    parser = argparse.ArgumentParser(description="Log-likelihoods and pictures of the models.")
    parser.add_argument("--mnist", help="folder with the IDX files (else fetched once)")
    parser.add_argument("--out", type=Path, default=HERE / "full", help="folder of runs.npz")
    arguments = parser.parse_args()
    try:
        results = Results.load(arguments.out / "runs.npz")
        sheet = likelihoods(results, arguments.mnist)
        sheet.write(arguments.out / "tables", NAME)
        print(sheet.markdown())
        for name in filter(results.record["models"].__contains__, MODELS):
            write_portraits(name, _load(results, name)[0], arguments.out / "figures")
    except ValueError as error:
        print(f"models: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
