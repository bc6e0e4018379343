"""Pictures of the models: what their hidden units look for, and what they dream of.

Filters are rows of W, up to 100 of them in their order, each on one symmetric scale: red raises, blue
lowers. Samples are p(v | h) after an annealing from the base rate: the chains' last states resampled
by their weights, each with one draw of h, so that they are what the model holds likely and no
picture of the data's base rate.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.rbm import RBM
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear
from settings import model_label

__all__ = ["draw_filters", "draw_samples", "write_portraits"]

_SIDE = 28
_MOST = 100
_COLUMNS = 20
_NUM_STEPS, _NUM_CHAINS = 2000, 1000
_DPI = 150


def write_portraits(name: str, model: RBM, folder: Path, seed: int = 0) -> None:
    """filters-NAME.png and samples-NAME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    label = model_label(name)
    for kind, figure in (
        ("filters", draw_filters(model, f"{label}: weights of hidden units")),
        ("samples", draw_samples(model, f"{label}: samples, p(v | h)", seed)),
    ):
        figure.savefig(folder / f"{kind}-{name}.png", dpi=_DPI, metadata={"Software": None})


def draw_filters(model: RBM, title: str) -> Figure:
    """The weights of up to 100 hidden units."""
    weights = np.asarray(model.weights)[:_MOST]
    scale = float(np.quantile(np.abs(weights), 0.995))
    return _grid(weights, title, cmap="RdBu_r", vmin=-scale, vmax=scale)


def draw_samples(model: RBM, title: str, seed: int = 0) -> Figure:
    """100 draws from the model, as probabilities of the pixels."""
    path = GeometricPath(model.choose_base("base-rate"), model)
    run = anneal(
        path,
        BlockGibbs(),
        linear(_NUM_STEPS),
        num_chains=_NUM_CHAINS,
        seed=seed,
        purpose="portrait",
        record_every=_NUM_STEPS,
    )
    weights = np.exp(run.log_weights - run.log_weights.max())
    generator = np.random.default_rng(seed)
    chosen = generator.choice(weights.size, _MOST, p=weights / weights.sum())
    logits = model.hidden_logits(jnp.asarray(run.states[chosen], jnp.float32))
    probabilities = np.asarray(jax.nn.sigmoid(logits))
    hidden = (generator.random(probabilities.shape) < probabilities).astype(np.float32)
    pixels = np.asarray(jax.nn.sigmoid(model.visible_logits(jnp.asarray(hidden))))
    return _grid(pixels, title, cmap="gray", vmin=0.0, vmax=1.0)


def _grid(images: np.ndarray, title: str, **how) -> Figure:
    """Rows of pixels as a grid of pictures, a thin line between them."""
    columns = min(_COLUMNS, len(images))
    rows = -(-len(images) // columns)
    canvas = np.full((rows * (_SIDE + 1) - 1, columns * (_SIDE + 1) - 1), np.nan)
    for i, image in enumerate(images):
        top, left = (_SIDE + 1) * (i // columns), (_SIDE + 1) * (i % columns)
        canvas[top : top + _SIDE, left : left + _SIDE] = image.reshape(_SIDE, _SIDE)
    figure = Figure(figsize=(10, 0.4 + 10 * rows / columns), layout="constrained")
    figure.suptitle(title, fontsize=12)
    axes = figure.add_subplot()
    axes.imshow(canvas, interpolation="nearest", aspect="equal", **how)
    axes.axis("off")
    return figure
