"""Programs in CUDA C++, compiled where they run and called from JAX.

The compiler is NVRTC, a library that comes with JAX for NVIDIA's GPUs. What it makes is handed to XLA,
which calls it among programs of its own. Sizes are constants of a program: it is compiled again for others.
To compile takes 0.15 to 0.75 s each time, before XLA can ask whether it knows the program already: what
NVRTC made is kept for the next process.
"""

import ctypes
import functools
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.compilation_cache import kept_text

SHARED_BYTES = 232_448  # of a multiprocessor of capability 9.0 that a program can have
_TARGET = "__gpu$xla.gpu.ptx"  # XLA's name for a call of what is compiled already
_LIBRARIES = ("libnvrtc.so.13", "libnvrtc.so.12")
_ARCHITECTURE = "compute_90a"
_PROBE = 'extern "C" __global__ void probe(const float *x, float *y) { y[0] = x[0] + 1; }'


@functools.cache
def is_usable() -> bool:
    """Whether a program can be compiled and run here; found out once, by one of a line."""

    def probe(x):
        return call("probe", _PROBE, {}, (x,), [x], {}, (1, 1, 0))[0]

    try:
        return float(jax.jit(probe)(jnp.ones(1, jnp.float32))[0]) == 2
    except Exception:
        return False


def source(name: str, more: str = "") -> str:
    """The text of a program, after the arithmetic that all of them share and what else it needs."""
    texts = [(Path(__file__).parent / f"{part}.cu").read_text() for part in ("arithmetic", name)]
    return "\n".join((texts[0], more, texts[1]))


def call(
    entry: str,
    text: str,
    constants: Mapping[str, int],
    args: tuple[Any, ...],
    like: list[Any],
    aliases: dict[int, int],
    launch: tuple[int, int, int],
) -> Any:
    """What a program returns: arrays of the shapes and types of `like`.

    `aliases` are the arguments that it alters, with the results that they become; `launch` are the numbers
    of blocks and of threads per block, and the bytes of shared memory.
    """
    blocks, threads, shared = launch
    results = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in like]
    sizes = {"grid_x": blocks, "grid_y": 1, "grid_z": 1, "block_x": threads, "block_y": 1}
    return jax.ffi.ffi_call(_TARGET, results, input_output_aliases=aliases)(
        *args,
        name=entry,
        kernel_type="ptx",
        kernel_data=_compiled(text, tuple(sorted(constants.items()))),
        **{name: np.int32(size) for name, size in (sizes | {"block_z": 1}).items()},
        shared_mem_bytes=np.int32(shared),
        output_indices=tuple(np.int32(len(args) + i) for i in range(len(results))),
    )


@functools.cache
def _compiled(text: str, constants: tuple[tuple[str, int], ...]) -> str:
    """PTX of this version of the compiler, as it is kept or as it makes it now."""
    options = (f"--gpu-architecture={_ARCHITECTURE}", *(f"-D{name}={n}" for name, n in constants))
    of = ("NVRTC", _version(_library()), *options, text)
    return kept_text("cuda", of, lambda: _made(text, options))


def _made(text: str, options: tuple[str, ...]) -> str:
    library, program = _library(), ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"", 0, None, None))
    try:
        given = (ctypes.c_char_p * len(options))(*map(str.encode, options))
        if library.nvrtcCompileProgram(program, len(options), given):
            raise RuntimeError(_read(library, "nvrtcGetProgramLog", program))
        return _read(library, "nvrtcGetPTX", program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _version(library: Any) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"{major.value}.{minor.value}"


def _read(library: Any, what: str, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    _check(getattr(library, f"{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(getattr(library, what)(program, text))
    return text.value.decode()


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"NVRTC failed with status {status}.")


@functools.cache
def _library() -> Any:
    """NVRTC, of the system or of the packages that came with JAX."""
    places, found = [""], importlib.util.find_spec("nvidia")
    for folder in (found.submodule_search_locations or ()) if found else ():
        places += [f"{place}/" for place in sorted(Path(folder).glob("*/lib"))]
    for name in _LIBRARIES:
        for place in places:
            try:
                return ctypes.CDLL(place + name)
            except OSError:
                continue
    raise RuntimeError("NVRTC is not installed.")
