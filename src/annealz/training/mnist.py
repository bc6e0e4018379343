"""MNIST: 60,000 training and 10,000 test digits of 28 x 28 pixels, as intensities in [0, 1].

The files come from a folder, where one is given or named by the environment variable ANNEALZ_MNIST;
else they are fetched once, from the first mirror that answers, into the user's cache. A cached file
whose checksum does not match is fetched again. They are IDX files, gzipped or plain: a big-endian header,
then unsigned bytes.

    00 00 08 <number of axes> | one 32-bit length an axis | the bytes
"""

import gzip
import hashlib
import os
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import numpy as np
import platformdirs

from annealz.core.errors import InputError
from annealz.io.reading import Budget, open_regular, shown, told

_SHA256 = {  # of the unpacked pixels with their IDX header
    "train": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "t10k": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
}
_PACKED_SHA256 = {  # of the files of the mirrors
    "train": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "t10k": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
}
_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_CACHE = Path(platformdirs.user_cache_dir("annealz")) / "mnist"
_SECONDS = 20  # a mirror may take to answer


def load_mnist(folder: str | Path | None = None, split: str = "train") -> np.ndarray:
    """Return the images of one split ("train" or "test") as float32 (images, 784) in [0, 1]."""
    stem = {"train": "train", "test": "t10k"}.get(split)
    if stem is None:
        raise ValueError(f"split must be train or test, got {split!r}.")
    folder = folder or os.environ.get("ANNEALZ_MNIST")
    found = _fetch(stem) if folder is None else _find(Path(folder), stem)
    pixels = read_idx(found)
    header = b"\x00\x00\x08\x03" + np.asarray(pixels.shape, ">u4").tobytes()
    if hashlib.sha256(header + pixels.tobytes()).hexdigest() != _SHA256[stem]:
        raise ValueError(f"{found} is not the {split} split of MNIST: its checksum differs.")
    return pixels.reshape(len(pixels), -1).astype(np.float32) / 255


def _find(folder: Path, stem: str) -> Path:
    candidates = [folder / f"{stem}-images-idx3-ubyte{end}" for end in ("", ".gz")]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise ValueError(f"no MNIST in {folder}: looked for {candidates[0].name}, plain or .gz.")
    return found


def _fetch(stem: str) -> Path:
    """Return the cached file, fetched if it is not there or damaged."""
    import pooch

    name = f"{stem}-images-idx3-ubyte.gz"
    failures = []
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        for mirror in _MIRRORS:
            try:
                return Path(
                    pooch.retrieve(
                        mirror + name,
                        known_hash=f"sha256:{_PACKED_SHA256[stem]}",
                        fname=name,
                        path=_CACHE,
                        downloader=cast(Any, pooch.HTTPDownloader(timeout=_SECONDS)),
                    )
                )
            except (OSError, ValueError) as error:  # requests' errors are OSErrors
                failures.append(f"{urlsplit(mirror).netloc} {_reason(error)}")
    finally:
        logger.setLevel(level)
    raise InputError(
        "",
        f"MNIST could not be fetched ({', '.join(failures)})",
        remedy="try again with a network, or give a folder with its files by {mnist} or the environment "
        "variable ANNEALZ_MNIST",
    )


def _reason(error: Exception) -> str:
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"answered with status {error.response.status_code}"
    if isinstance(error, requests.RequestException):
        is_late = isinstance(error, requests.Timeout)
        return "did not answer in time" if is_late else "could not be reached"
    if isinstance(error, OSError):
        return f"could not be stored in {_CACHE}: {error.strerror or error}"
    return "sent another file: its checksum differs"


def read_idx(path: str | Path, *, item_size: int = 1) -> np.ndarray:
    """Return the uint8 array of an IDX file; a value counts as `item_size` bytes."""
    with open_regular(path) as file:
        budget = Budget(path)
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not is_packed:
            return _unpacked_idx(file, budget, item_size)
        try:
            with gzip.open(file) as unpacked:
                return _unpacked_idx(cast(BinaryIO, unpacked), budget, item_size)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged gzip file: {told(error)}.") from error


def _unpacked_idx(file: BinaryIO, budget: Budget, item_size: int) -> np.ndarray:
    path, head = budget.path, file.read(4)
    lengths = file.read(4 * head[3]) if len(head) == 4 else b""
    if head[:3] != b"\x00\x00\x08" or len(head) < 4 or len(lengths) < 4 * head[3]:
        raise ValueError(f"{path} is not an IDX file of unsigned bytes.")
    shape = tuple(int(n) for n in np.frombuffer(lengths, ">u4"))
    size = budget.take("its array", shape, item_size) // item_size
    raw = file.read(size + 1)
    if len(raw) != size:
        more = " or more" if len(raw) > size else ""
        raise ValueError(
            f"{path} promises shape {shown(shape)} and holds {len(raw)} bytes{more}: it is damaged."
        )
    try:
        return np.frombuffer(raw, np.uint8).reshape(shape)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {told(error)}.") from error
