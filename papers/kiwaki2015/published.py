"""The paper's own numbers: log Z, log Z-hat and ESS at K = 100,000 with 1,000 chains.

The paper does not state its base, and its weights were never published: these are other RBMs than
ours, and magnitudes and orderings are what can be compared. One ESS a cell, from one run.
"""

from typing import NamedTuple

from settings import MODELS

__all__ = ["PUBLISHED", "PUBLISHED_BASE", "PUBLISHED_EXACT", "Published"]


class Published(NamedTuple):
    """One cell of the paper's tables."""

    log_z: float
    ess: int


PUBLISHED_BASE = "base-rate"
"""The base whose runs stand beside the paper's: the usual one for MNIST."""

PUBLISHED_EXACT = dict(zip(MODELS, (208.63, 193.951, 207.12), strict=False))
"""log Z of the RBMs of 20 hidden units, by model."""

_ROWS = {  # in the order of MODELS
    "varopt": (
        (208.629, 783),
        (194.117, 87),
        (207.136, 776),
        (525.55, 726),
        (676.149, 865),
        (379.68, 545),
    ),
    "varopt-0.009": (
        (208.616, 809),
        (193.926, 814),
        (207.119, 820),
        (525.564, 719),
        (676.158, 868),
        (379.687, 851),
    ),
    "varopt-0.006": (
        (208.643, 668),
        (193.937, 803),
        (207.148, 751),
        (525.529, 728),
        (676.169, 855),
        (379.682, 852),
    ),
    "varopt-0.003": (
        (208.626, 749),
        (193.956, 797),
        (207.136, 617),
        (525.548, 661),
        (676.13, 873),
        (379.68, 778),
    ),
    "linear": (
        (208.626, 517),
        (193.911, 713),
        (207.099, 664),
        (525.545, 329),
        (676.167, 872),
        (379.628, 712),
    ),
    "gms13": (
        (208.745, 176),
        (193.962, 653),
        (207.175, 176),
        (525.593, 266),
        (676.17, 840),
        (379.696, 637),
    ),
}

PUBLISHED = {
    (model, schedule): Published(*cell)
    for schedule, row in _ROWS.items()
    for model, cell in zip(MODELS, row, strict=True)
}
"""By (model, schedule); SM08 is drawn in the paper's figures and is in none of its tables."""
