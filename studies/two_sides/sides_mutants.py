"""Broken variants of a pair of runs, and which check finds them.

The kernel is a scan: one unit after the other in a fixed order, which leaves p_beta invariant and is not
reversible; its reversal scans in the opposite order. Mutants:

    unreversed      comes down in the order in which it went up
    not invariant   the latent units' logits are shifted, and nothing is reversed
    wrong draws     the reverse run starts from exact draws of another model, half as strong
    wrong sign      log w of reverse chains instead of -log w: 1/w averaged for w
    forward twice   1/w of forward chains averaged for w of reverse ones

and of the estimator from reverse chains alone, log mean 1/w_R instead of -log mean w_R.
"""

import csv
import dataclasses
import io
import sys
from pathlib import Path

import numpy as np

from annealz.engine.anneal import anneal
from annealz.io.files import write_atomic
from annealz.kernels.abstract import AbstractKernel
from annealz.models.exact import exact_samples
from annealz.models.rbm import RBM
from annealz.schedules.rules import linear
from sides_statistics import PairChecks, check_pair
from sides_systems import SEED, System, system

SYSTEM, NUM_STEPS, NUM_CHAINS = "scanned", 2, 2**15
MILD_SYSTEM, MILD_STEPS, MILD_CHAINS = "rbm 5x7 2.0", 3, 2**17
MILD = f"unreversed, {MILD_SYSTEM}"
"""Where the order of a scan hardly matters."""


class Scan(AbstractKernel):
    """One unit after the other from its conditional, upwards or downwards."""

    is_downward: bool = False

    def step(self, bits, x, path, beta):
        units = range(x.shape[1])
        for unit in reversed(units) if self.is_downward else units:
            one, zero = (path.log_density(x.at[:, unit].set(v), beta) for v in (1.0, 0.0))
            x = x.at[:, unit].set(bits.bernoulli((one - zero)[:, None], draw=unit)[:, 0])
        return x

    def reversed(self) -> "Scan":
        return Scan(not self.is_downward)


class UnreversedScan(Scan):
    def reversed(self) -> "UnreversedScan":
        return self


class NotInvariant(AbstractKernel):
    def step(self, bits, x, path, beta):
        latent = bits.bernoulli(path.latent_logits(x, beta) + 1.5, draw=0)
        return bits.bernoulli(path.state_logits(latent, beta), draw=1)

    def reversed(self) -> "NotInvariant":
        return self


def pair(
    it: System,
    kernel: AbstractKernel,
    num_chains: int,
    seed: int,
    *,
    draws: np.ndarray | None = None,
    num_steps: int = NUM_STEPS,
) -> tuple[np.ndarray, np.ndarray]:
    """Excess work of forward and reverse chains."""
    options = {"num_chains": num_chains, "seed": seed, "observers": {}}
    schedule = linear(num_steps)
    forward = anneal(it.path, kernel, schedule, purpose="forward", **options)
    start = exact_samples(it.model, num_chains, seed)[0] if draws is None else draws
    reverse = anneal(
        it.path, kernel, schedule, purpose="reverse", start=start, reverse=True, **options
    )
    return forward.work - it.log_ratio, reverse.work - it.log_ratio


def pairs(num_chains: int = NUM_CHAINS, seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Excess work of the true code and of every mutant, by name."""
    it = system(SYSTEM)
    forward, reverse = pair(it, Scan(), num_chains, seed)
    again, _ = pair(it, Scan(), num_chains, seed + 1)
    weak = RBM(*(0.5 * np.asarray(a) for a in
                 (it.model.weights, it.model.hidden_bias, it.model.visible_bias)))  # fmt: skip
    elsewhere = exact_samples(weak, num_chains, seed)[0]
    return {
        "none": (forward, reverse),
        "unreversed": pair(it, UnreversedScan(), num_chains, seed),
        "not invariant": pair(it, NotInvariant(), num_chains, seed),
        "wrong draws": pair(it, Scan(), num_chains, seed, draws=elsewhere),
        "wrong sign": (forward, -(reverse + it.log_ratio) - it.log_ratio),
        "forward twice": (forward, again),
    }


def reverse_alone(reverse: np.ndarray) -> tuple[float, float]:
    """Error of log Z from reverse chains: -log mean w_R, and the mutant log mean 1/w_R."""
    right = -np.log(np.exp(-reverse).mean())
    return float(right), float(np.log(np.exp(reverse).mean()))


def write_checks(file: Path, num_chains: int = NUM_CHAINS) -> None:
    """The checks of every pair, and of the estimator from reverse chains alone, as a table."""
    found = pairs(num_chains, SEED)
    mild = system(MILD_SYSTEM)
    found[MILD] = pair(mild, UnreversedScan(), MILD_CHAINS, SEED, num_steps=MILD_STEPS)
    fields = [field.name for field in dataclasses.fields(PairChecks)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["mutant", *fields, "reverse_alone", "reverse_alone_inverted"])
    for name, (forward, reverse) in found.items():
        checks = check_pair(forward, reverse)
        values = [getattr(checks, field) for field in fields]
        writer.writerow([name, *(f"{v:.6g}" for v in (*values, *reverse_alone(reverse)))])
    write_atomic(file, text.getvalue())


def read_checks(file: Path) -> dict[str, tuple[PairChecks, float, float]]:
    """By mutant: the checks, and the errors of log Z from reverse chains alone, right and inverted."""
    found = {}
    for row in csv.DictReader(file.read_text().splitlines()):
        name = row.pop("mutant")
        *checks, right, inverted = map(float, row.values())
        found[name] = PairChecks(*checks), right, inverted
    return found


if __name__ == "__main__":
    table = Path(__file__).parent / "results" / "mutants.csv"
    sys.exit(None if table.exists() else write_checks(table))
