"""Compiled programs of a path that pilots share: one for each kind of path and number of chains."""

import jax

from annealz.core.programs import Compiled


@Compiled.without_search
def sample(path, stream, step, chains):
    """Draws from p_0 with the bits of this step."""
    return path.sample(stream.at(step, chains))


@Compiled.without_search
def log_ratio(path, x, beta0, beta1):
    """log p*_beta1 - log p*_beta0, of every chain."""
    return path.log_ratio(x, beta0, beta1)


@Compiled.without_search
def slope(path, x, beta):
    """U of every chain."""
    return path.slope(x, beta)


@Compiled.without_search
def position(path, x):
    """What the states stand for."""
    return path.position(x)


@Compiled.without_search
def state(path, bits, position):
    """The states that stand for these positions."""
    return path.state(bits, position)


rows = jax.jit(lambda x, chosen: x[chosen])  # one program, where an eager one would be six
