"""Swendsen-Wang: bonds between units that agree, then a state for every cluster of bonded units.

With couplings J_e >= 0 of the edges e = (i, j) of a graph, and fields b_beta of its units,

    p_beta(x)        ∝  prod_e e^{beta J_e [x_i = x_j]}  prod_i e^{b_beta[i, x_i]}
    p_beta(x, bonds) ∝  prod_e [ bond: (e^{beta J_e} - 1) [x_i = x_j];  none: 1 ]  prod_i e^{b_beta[i, x_i]}

has p_beta(x) as its marginal (Fortuin & Kasteleyn 1972; Edwards & Sokal 1988). A sweep draws both
conditionals:

    1   a bond on every edge whose units agree, with probability 1 - e^{-beta J_e}, independently
    2   one state k for every cluster C of bonded units, with logits sum_{i in C} b_beta[i, k]

Fields, those of the base among them, cost no Metropolis step, and the bonds do not depend on them. As in
block Gibbs, the kernel is its own reversal.

Two binary layers with weights W >= 0 are such a graph, W x y = W/2 [x = y] + W/2 (x + y) - W/2, so that
J = W/2, and each unit has sum_e J_e more as its field. Where one layer is summed out of the weights, it is
drawn given the other one, moved with it, and dropped: on the states that are kept this is again reversible.

Connected components of many graphs at once, inside a compiled program.

All graphs have the same units and the same possible edges; each has some of these edges open. Every unit
points to another one of its component, p, at first to itself. A round

    hooks      p[max(p_i, p_j)] <- min(p_i, p_j)     for every open edge (i, j), the smallest one wins
    jumps      p <- p[p], twice

until nothing changes. Then p[p] = p and p_i = p_j along every open edge: p is the smallest unit of each
component. Pointers only decrease, so that this ends; a lattice of 4096 sites takes 7 rounds.
"""

from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from annealz.core.arrays import on_device
from annealz.core.products import matmul
from annealz.core.random import Bits
from annealz.core.units import BernoulliUnits
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.paths.layers import AbstractLayerPath
from annealz.paths.mixture import MixtureLayerPath, MixturePairPath
from annealz.paths.pairs import PairPath

_BONDS, _STATES = 1, 2  # draws; the latent layer is drawn with 0


