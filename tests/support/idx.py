"""IDX files, the format of MNIST."""

import numpy as np

PIXELS = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def encode(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + np.asarray(array.shape, ">u4").tobytes()
    return header + array.tobytes()
