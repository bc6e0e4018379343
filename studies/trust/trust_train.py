"""The small trained RBMs of the study, made again in a minute: `trained/NAME.npz`, without the means.

bars-cd1      bars and stripes, 5 × 5, 12 hidden units, CD1
digits-pcd    handwritten digits of 8 × 8 (scikit-learn's), black or white, 18 hidden units, PCD
digits-cd1    the same, 14 hidden units, CD1 at a high rate and for long
"""

from pathlib import Path

import numpy as np

from annealz.training import train

__all__ = ["FOLDER", "bars_and_stripes"]

FOLDER = Path(__file__).parent / "trained"


def bars_and_stripes(side: int) -> np.ndarray:
    """All pictures of full rows, and all of full columns."""
    lines = (np.arange(2**side)[:, None] >> np.arange(side) & 1).astype(np.float32)
    rows = np.repeat(lines, side, axis=1)
    columns = np.tile(lines, (1, side))
    return np.unique(np.vstack([rows, columns]), axis=0)


def main() -> None:
    from sklearn.datasets import load_digits

    digits = (np.asarray(load_digits(return_X_y=True)[0]) > 7).astype(np.float32)
    bars = bars_and_stripes(5)
    models = {
        "bars-cd1": train(
            bars, num_hidden=12, algorithm="cd", num_updates=40_000, learning_rate=0.1, seed=1
        ),
        "digits-pcd": train(
            digits, num_hidden=18, algorithm="pcd", num_updates=40_000, learning_rate=0.02, seed=2
        ),
        "digits-cd1": train(
            digits, num_hidden=14, algorithm="cd", num_updates=60_000, learning_rate=0.1, seed=3
        ),
    }
    FOLDER.mkdir(exist_ok=True)
    for name, model in models.items():
        np.savez(
            FOLDER / f"{name}.npz",
            weights=np.asarray(model.weights),
            hidden_bias=np.asarray(model.hidden_bias),
            visible_bias=np.asarray(model.visible_bias),
        )


if __name__ == "__main__":
    main()
