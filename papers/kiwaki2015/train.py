"""Train one of the paper's RBMs on MNIST.

    python papers/kiwaki2015/train.py mnist-pcd-20 --out mnist-pcd-20.npz

The settings of every model are in `TABLE` below; 250,000 updates of 100 digits each, intensities
sampled again for every minibatch, plain SGD. The work is that of `annealz train`, whose command is
printed: a training that was cut off goes on when this is run again.
"""

import argparse
import shlex
import sys
from pathlib import Path

from annealz.cli.main import main as annealz
from annealz.training.job import training_store

# One line a model: hidden units, algorithm, Gibbs steps, learning rate at the start and at the end
# (None: fixed), weight decay.
TABLE: dict[str, tuple[int, str, int, float, float | None, float]] = {
    "mnist-pcd-20": (20, "pcd", 1, 0.01, None, 0.0),
    "mnist-cd1-20": (20, "cd", 1, 0.01, None, 0.0),
    "mnist-cd25-20": (20, "cd", 25, 0.01, None, 0.0),
    "mnist-pcd-500": (500, "pcd", 1, 0.02, 0.0, 0.0),
    "mnist-cd1-500": (500, "cd", 1, 0.02, 0.0, 0.0),
    "mnist-cd25-500": (500, "cd", 25, 0.02, 0.0, 0.0),
}
NUM_UPDATES, BATCH_SIZE, SEED = 250_000, 100, 0


def command(name: str, out: Path) -> list[str]:
    """The arguments of annealz that train this model."""
    hidden, algorithm, gibbs_steps, rate, final_rate, decay = TABLE[name]
    words = ["train", "mnist", "--out", out, "--hidden", hidden, "--algorithm", algorithm]
    words += ["--gibbs-steps", gibbs_steps, "--updates", NUM_UPDATES, "--learning-rate", rate]
    words += [] if final_rate is None else ["--final-learning-rate", final_rate]
    words += ["--weight-decay", decay, "--batch", BATCH_SIZE, "--seed", SEED]
    return [str(word) for word in words]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=TABLE)
    parser.add_argument("--mnist", help="folder with the IDX files (else fetched once)")
    parser.add_argument("--out", type=Path, help="the model file (default: NAME.npz)")
    arguments = parser.parse_args()
    out = arguments.out or Path(f"{arguments.name}.npz")
    store = training_store(out)
    if store.holds_run:
        words = ["resume", str(store.path)]
    else:
        words = command(arguments.name, out)
        words += [] if arguments.mnist is None else ["--mnist", arguments.mnist]
    print(f"annealz {shlex.join(words)}", file=sys.stderr)
    annealz(words)


if __name__ == "__main__":
    main()
