"""Many steps of an RBM, an Ising or a Potts model in one GPU program."""

from annealz.engine.gpu.choose import choose_fused as choose_fused
