"""log Z of networks of the UAI 2014 competition (task PR), under its limits of time.

    python studies/uai/uai_runs.py --uai FOLDER [--limits 20 1200] [--names CSP_11 ...] [--methods bp ...]

FOLDER holds NAME.uai and NAME.uai.PR, of log10 Z; they are not part of this repository. A row per network,
method and limit goes to results.json, where it stays until it is asked for again:

    annealing     annealz.estimate_log_z(FILE, max_seconds=LIMIT); 0 stands for 2000 steps of 500 chains
    contraction   annealz.exact_log_z, without a limit of time
    bp            loopy belief propagation (`uai_bp.py`)
"""

import argparse
import json
import math
import os
import time
from pathlib import Path
from typing import Any

from uai_bp import bethe_log_z

import annealz
from annealz.diagnostics.findings import Kind
from annealz.models.factor_graph import FactorGraph

HERE = Path(__file__).parent
METHODS = ("annealing", "contraction", "bp")


def reference(path: Path) -> float:
    """log Z, from the file of log10 Z beside a network."""
    return float(path.with_name(f"{path.name}.PR").read_text("utf-8").split()[-1]) * math.log(10)


def run(path: Path, method: str, limit: float, seed: int, length: dict[str, int]) -> dict[str, Any]:
    """One row."""
    model = annealz.load_model(path)
    assert isinstance(model, FactorGraph)
    began, is_fixed = time.monotonic(), method == "annealing" and not limit
    row: dict[str, Any] = {
        "network": path.stem,
        "method": method,
        "limit": limit if method == "annealing" else None,
        "length": f"{length['num_steps']} × {length['num_chains']}" if is_fixed else None,
        "reference": reference(path),
        "has_zeros": model.has_zeros,
        "load": round(os.getloadavg()[0], 1),
    }
    if method == "contraction":
        try:
            row["log_z"] = annealz.exact_log_z(model)
        except ValueError as error:
            row |= {"log_z": None, "why": str(error)}
    elif method == "bp":
        row["log_z"], row["converged"] = bethe_log_z(*model.factors())
    else:
        asked: dict[str, Any] = {"max_seconds": limit} if limit else length
        found = annealz.estimate_log_z(path, seed=seed, **asked)
        alone = {kind for kind in found.findings if kind is not Kind.CONTRADICTS_EXACT}
        row |= {
            "seed": seed,
            "log_z": found.log_z,
            "std_err": found.std_err,
            "status": found.status.value,
            "status_alone": "unreliable" if any(kind.is_fatal for kind in alone) else "ok",
            "findings": sorted(kind.name for kind in found.findings),
            "base": found.base,
            "num_steps": found.num_steps,
            "num_chains": found.num_chains,
            "ess": round(found.ess, 1),
        }
    return row | {"seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--uai", type=Path, required=True, help="folder of the networks")
    parser.add_argument("--limits", type=float, nargs="+", default=[20.0, 1200.0])
    parser.add_argument("--names", nargs="+", help="networks, all by default")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--steps", type=int, default=2000, help="where the limit is 0")
    parser.add_argument("--chains", type=int, default=500, help="where the limit is 0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    given = parser.parse_args()
    length = {"num_steps": given.steps, "num_chains": given.chains}
    names = given.names or sorted(path.stem for path in given.uai.glob("*.uai"))
    for name in names:
        path = given.uai / f"{name}.uai"
        for method in given.methods:
            for limit in given.limits if method == "annealing" else [0.0]:
                row = run(path, method, limit, given.seed, length)
                _keep(given.out, row)
                print(json.dumps(row), flush=True)


def _keep(file: Path, row: dict[str, Any]) -> None:
    rows = json.loads(file.read_text("utf-8")) if file.exists() else []
    key = ("network", "method", "limit", "length")
    rows = [one for one in rows if any(one.get(name) != row.get(name) for name in key)] + [row]
    rows.sort(key=lambda one: (one["network"], one["method"], one["limit"] or 0))
    text = ",\n".join(json.dumps(one) for one in rows)
    file.write_text(f"[\n{text}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
