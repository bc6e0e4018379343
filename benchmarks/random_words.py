"""Stream the engine's random words to stdout, for a battery of statistical tests.

    python benchmarks/random_words.py ORDER [START] | dieharder -g 200 -a

`benchmarks/battery.sh` runs all of dieharder on all orders, one process a test.

ORDER is the order of the words: `engine`, all that an RBM step of 1000 chains, 20 hidden and 784
visible units consumes, step after step (hidden draw, visible draw; chain by chain, unit by unit);
`steps`, each unit of each chain followed over 4096 successive steps; `chains`, each unit of each
step followed over 4096 successive chains; `low`, the low halves of the words in engine order.
START is the block of words to start from, so that no two tests see the same ones.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.random import Stream

STREAM = Stream(0, "anneal")


def both_draws(step, chains, num_hidden=20, num_visible=784):
    bits = STREAM.at(step, chains)
    return jnp.concatenate([bits.words(num_hidden, 0).ravel(), bits.words(num_visible, 1).ravel()])


@jax.jit
def engine(block):
    steps = block * 8 + jnp.arange(8)
    return jax.vmap(lambda k: both_draws(k, jnp.arange(1000)))(steps)


@jax.jit
def steps(block):
    words = jax.vmap(lambda k: STREAM.at(k, block[None]).words(784, 1)[0])(jnp.arange(4096))
    return words.T  # unit by unit, each over the steps


@jax.jit
def chains(block):
    return STREAM.at(block, jnp.arange(4096)).words(784, 1).T


def low(block):
    halves = np.asarray(engine(block)).astype(np.uint16).reshape(-1, 2).astype(np.uint32)
    return halves[:, 0] | halves[:, 1] << 16


ORDERS = {"engine": engine, "steps": steps, "chains": chains, "low": low}

if __name__ == "__main__":
    make = ORDERS[sys.argv[1]]
    block = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    try:
        while True:
            sys.stdout.buffer.write(np.ascontiguousarray(make(jnp.uint32(block)), "<u4").tobytes())
            block += 1
    except BrokenPipeError:
        sys.stderr.close()
