"""The benchmark: annealz against its rivals and against the machine, in one run.

    python benchmarks/bench.py [--rbms-python PATH] [--quick] [--others] [--out FILE]

Contestants alternate (`race.py`) on the same models (`problem.py`): the engine of annealz, the
package rbms in its own environment, a plain JAX program, and the bare matrix products of a step.
Their log Z must agree (`agreement.py`). On models other than RBMs plain JAX programs, BlackJAX and the
bare arithmetic race the engine (`others.py`). Then the engine alone: how its time and memory grow
(`growth.py`), and whole default estimates with their pilots, first and later calls (`whole.py`). Absolute
times do not hold from machine to machine: read the ratios, on a quiet machine. The table goes to stdout,
everything measured to a JSON file.
"""

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from agreement import agreement
from annealz.models.formats.npz import save_rbm
from bare_products import BareProducts
from bystanders import Bystanders
from dots import num_dots
from engine import engine_on
from growth import cases, step_times
from machine import machine
from others import OTHERS
from plain_jax import plain_jax
from problem import NUM_CHAINS, NUM_HIDDEN, NUM_VISIBLE, random_rbm
from race import race
from rbms_peer import RBMS, RbmsPeer, RbmsWorker
from tables import show
from targets import ratios, verdicts
from whole import ON_CPU, estimates

_FULL = {
    "num_rounds": 7,
    "seconds_a_call": 0.8,
    "num_repeats": 2,
    "check_steps": 1000,
    "few_steps": 1000,
    "many_steps": 10_000,
}
_QUICK = {
    "num_rounds": 5,
    "seconds_a_call": 0.3,
    "num_repeats": 1,
    "check_steps": 200,
    "few_steps": 100,
    "many_steps": 1000,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Race annealz; see the head of this file.")
    parser.add_argument(
        "--rbms-python",
        default=".venv-rbms/bin/python",
        metavar="PATH",
        help="a Python that has rbms (default: %(default)s)",
    )
    parser.add_argument("--quick", action="store_true", help="short runs, rough numbers")
    parser.add_argument(
        "--others", action="store_true", help="only models other than RBMs; the rest of FILE stays"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).with_name("results.json"),
        metavar="FILE",
        help="where the JSON goes (default: results.json beside this script)",
    )
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)  # fails now rather than at the end
    jax.config.update("jax_platforms", "cpu")  # all contestants on the same device

    plan = _QUICK if options.quick else _FULL
    if options.others:
        results = json.loads(options.out.read_text()) | {"others": others(plan)}
    else:
        results = measure(options.rbms_python, plan)
    show(results, Console(width=100, highlight=False))
    options.out.write_text(json.dumps(results, indent=1) + "\n")


def measure(rbms_python: str, plan: dict[str, Any]) -> dict[str, Any]:
    """Everything, as JSON values."""
    about = machine()
    models = {num_hidden: random_rbm(num_hidden) for num_hidden in NUM_HIDDEN}
    smallest = min(NUM_HIDDEN)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workers = _workers(rbms_python, stack)
        about["rbms"] = workers[0].versions if workers else None
        lanes: dict[int, list[Any]] = {}
        for num_hidden, model in models.items():
            file = folder / f"rbm{num_hidden}.npz"
            save_rbm(file, model)
            peers = [RbmsPeer(worker, file, NUM_CHAINS) for worker in workers]
            rivals = [plain_jax(model, NUM_CHAINS), BareProducts(model, NUM_CHAINS)]
            lanes[num_hidden] = [engine_on(model, NUM_CHAINS), *peers, *rivals]
        _say("log Z of every contestant, and the exact one")
        agreed = agreement(models[smallest], _samplers(lanes[smallest]), plan["check_steps"])
        with Bystanders([worker.pid for worker in workers]) as bystanders:
            raced = {
                num_hidden: race(
                    contestants,
                    plan["num_rounds"],
                    plan["seconds_a_call"],
                    lambda words, num_hidden=num_hidden: _say(f"race, M = {num_hidden}, {words}"),
                )
                for num_hidden, contestants in lanes.items()
            }
    compared = {num_hidden: ratios(entries) for num_hidden, entries in raced.items()}
    return {
        "machine": about,
        "settings": plan | {"num_chains": NUM_CHAINS, "num_visible": NUM_VISIBLE},
        "cores_busy_with_other_programs": bystanders.cores,
        "dots": num_dots(models[smallest]),
        "race": raced,
        "ratios": compared,
        "agreement": {"num_hidden": smallest} | agreed,
        "targets": verdicts(compared),
        "step_times": step_times(plan["num_repeats"], plan["seconds_a_call"], _say),
        "cases": cases(plan["few_steps"], plan["many_steps"], _say),
        "others": others(plan),
        "estimates": estimates(ON_CPU, "cpu", _say),
    }


def others(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Models other than RBMs: the engine and its rivals on the same work."""
    rows = []
    for other in OTHERS:
        lane = other.contestants(other.chains_on_cpu)
        with Bystanders([]) as bystanders:
            raced = race(
                lane,
                plan["num_rounds"] // 2 + 1,
                plan["seconds_a_call"] / 2,
                lambda words, other=other: _say(f"{other.name}, {words}"),
            )
        found = {c.name: c(plan["check_steps"], 1) for c in lane}
        rows.append(
            {
                "name": other.name,
                "num_chains": other.chains_on_cpu,
                "race": raced,
                "ratios": ratios(raced),
                "exact_log_z": other.exact,
                "log_z": {name: one.log_z for name, one in found.items()},
                "std_err": {name: one.std_err for name, one in found.items()},
                "cores_busy_with_other_programs": bystanders.cores,
            }
        )
    return rows


def _samplers(contestants: list[Any]) -> list[Any]:
    """Those that estimate log Z; of the two rbms, which give the same bits, the last."""
    last = {c.name.split(",")[0]: c for c in contestants if not isinstance(c, BareProducts)}
    return list(last.values())


def _workers(python: str, stack: ExitStack) -> list[RbmsWorker]:
    """The rbms processes; without them the race runs the others."""
    try:
        return [stack.enter_context(RbmsWorker(name, python)) for name in RBMS]
    except OSError as error:
        _say(f"rbms is left out: {error.strerror or error}")
        return []


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
