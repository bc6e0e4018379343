"""The number of devices changes no bit; devices are emulated, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import annealz

SCRIPT = """
import sys
import jax
import numpy as np
import annealz
from annealz.engine import blocks
from annealz.testing import random_rbm

blocks._MAX_BLOCK["cpu"] = 16
every_device = jax.local_devices
for count in (1, 2, 8):
    jax.local_devices = lambda: every_device()[:count]
    estimate = annealz.estimate_log_z(
        random_rbm(6, 9, 1.0, seed=3), num_steps=40, num_chains=125, schedule="linear", seed=1,
        base="visible-bias", second_opinion=False, observe={"states": lambda x: x},
    )
    run = estimate.run
    np.savez(
        f"{sys.argv[1]}/{count}", log_weights=run.log_weights, log_z=estimate.log_z,
        states=run.states, means=run.trace.means["states"], variances=run.trace.variances["states"],
    )
"""


def run(script: str, folder: Path) -> None:
    """In a process with eight devices."""
    place = folder / "script.py"
    place.write_text(script)
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    source = str(Path(annealz.__file__).parents[1])
    subprocess.run(
        [sys.executable, place, folder],
        env=os.environ | flags | {"PYTHONPATH": source},
        check=True,
        timeout=300,
    )


def test_devices_change_no_bit(tmp_path: Path):
    run(SCRIPT, tmp_path)
    one, *others = (dict(np.load(tmp_path / f"{count}.npz")) for count in (1, 2, 8))
    assert one["log_weights"].shape == (125,)  # 8 blocks of 16
    for other in others:
        for name, array in one.items():
            np.testing.assert_array_equal(other[name], array, err_msg=name)