class Clusters(AbstractKernel):
    """One sweep of Swendsen and Wang's, of a ferromagnet: no coupling is negative.

    Parameters
    ----------
    edges : (edges, 2), the units that an edge joins, the annealed layer before a summed-out one
    couplings : (edges,), J of units that agree, at beta = 1

    Examples
    --------
    >>> import annealz
    >>> lattice = annealz.Ising.square(4, 0.44)
    >>> isinstance(lattice.choose_kernel("clusters"), annealz.Clusters)
    True
    """

    edges: Int[Array, "edges 2"]
    couplings: Float[Array, " edges"]
    shifts: Float[Array, " units"]
    """sum_e J_e of every unit."""

    def __init__(self, edges, couplings, num_units: int):
        values = np.asarray(couplings, np.float64)
        if values.min(initial=0) < 0:
            raise ValueError(
                f"clusters need couplings that are nowhere negative, got {values.min():g}: take the "
                "model's own kernel (leave kernel out)."
            )
        pairs = np.asarray(edges, np.int64).reshape(-1, 2)
        shifts = sum(np.bincount(pairs[:, end], values, num_units) for end in (0, 1))
        self.edges, self.couplings = on_device(pairs, np.int32), on_device(values)
        self.shifts = on_device(shifts)

    @classmethod
    def of_matrix(cls, couplings: ArrayLike) -> Self:
        """Those of a symmetric matrix (units, units)."""
        upper = np.triu(np.asarray(couplings), 1)
        edges = np.argwhere(upper)
        return cls(edges, upper[edges[:, 0], edges[:, 1]], len(upper))

    def extend(self, path: AbstractPath) -> AbstractPath:
        """The path itself, if it is one of units that agree."""
        flat = path.flat if isinstance(path, MixtureLayerPath | MixturePairPath) else path
        size = flat.start.shape[0] if isinstance(flat, PairPath) else None
        if isinstance(flat, AbstractLayerPath):
            kinds = {type(flat.state_units), type(flat.latent_units)}
            if kinds == {BernoulliUnits}:
                size = flat.state_bias.size + flat.latent_bias.size
        if size != self.shifts.size:
            raise ValueError(
                f"clusters need the path of an Ising or Potts model of {self.shifts.size} units, got a "
                f"{type(path).__name__}: take the model's own kernel (leave kernel out)."
            )
        return path

    def step(self, bits: Bits, x, path, beta):
        if isinstance(path, PairPath | MixturePairPath):
            units, everything = path.units, x
            fields = _pair_fields(bits, x, path, beta)  # (…, units, states)
            shape = fields.shape[-2:]
        else:
            latent = path.draw_latent(bits, x, beta)
            number = self.shifts.size - x.shape[-1]
            units, everything = BernoulliUnits(), jnp.concatenate([x, latent[..., :number]], -1)
            fields = _layer_fields(latent[..., number:], path, beta) + beta * self.shifts
            shape = fields.shape[-1:]
        roots = self._roots(bits, everything, beta)
        rows = jnp.arange(x.shape[0])[:, None]
        fields = jnp.broadcast_to(fields, (x.shape[0], *shape))
        sums = jnp.zeros_like(fields).at[rows, roots].add(fields)
        drawn = units.sample(bits, sums.reshape(x.shape[0], -1), _STATES)
        return jnp.take_along_axis(drawn, roots[:, : x.shape[-1]], axis=-1)

    def _roots(self, bits: Bits, x, beta):
        """A unit that stands for its cluster, for every unit."""
        agree = x[:, self.edges[:, 0]] == x[:, self.edges[:, 1]]
        chance = -jnp.expm1(-beta * self.couplings)
        is_bond = agree & (bits.uniforms(self.edges.shape[0], _BONDS) < chance)
        return components(is_bond, self.edges, x.shape[-1])

    def reversed(self) -> "Clusters":
        return self


def _pair_fields(bits: Bits, x, path: PairPath | MixturePairPath, beta):
    """Of all units and their states, (units, states) or one such table per chain."""
    if isinstance(path, PairPath):
        return path.start + beta * path.change
    given = path.conditioned(bits, x, beta)
    return given.flat.start + beta * given.flat.change + (1 - beta) * given.start


def _layer_fields(component, path: AbstractLayerPath | MixtureLayerPath, beta):
    """Of the state 1 of the units of both layers, (units,) or one such row per chain."""
    flat = path.flat if isinstance(path, MixtureLayerPath) else path
    state = flat.state_bias + beta * flat.state_bias_change
    latent = flat.latent_bias + beta * flat.latent_bias_change
    if isinstance(path, MixtureLayerPath):
        state = state + (1 - beta) * matmul(component, path.base.logits)
        latent = jnp.broadcast_to(latent, (*component.shape[:-1], latent.size))
    return jnp.concatenate([state, latent], axis=-1)


def components(
    is_open: Bool[Array, "graphs edges"], edges: Int[Array, "edges 2"], num_units: int
) -> Int[Array, "graphs units"]:
    """Return the smallest unit of the component that a unit belongs to, of every unit of every graph."""
    num_graphs = is_open.shape[0]
    first = (jnp.arange(num_graphs, dtype=jnp.int32) * num_units)[:, None]
    one = (first + edges[:, 0]).ravel()  # all graphs as a single one
    other = jnp.where(is_open.ravel(), (first + edges[:, 1]).ravel(), one)  # else a loop

    def round_(state):
        pointers, _ = state
        at_one, at_other = pointers[one], pointers[other]
        low, high = jnp.minimum(at_one, at_other), jnp.maximum(at_one, at_other)
        new = pointers.at[high].min(low)
        new = new[new]
        new = new[new]
        return new, (new != pointers).any()

    itself = jnp.arange(num_graphs * num_units, dtype=jnp.int32)
    pointers, _ = jax.lax.while_loop(lambda state: state[1], round_, (itself, jnp.array(True)))
    return pointers.reshape(num_graphs, num_units) - first
