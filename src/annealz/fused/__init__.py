"""Many steps of an RBM in one GPU program."""

from annealz.fused.choose import choose_fused as choose_fused
