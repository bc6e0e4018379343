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

from annealz.core.random import Stream
from annealz.engine.anneal import anneal
from annealz.engine.gpu.chunk import Chains, Span
from annealz.engine.gpu.many import ManySteps
from annealz.engine.reverse import check_start
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.bases.bernoulli import BernoulliBase
from annealz.paths.geometric import GeometricPath
from annealz.schedules.linear import linear
from annealz.testing import random_rbm

SEED = int(sys.argv[2])
WORK = importlib.import_module("annealz.engine.work")
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
keep("pieces", forward(3))
keep("reverse", reverse())

stream, order = Stream(SEED, "anneal"), np.random.default_rng(SEED).permutation(21)
zeros = jnp.zeros(21, jnp.float32)
chains = Chains(jnp.asarray(order), path.sample(stream.at(0, order)), zeros, zeros)
betas, span = linear(5).betas.astype(np.float32), Span(*map(jnp.int32, (0, 5, 2, 5)), 4)
after, _ = jax.jit(lambda chains: fused(stream, chains, jnp.asarray(betas), span))(chains)
back = np.argsort(order)
found["mixed states"] = np.asarray(after.x)[back]
high, low = (np.asarray(a, np.float64) for a in (after.log_weights, after.compensation))
found["mixed log_weights"] = (high + low)[back]
np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in found.items()})
