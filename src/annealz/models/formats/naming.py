"""What the arrays of a file are called: said by the user, by the names of known programs, or guessed.

    weights=W.T,hidden_bias=bh,visible_bias=bv         as --map and `load_model(file, map=...)` take it

On the left is a name of annealz's own, on the right the file's; `.T` turns a matrix. `visible` and `hidden`
take the kind of a layer's units instead: visible=spin,hidden=gaussian.

A guess is made where names and shapes leave no doubt: one matrix, one vector whose name says that it is of
the visible units, one whose name says that it is of the hidden units, and lengths that fit the matrix one
way only. Where they do leave a doubt nothing is read, and the error shows what to type.
"""

import re
import shlex
from collections.abc import Mapping

import numpy as np

from annealz.core.errors import InputError
from annealz.io.reading import listed, shown

__all__ = [
    "TARGETS",
    "MappedFile",
    "command",
    "guess",
    "map_text",
    "parse_map",
    "renamed",
    "unused_means",
    "vector",
]

TARGETS = (
    "weights",
    "hidden_bias",
    "visible_bias",
    "visible_means",
    "scale",
    "couplings",
    "fields",
    "visible",
    "hidden",
)
_KINDS = ("visible", "hidden")
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
        """The name itself where nothing is said of its arrays."""
        if names is None:
            return name
        file = cls(name)
        file.map = map_text(parse_map(names))
        return file


def parse_map(given: str | Mapping[str, str]) -> dict[str, str]:
    """{annealz's name: the file's}; a ValueError says what is wrong with it."""
    if isinstance(given, Mapping):
        pairs = [(str(target), str(name)) for target, name in given.items()]
    else:
        words = [word.partition("=") for word in str(given).split(",") if word.strip()]
        if not words or any(not equals or not name.strip() for _, equals, name in words):
            raise InputError("map", "must be like weights=W,visible_bias=bv", shown(given))
        pairs = [(target.strip(), name.strip()) for target, _, name in words]
    found = dict(pairs)
    unknown = [target for target in found if target not in TARGETS]
    if unknown:
        raise InputError(
            "map",
            f"gives {shown(unknown[0])}, which is not a name of annealz's",
            remedy=f"map one of {', '.join(TARGETS)}",
        )
    if len(found) < len(pairs):
        raise InputError("map", "gives a name twice", shown(given))
    return found


def map_text(names: Mapping[str, str]) -> str:
    """As --map takes it."""
    return ",".join(f"{target}={name}" for target, name in names.items())


def command(where: object, names: Mapping[str, str]) -> str:
    """What to type to read a file so."""
    words = shlex.join(["annealz", "estimate", str(where), "--map", map_text(names)])
    return f"{words!r}"


def renamed(
    arrays: Mapping[str, np.ndarray], names: Mapping[str, str], where: object
) -> dict[str, np.ndarray]:
    """The arrays under annealz's names where the map gives them, all others as they are."""
    found = dict(arrays)
    used = set()
    for target, name in names.items():
        if target in _KINDS:
            continue
        source, is_turned = _source(arrays, name)
        if source is None:
            raise InputError(
                "",
                f"{where} holds no {shown(name)}, which {{map}} gives as {target}",
                remedy=f"it holds {listed(arrays)}",
            )
        found[target] = np.asarray(arrays[source]).T if is_turned else np.asarray(arrays[source])
        used.add(source)
    for source in used - set(names):
        found.pop(source, None)
    return found


def _source(arrays: Mapping[str, np.ndarray], name: str) -> tuple[str | None, bool]:
    if name in arrays:
        return name, False
    bare = name.removesuffix(".T")
    return (bare, True) if bare != name and bare in arrays else (None, False)


def guess(
    arrays: Mapping[str, np.ndarray], where: object, names: Mapping[str, str]
) -> dict[str, str] | None:
    """What the three arrays of an RBM are called, where nothing else can be meant; None without a clue.

    A ValueError shows the commands where two things can be meant. `names` is what the user said, which
    stands in `arrays` under annealz's names.
    """
    matrices = [name for name, array in arrays.items() if _is_matrix(array)]
    if len(matrices) > 1:
        matrices = [name for name in matrices if _says(name, _WEIGHTS)]
    if len(matrices) != 1:
        return None
    matrix = matrices[0]
    is_said = matrix == "weights" and "weights" in names
    shape = np.shape(arrays[matrix])
    sizes = {
        name: vector(array).size
        for name, array in arrays.items()
        if vector(array).ndim == 1 and vector(array).size in shape and not _says(name, _NOT_A_BIAS)
    }
    visible = [n for n in sizes if _says(n, _VISIBLE) and not _says(n, _HIDDEN)]
    hidden = [n for n in sizes if _says(n, _HIDDEN) and not _says(n, _VISIBLE)]
    if len(visible) == len(hidden) == 1:
        named = {"weights": matrix, "hidden_bias": hidden[0], "visible_bias": visible[0]}
        wanted = (sizes[hidden[0]], sizes[visible[0]])
        if is_said or wanted == shape != wanted[::-1]:
            return named
        turned = {**named, "weights": f"{matrix}.T"}
        if wanted[::-1] == shape != wanted:
            return turned
        if wanted == shape:
            raise ValueError(
                f"{where} holds a square matrix {shown(matrix)} of shape {shape}, and nothing says which "
                f"way it lies: type {command(where, named)} if its rows are hidden units, or "
                f"{command(where, turned)} if they are visible units."
            )
        return None
    if len(sizes) == 2 and sorted(sizes.values()) == sorted(shape):
        first, second = sizes
        if sizes[first] != shape[0]:
            first, second = second, first
        rows_hidden = {"weights": matrix, "hidden_bias": first, "visible_bias": second}
        rows_visible = {"weights": f"{matrix}.T", "hidden_bias": second, "visible_bias": first}
        if shape[0] == shape[1]:
            raise ValueError(
                f"{where} holds a square matrix {shown(matrix)} of shape {shape} with {shown(first)} and "
                f"{shown(second)}, and nothing says which is which: type {command(where, rows_hidden)}, "
                f"the biases exchanged where that is right, and {shown(matrix)}.T if its rows are visible "
                "units."
            )
        raise ValueError(
            f"{where} holds {shown(matrix)} of shape {shape} with {shown(first)} and {shown(second)}, and "
            f"nothing says which of them are the biases of the visible units: type "
            f"{command(where, rows_hidden)} if the rows are hidden units, or "
            f"{command(where, rows_visible)} if they are visible units."
        )
    return None


def unused_means(
    arrays: Mapping[str, np.ndarray], visible_bias: np.ndarray, hidden_bias: np.ndarray
) -> dict[str, str]:
    """An entry of a model's record: an array that is not used and looks like means of the visible units."""
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
    """A row or column vector as a vector; anything else as it is."""
    array = np.asarray(array)
    return array.ravel() if array.ndim == 2 and 1 in array.shape else array


def _says(name: str, what: re.Pattern) -> bool:
    """Whether the last word of a name, rbm.v_bias or net/v_bias, is of this kind."""
    return what.search(re.split(r"[./]", name.lower())[-1]) is not None


def _is_matrix(array: np.ndarray) -> bool:
    return np.ndim(array) == 2 and min(np.shape(array)) > 1
