"""What the arrays of a file are called: said by the user, or guessed.

    weights=W.T,hidden_bias=bh,visible_bias=bv         as --map and `load_model(file, map=...)` take it

On the left is a name of annealz's own, on the right the file's; `.T` turns a matrix. `visible` and `hidden`
take the type of a layer's units instead: visible=spin,hidden=gaussian.

A guess is made where names and shapes leave no doubt: one matrix, one vector whose name says that it is of
the visible units, one whose name says that it is of the hidden units, and lengths that fit the matrix one
way only. Where they do leave a doubt nothing is read, and the error shows what to type.
"""

import itertools
import re
import shlex
from collections.abc import Mapping

import numpy as np

from annealz.core.errors import InputError
from annealz.io.reading import shown

KINDS = ("visible", "hidden")
_TARGETS = (
    "weights",
    "hidden_bias",
    "visible_bias",
    "visible_means",
    "scale",
    "couplings",
    "fields",
)
_VISIBLE = re.compile(r"(vis|input|(^|_)v($|_|b)|bv$|(^|_)vb)")
_HIDDEN = re.compile(r"(hid|latent|(^|_)h($|_|b)|bh$|(^|_)hb)")
_NOT_A_BIAS = re.compile(
    r"mean|mag|avg|average|rate|freq|prob|std|sigma|scale|var|mom|grad|veloc|state"
)
_WEIGHTS = re.compile(r"(^|_)(w|weights?|weight_?matrix|kernel)$")


class MappedFile(str):
    """The name of a model file, with what its arrays are called; to all else it is the name."""

    map: str

    @classmethod
    def of(cls, name: str, names: "str | Mapping[str, str] | None") -> str:
        """Return the file, or the name itself where nothing is said of its arrays."""
        if names is None:
            return name
        file = cls(name)
        file.map = map_text(parse_map(names))
        return file


def parse_map(given: str | Mapping[str, str]) -> dict[str, str]:
    """Return {annealz's name: the file's}; a ValueError says what is wrong with it."""
    if isinstance(given, Mapping):
        pairs = [(str(target), str(name)) for target, name in given.items()]
    else:
        words = [word.partition("=") for word in str(given).split(",") if word.strip()]
        pairs = [(target.strip(), name.strip()) for target, _, name in words]
    if not pairs or not all(name for _, name in pairs):
        raise InputError("map", "must be like weights=W,visible_bias=bv", shown(given))
    found = dict(pairs)
    unknown = [target for target in found if target not in (*_TARGETS, *KINDS)]
    if unknown:
        raise InputError(
            "map",
            f"gives {shown(unknown[0])}, which is not a name of annealz's",
            remedy=f"map one of {', '.join((*_TARGETS, *KINDS))}",
        )
    if len(found) < len(pairs):
        raise InputError("map", "gives a name twice", shown(given))
    return found


def map_text(names: Mapping[str, str]) -> str:
    """Return the names as --map takes them."""
    return ",".join(f"{target}={name}" for target, name in names.items())


def command(where: object, names: Mapping[str, str]) -> str:
    """Return what to type to read a file so."""
    return repr(shlex.join(["annealz", "estimate", str(where), "--map", map_text(names)]))


def guess(
    arrays: Mapping[str, np.ndarray], where: object, names: Mapping[str, str]
) -> dict[str, str] | None:
    """Return the names of the three arrays of an RBM, where nothing else can be meant; None without a clue.

    A ValueError shows the commands where several things can be meant. `names` are known already.
    """
    matrices = [n for n, array in arrays.items() if np.ndim(array) == 2 and min(array.shape) > 1]
    matrix = names.get("weights", "")
    if not matrix:
        likely = matrices if len(matrices) == 1 else [n for n in matrices if _says(n, _WEIGHTS)]
        if len(likely) != 1:
            return None
        [matrix] = likely
    bare = matrix if matrix in arrays else matrix.removesuffix(".T")
    shape = np.shape(arrays[bare])
    sizes = {
        name: vector(array).size
        for name, array in arrays.items()
        if vector(array).ndim == 1 and vector(array).size in shape and not _says(name, _NOT_A_BIAS)
    }
    hidden = [n for n in sizes if _says(n, _HIDDEN) and not _says(n, _VISIBLE)]
    visible = [n for n in sizes if _says(n, _VISIBLE) and not _says(n, _HIDDEN)]
    hidden = [names["hidden_bias"]] if "hidden_bias" in names else hidden
    visible = [names["visible_bias"]] if "visible_bias" in names else visible
    if len(visible) == len(hidden) == 1:
        pairs = [(hidden[0], visible[0])]
    elif len(sizes) == 2:
        pairs = list(itertools.permutations(sizes))
    else:
        return None
    ways = [matrix] if "weights" in names else [bare, f"{bare}.T"]
    readings = [
        {"weights": way, "hidden_bias": one, "visible_bias": other}
        for one, other in pairs
        for way in ways
        if (vector(arrays[one]).size, vector(arrays[other]).size)
        == (shape if way == bare else shape[::-1])
    ]
    if len(readings) < 2:
        return readings[0] if readings else None
    square = "a square matrix " if shape[0] == shape[1] else ""
    first, second = pairs[0]
    choices = ", or ".join(
        f"{command(where, one)} if the rows of {shown(bare)} are "
        f"{'hidden' if one['weights'] == bare else 'visible'} units and {shown(one['hidden_bias'])} is "
        "the hidden bias"
        for one in readings
    )
    raise ValueError(
        f"{where} holds {square}{shown(bare)} of shape {shape} with {shown(first)} and {shown(second)}, "
        f"and nothing says which is which: type {choices}."
    )


def unused_means(
    arrays: Mapping[str, np.ndarray], visible_bias: np.ndarray, hidden_bias: np.ndarray
) -> dict[str, str]:
    """Return the entry of a model's record for an array that is not used and looks like means of the
    visible units.
    """
    for name, array in arrays.items():
        values = vector(np.asarray(array))
        if values.shape != visible_bias.shape or values.dtype.kind != "f":
            continue
        same = values.astype(np.float32)
        if np.array_equal(same, visible_bias) or np.array_equal(same, hidden_bias):
            continue
        inside = (values > 0) & (values < 1)
        if ((values >= 0) & (values <= 1)).all() and inside.mean() > 0.1:
            return {"unused_means": shown(name)}
    return {}


def vector(array: np.ndarray) -> np.ndarray:
    """Return a row or column vector as a vector; anything else as it is."""
    array = np.asarray(array)
    return array.ravel() if array.ndim == 2 and 1 in array.shape else array


def _says(name: str, what: re.Pattern) -> bool:
    """Check whether the last word of a name, rbm.v_bias or net/v_bias, is of this kind."""
    return what.search(re.split(r"[./]", name.lower())[-1]) is not None
