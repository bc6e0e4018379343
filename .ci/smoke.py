"""A short look at every large part, for environments that the test suite does not run in."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import annealz
from annealz.testing import random_rbm

model = random_rbm(6, 9)
exact = annealz.exact_log_z(model)


def check(name: str, estimate) -> None:
    error = (estimate.log_z - exact) / estimate.std_err
    assert abs(error) < 5, (name, error)
    print(f"{name}: {estimate.log_z:.4f} ± {estimate.std_err:.4f}, exact {exact:.4f}")


short = {"num_steps": 300, "num_chains": 200}
check("annealing", annealz.estimate_log_z(model, **short))
check("two sides", annealz.estimate_log_z(model, two_sided=True, **short))
check("islands", annealz.estimate_log_z(model, resample=0.5, **short))
check(
    "exchange",
    annealz.estimate_log_z(model, method="exchange", num_rungs=8, num_ensembles=16, num_steps=500),
)

lattice = annealz.estimate_log_z(annealz.Ising.square(4, 0.3), **short)
assert lattice.exact_log_z is not None
assert abs(lattice.log_z - lattice.exact_log_z) < 5 * lattice.std_err
density = annealz.LogDensity(lambda x: -0.5 * (x**2).sum(), 3)
gaussian = annealz.estimate_log_z(density, num_steps=100, num_chains=200)
assert abs(gaussian.log_z - 1.5 * np.log(2 * np.pi)) < max(5 * gaussian.std_err, 0.01)

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "model.npz"
    annealz.save_rbm(file, model)
    command = [
        sys.executable,
        "-m",
        "annealz",
        "estimate",
        str(file),
        "--steps",
        "200",
        "--chains",
        "100",
    ]
    done = subprocess.run(
        [*command, "--json", "--out", f"{folder}/run", "--report", f"{folder}/page.html"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert abs(json.loads(done.stdout)["log_z"] - exact) < 1
    resumed = annealz.resume(Path(folder) / "run")
    assert resumed.log_z == json.loads(done.stdout)["log_z"]
    assert Path(folder, "page.html").stat().st_size > 10_000
print("all well")
