"""The other end of `rbms_peer.py`: times the PyPI package rbms in its own environment.

It first writes one line with its versions. Then it reads one request a line from stdin, JSON
{"model": npz file, "num_chains": N, "num_steps": K, "seed": s}, runs the package's annealed
importance sampling on it and answers with one line, {"seconds": ..., "log_z": ...}. Between
requests it sleeps in `read`. Reading the model and start-up are not timed.
"""

import functools
import json
import os
import sys
import time
import warnings
from importlib.metadata import version

warnings.simplefilter("ignore")  # before the imports, which warn

import numpy as np  # noqa: E402 (after the filter)
import torch  # noqa: E402 (after the filter)
from rbms.bernoulli_bernoulli.classes import BBRBM  # noqa: E402 (after the filter)
from rbms.partition_function.ais import compute_partition_function_ais  # noqa: E402 (after the filter)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@functools.cache
def load(file: str) -> BBRBM:
    """The model of an annealz npz file: there W is (hidden, visible), here (visible, hidden)."""
    with np.load(file, allow_pickle=False) as arrays:
        weights, hidden_bias, visible_bias = (
            np.asarray(arrays[name], np.float32)
            for name in ("weights", "hidden_bias", "visible_bias")
        )
    return BBRBM(
        weight_matrix=torch.from_numpy(np.ascontiguousarray(weights.T)).to(DEVICE),
        vbias=torch.from_numpy(visible_bias).to(DEVICE),
        hbias=torch.from_numpy(hidden_bias).to(DEVICE),
    )


def answer(request: dict) -> dict:
    model = load(request["model"])
    torch.manual_seed(request["seed"])
    began = time.perf_counter()
    log_z = compute_partition_function_ais(
        num_chains=request["num_chains"], num_beta=request["num_steps"] + 1, params=model
    )
    log_z = float(log_z)  # waits for a GPU
    return {"seconds": time.perf_counter() - began, "log_z": log_z}


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    sys.stdout = sys.stderr  # whatever a library prints must not look like an answer
    hello = {name: version(name) for name in ("rbms", "torch", "numpy")}
    hello["python"] = sys.version.split()[0]
    hello["threads"], hello["device"] = torch.get_num_threads(), DEVICE
    print(json.dumps(hello), file=replies)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=replies)


if __name__ == "__main__":
    main()
