"""The benchmark: annealz against its rivals and against the machine, in one run.

    python benchmarks/bench.py [--rbms-python PATH] [--quick] [--out FILE]

Four contestants alternate (`race.py`) on the same models (`problem.py`): the engine of annealz,
the package rbms in its own environment, a plain JAX program, and the bare matrix products of a
step. Their log Z must agree (`agreement.py`). Then the engine alone: how its time and memory grow
(`growth.py`). Absolute times do not hold from machine to machine: read the ratios. The table goes
to stdout, everything measured to a JSON file.
"""

import argparse
import json
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from agreement import agreement
from annealz.formats.npz import save_rbm
from bare_products import BareProducts
from dots import num_dots
from engine import Engine
from growth import cases, step_times
from machine import machine
from plain_jax import PlainJax
from problem import NUM_CHAINS, NUM_HIDDEN, NUM_VISIBLE, random_rbm
from race import race, ratio
from rbms_peer import RbmsPeer, RbmsWorker
from tables import show
from targets import verdicts

_FULL = {"num_rounds": 7, "seconds_a_call": 1.5, "repeats": 3, "check_steps": 1000,
         "few_steps": 1000, "many_steps": 10_000}  # fmt: skip
_QUICK = {"num_rounds": 5, "seconds_a_call": 0.3, "repeats": 1, "check_steps": 200,
          "few_steps": 100, "many_steps": 1000}  # fmt: skip
_RATIOS = (("rbms", "annealz"), ("plain JAX", "annealz"), ("annealz", "bare products"))


def main() -> None:
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description="Race annealz; see the head of this file.")
    parser.add_argument("--rbms-python", default=".venv-rbms/bin/python", metavar="PATH",
                        help="a Python that has rbms (default: %(default)s)")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="short runs, rough numbers")
    parser.add_argument("--out", type=Path, default=here / "results.json", metavar="FILE")
    options = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")  # all contestants on the same device

    results = measure(options.rbms_python, _QUICK if options.quick else _FULL)
    show(results, Console(width=100, highlight=False))
    options.out.write_text(json.dumps(results, indent=1) + "\n")


def measure(rbms_python: str, plan: dict[str, Any]) -> dict[str, Any]:
    about = machine()
    with tempfile.TemporaryDirectory() as folder, _worker(rbms_python) as worker:
        about["rbms"] = None if worker is None else worker.versions
        models = {num_hidden: random_rbm(num_hidden) for num_hidden in NUM_HIDDEN}
        lanes: dict[int, list[Any]] = {}
        for num_hidden, model in models.items():
            file = Path(folder) / f"rbm{num_hidden}.npz"
            save_rbm(file, model)
            peers = [] if worker is None else [RbmsPeer(worker, file, NUM_CHAINS)]
            rivals = [PlainJax(model, NUM_CHAINS), BareProducts(model, NUM_CHAINS)]
            lanes[num_hidden] = [Engine(model, NUM_CHAINS), *peers, *rivals]
        smallest = min(NUM_HIDDEN)
        say("log Z of every contestant, and the exact one")
        agreed = agreement(models[smallest], lanes[smallest][:-1], plan["check_steps"])
        raced = {
            num_hidden: race(contestants, plan["num_rounds"], plan["seconds_a_call"],
                             _rounds(num_hidden, plan["num_rounds"]))
            for num_hidden, contestants in lanes.items()
        }  # fmt: skip
    ratios = {
        num_hidden: {f"{a} / {b}": ratio(entry[a], entry[b])
                     for a, b in _RATIOS if a in entry and b in entry}
        for num_hidden, entry in raced.items()
    }  # fmt: skip
    sizes = {"num_chains": NUM_CHAINS, "num_visible": NUM_VISIBLE}
    return {
        "machine": about,
        "settings": plan | sizes,
        "dots": num_dots(models[smallest]),
        "race": raced,
        "ratios": ratios,
        "agreement": {"num_hidden": smallest} | agreed,
        "targets": verdicts(ratios),
        "step_times": step_times(plan["repeats"], plan["seconds_a_call"] / 1.5, say),
        "cases": cases(plan["few_steps"], plan["many_steps"], say),
    }


def _worker(python: str):
    """The rbms process as a context; without it the race goes on with the other three."""
    try:
        return RbmsWorker(python)
    except OSError as error:
        say(f"rbms is left out: {error.strerror or error}")
        return nullcontext()


def _rounds(num_hidden: int, num_rounds: int):
    return lambda turn: say(f"race, M = {num_hidden}, round {turn + 1} of {num_rounds}")


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
