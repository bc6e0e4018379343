"""Many steps of an RBM in one GPU program."""

from annealz.engine.gpu.choose import choose_fused as choose_fused
