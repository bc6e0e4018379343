"""Train one of the paper's RBMs on MNIST.

    python papers/kiwaki2015/train.py mnist-pcd-20 --mnist FOLDER --out FILE

The settings of every model are in `TABLE` below; 250,000 updates of 100 digits each, intensities
sampled anew for every minibatch, plain SGD.
"""

import argparse
import os
import time
from typing import Any

import numpy as np

from annealz.data import load_mnist
from annealz.formats import save_rbm
from annealz.models.exact import MAX_UNITS, exact_log_z
from annealz.training import train

# One line a model: hidden units, algorithm, Gibbs steps, learning rate at the start and at the end
# (None: fixed), weight decay.
TABLE: dict[str, tuple[int, str, int, float, float | None, float]] = {
    "mnist-pcd-20": (20, "pcd", 1, 0.01, None, 0.0),
    "mnist-cd1-20": (20, "cd", 1, 0.01, None, 0.0),
    "mnist-cd25-20": (20, "cd", 25, 0.01, None, 0.0),
    "mnist-pcd-500": (500, "pcd", 1, 0.01, None, 0.0),
    "mnist-cd1-500": (500, "cd", 1, 0.01, None, 0.0),
    "mnist-cd25-500": (500, "cd", 25, 0.01, None, 0.0),
}
SETTINGS: dict[str, dict[str, Any]] = {
    name: {
        "num_hidden": hidden,
        "num_updates": 250_000,
        "learning_rate": rate,
        "final_learning_rate": final_rate,
        "weight_decay": decay,
        "batch_size": 100,
        "seed": 0,
        "algorithm": algorithm,
        "gibbs_steps": steps,
    }
    for name, (hidden, algorithm, steps, rate, final_rate, decay) in TABLE.items()
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=SETTINGS)
    folder = os.environ.get("ANNEALZ_MNIST")
    parser.add_argument(
        "--mnist", default=folder, required=folder is None, help="folder with the IDX files"
    )
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    settings = SETTINGS[arguments.name]
    data = load_mnist(arguments.mnist, "train")
    start = time.perf_counter()

    def report(updates, model):
        if updates % 50_000 == 0:
            size = float(np.sqrt((np.asarray(model.weights) ** 2).mean()))
            print(
                f"{arguments.name} {updates:7d} updates  rms weight {size:.3f}  "
                f"{time.perf_counter() - start:.0f} s",
                flush=True,
            )

    model = train(data, report=report, **settings)
    meta = {"name": arguments.name, "training": settings, "digest": model.digest}
    if model.num_hidden <= MAX_UNITS:
        meta["exact_log_z"] = exact_log_z(model)
    save_rbm(arguments.out, model, meta)


if __name__ == "__main__":
    main()
