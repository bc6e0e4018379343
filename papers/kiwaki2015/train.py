"""Train one of the paper's RBMs on MNIST.

    python papers/kiwaki2015/train.py mnist-pcd-20 --mnist FOLDER --out FILE

The settings of every packaged model are in `SETTINGS` below; 250,000 updates of 100 digits each,
intensities sampled anew for every minibatch, plain SGD at a fixed learning rate.
"""

import argparse
import time
from typing import Any

import numpy as np

from annealz.data import load_mnist
from annealz.formats import save_rbm
from annealz.models.exact import MAX_UNITS, exact_log_z
from annealz.training import train

COMMON = {
    "num_hidden": 20,
    "num_updates": 250_000,
    "learning_rate": 0.01,
    "weight_decay": 0.0,
    "batch_size": 100,
    "seed": 0,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "mnist-pcd-20": {**COMMON, "algorithm": "pcd", "gibbs_steps": 1},
    "mnist-cd1-20": {**COMMON, "algorithm": "cd", "gibbs_steps": 1},
    "mnist-cd25-20": {**COMMON, "algorithm": "cd", "gibbs_steps": 25},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=SETTINGS)
    parser.add_argument("--mnist", required=True, help="folder with the IDX files")
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
