"""Named arrays of an archive, each checked for its kind and its shape where it is taken out."""

from collections.abc import Mapping

import numpy as np

from annealz.io.reading.words import shown

__all__ = ["real_numbers"]


def real_numbers(
    arrays: Mapping[str, np.ndarray],
    name: str,
    what: str,
    *,
    num_axes: int | None = None,
    length: int | None = None,
) -> np.ndarray:
    """The array of this name: real numbers, with so many axes, the first one so long.

    `what` it is a part of, for messages.
    """
    if name not in arrays:
        raise ValueError(f"{what} is damaged: it lacks the array {shown(name)}.")
    array = arrays[name]
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{what} is damaged: {shown(name)} must hold real numbers, got dtype {shown(array.dtype)}."
        )
    is_wrong = num_axes is not None and array.ndim != num_axes
    if is_wrong or (length is not None and array.shape[:1] != (length,)):
        raise ValueError(
            f"{what} is damaged: {shown(name)} has shape {shown(array.shape)}, which does not fit."
        )
    if array.dtype.itemsize <= 8 and array.dtype.isnative:
        return array
    with np.errstate(over="ignore"):  # JAX takes no others
        return array.astype(array.dtype.newbyteorder("=") if array.itemsize <= 8 else np.float64)
