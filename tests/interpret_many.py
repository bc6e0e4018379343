"""Many chains' steps in Mosaic's interpreter, beside the engine's own: `python interpret_many.py OUT.npz`.

The interpreter runs a thread a warpgroup, each of which blocks one of XLA's: on a machine of few cores they
would wait for each other for ever, and so the test starts a process with NPROC threads.
"""

import importlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams

from annealz.anneal import anneal
from annealz.bases.bernoulli import BernoulliBase
from annealz.fused.chunk import Chains, Span
from annealz.fused.many import ManySteps
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.random import Stream
from annealz.reverse import check_start
from annealz.schedules.linear import linear
from annealz.testing import random_rbm

SEED = int(sys.argv[2])
WORK = importlib.import_module("annealz.work")
path = GeometricPath(
    BernoulliBase.from_logits(np.linspace(-1, 1, 50)), random_rbm(70, 50, 0.1), "visible"
)
fused = ManySteps(path, InterpretGPUParams())
found = {}


def forward(chunk_steps):
    options = {"num_chains": 21, "seed": SEED, "record_every": 2}
    return anneal(path, BlockGibbs(), linear(5), **options, chunk_steps=chunk_steps)


def reverse():
    draws = np.random.default_rng(SEED).integers(0, 2, (21, 50)).astype(np.float32)
    options = {"purpose": "reverse", "start": check_start(path, draws, 21), "reverse": True}
    return anneal(path, BlockGibbs(), linear(4), num_chains=21, **options)


def keep(name, run):
    found.update({f"{name} states": run.states, f"{name} log_weights": run.log_weights})
    found[f"{name} ess"], found[f"{name} slope"] = run.trace.ess, run.trace.means["slope"]


keep("plain", forward(5))
keep("plain reverse", reverse())
WORK.choose_fused = lambda *_: fused
keep("whole", forward(5))
keep("pieces", forward(2))
keep("reverse", reverse())

stream = Stream(SEED, "anneal")
betas = jnp.linspace(0, 1, 3, dtype=jnp.float32)
span = Span(*map(jnp.int32, (0, 2, 1, 2)), 4)


@jax.jit
def run(indices):
    zeros = jnp.zeros(21, jnp.float32)
    chains = Chains(indices, path.sample(stream.at(0, indices)), zeros, zeros)
    return fused(stream, chains, betas, span)[0]


order = np.random.default_rng(SEED).permutation(21)
for name, indices in (("in order", np.arange(21)), ("mixed", order)):
    after = run(jnp.asarray(indices))
    back = np.argsort(indices)
    found[f"{name} x"], found[f"{name} weights"] = after.x[back], after.log_weights[back]
np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in found.items()})
