"""Files from strangers: each is refused in one sentence, before it takes memory or time."""

import json
import os
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from annealz.io.archive import load_archive, load_npy
from annealz.io.reading import available_memory, open_regular
from annealz.io.records import load_record
from annealz.models.formats.load import read_model
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from annealz.training.data import read_data
from support.hostile import ARRAYS, MODEL, npy, npy_header, refused, write_zip

# --- what is no regular file -------------------------------------------------------------------


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


READERS = [read_model, Schedule.load, read_data, load_archive, load_record, Terrain.load]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "pipe"])
def test_only_regular_files_are_read(pipe: Path, read, device: str):
    path = pipe if device == "pipe" else Path(device)
    kind = "a pipe" if device == "pipe" else "a device"
    assert f"it is {kind}, and only regular files are read" in refused(read, path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".txt", ".csv", ".json", ".mat", ".gz"])
def test_a_pipe_is_refused_under_any_name(pipe: Path, suffix: str):
    path = pipe.rename(pipe.with_suffix(suffix))
    for read in (read_model, Schedule.load, read_data):
        assert "a pipe" in refused(read, path)


def test_a_folder_and_a_circle_of_links_are_refused(tmp_path: Path):
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    assert "symbolic links" in refused(open_regular, tmp_path / "one")
    assert "symbolic links" in refused(Schedule.load, tmp_path / "one")
    for read in (read_model, read_data):
        refused(read, tmp_path / "one")
    assert "directory" in refused(read_model, tmp_path)


@pytest.mark.parametrize(
    "options", [["/dev/zero"], ["mnist-pcd-20", "--schedule", "/dev/zero"], ["BOMB"]]
)
def test_the_command_line_ends_with_status_2(tmp_path: Path, capsys, options: list[str]):
    from annealz.cli.main import run

    bomb = write_zip(
        tmp_path / "bomb.npz",
        {"weights.npy": npy_header("{'descr': '<f4', 'shape': (1" + ",1" * 99)},
    )
    assert run(["estimate", *(str(bomb) if word == "BOMB" else word for word in options)]) == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err


# --- sizes -------------------------------------------------------------------------------------


def packed(head: bytes, size: int, wbits: int = 15) -> bytes:
    """The head and zeros, compressed without holding them."""
    stream, piece = zlib.compressobj(1, wbits=wbits), bytes(2**20)
    parts = [stream.compress(head), *(stream.compress(piece) for _ in range(size >> 20))]
    return b"".join([*parts, stream.flush()])


def bombs(folder: Path) -> None:
    """Files of a megabyte or less that unpack to 400 MiB and more."""
    size = 400 * 2**20
    large = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({size // 4},), }}"
    header = npy_header(large.ljust(117) + "\n")
    for name in ("weights", "extra"):
        members = {f"{n}.npy": npy(a) for n, a in ARRAYS.items() if n != name}
        with zipfile.ZipFile(
            folder / f"{name}.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1
        ) as z:
            for member, raw in members.items():
                z.writestr(member, raw)
            with z.open(f"{name}.npy", "w") as file:
                file.write(header)
                for _ in range(size >> 20):
                    file.write(bytes(2**20))
    raw = bytearray((folder / "extra.npz").read_bytes())
    start = raw.find(b"PK\x01\x02", raw.rfind(b"extra.npy") - 60) + 24
    raw[start : start + 4] = (128 + 4096).to_bytes(
        4, "little"
    )  # the directory tells of a small one
    (folder / "lying.npz").write_bytes(raw)
    with h5py.File(folder / "sparse.h5", "w") as file:
        for name, array in ARRAYS.items():
            file[name] = array
        file.create_dataset("more", (10**6, 10**6), "f8", chunks=(1000, 1000))
    with h5py.File(folder / "packed.h5", "w") as file:
        file.create_dataset("weights", (10**5, 10**4), "f4", chunks=(100, 10**4), compression=1)
    with h5py.File(folder / "chunk.h5", "w") as file:
        file.create_dataset(
            "weights", (4, 4), "f4", chunks=(2**14, 2**14), maxshape=(None, None), compression=1
        )
    with h5py.File(folder / "pieces.h5", "w") as file:  # a record in memory for each of 10^7
        for name, array in ARRAYS.items():
            file[name] = array
        file.create_dataset("more", (10, 10, 10**5), "f4", chunks=(1, 1, 1))
    head = b"\x00\x00\x08\x02" + np.array([2**20, 400], ">u4").tobytes()
    (folder / "data.gz").write_bytes(packed(head, size, 31))
    matrix = b"".join(
        np.array(part, "<u4").tobytes()
        for part in ([14, size], [6, 8, 6, 0], [5, 8, 2**15, size >> 18])
    )
    matrix += np.array([1, 6], "<u4").tobytes() + b"vishid\0\0"
    body = packed(matrix + np.array([9, size], "<u4").tobytes(), size)
    start = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    tag = np.array([15, len(body)], "<u4").tobytes()
    (folder / "packed.mat").write_bytes(start + tag + body)
    with open(folder / "hole.npz", "wb") as file:
        file.write(b"PK\x03\x04")
        file.truncate(2**40)
    for name in ("hole.json", "hole.txt", "hole.safetensors", "hole.mat", "hole.h5"):
        with open(folder / name, "wb") as file:
            file.write(b"\x10\0\0\0\0\0\0\0{" if "safe" in name else b"\x89HDF\r\n\x1a\n")
            file.truncate(2**40)


MEASURE = """
import json, resource, sys, time
from pathlib import Path
from annealz.models.formats.load import read_model
from annealz.training.data import read_data
from annealz.schedules.schedule import Schedule
from annealz.io import reading
import h5py, scipy.io, safetensors.numpy

reading.available_memory = lambda: 600 * 2**20

pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 900 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = {}
for path in sorted(Path(sys.argv[1]).iterdir()):
    read = {".gz": read_data, ".json": Schedule.load, ".txt": Schedule.load}.get(path.suffix, read_model)
    start = time.monotonic()
    try:
        read(path)
        said = "nothing"
    except ValueError as error:
        said = str(error)
    found[path.name] = [said, time.monotonic() - start]
status = Path("/proc/self/status").read_text().splitlines()  # ru_maxrss has the parent's in it
peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps([found, peak]))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="measured on Linux")
def test_bombs_are_refused_before_they_take_memory(tmp_path: Path):
    bombs(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    found, peak = json.loads(done.stdout)
    for name, (said, seconds) in found.items():
        assert name in said, name
        assert said.isprintable(), name
        assert seconds < 10, name
    for name in (
        "weights.npz",
        "extra.npz",
        "sparse.h5",
        "packed.h5",
        "chunk.h5",
        "pieces.h5",
        "data.gz",
        "packed.mat",
    ):
        assert "half of the free memory" in found[name][0], found[name]
    assert peak * 1024 < 10**9


def test_the_limit_is_half_of_the_free_memory(tmp_path: Path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", **ARRAYS)
    assert 2**24 < available_memory() < 2**50
    monkeypatch.setattr("annealz.io.reading.available_memory", lambda: 100)
    text = refused(read_model, tmp_path / "a.npz")
    assert "a.npz declares" in text
    assert "half of the free memory is 50 bytes: read it on a larger machine" in text
    monkeypatch.setattr("annealz.io.reading.available_memory", lambda: 4096)
    assert read_model(tmp_path / "a.npz")[0].digest == MODEL.digest


def test_the_command_line_names_the_limit(tmp_path: Path, monkeypatch, capsys):
    from annealz.cli.main import run

    np.save(tmp_path / "rows.npy", np.ones((5, 5)))
    monkeypatch.setattr("annealz.io.reading.available_memory", lambda: 100)
    assert run(["train", str(tmp_path / "rows.npy"), "-o", str(tmp_path / "never.npz")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "half of the free memory is 50 bytes" in said
    assert not (tmp_path / "never.npz").exists()


def test_sparse_weights_that_compress_well_are_read(tmp_path: Path):
    weights = np.zeros((2000, 2000), np.float32)
    weights[::50, ::50] = 1
    arrays = {"weights": weights, "hidden_bias": np.zeros(2000), "visible_bias": np.zeros(2000)}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    assert (tmp_path / "a.npz").stat().st_size < weights.nbytes / 200
    assert float(read_model(tmp_path / "a.npz")[0].weights.sum()) == 1600


@pytest.mark.parametrize("name", ["a.json", "a.txt"])
def test_a_long_text_is_refused(tmp_path: Path, monkeypatch, name: str):
    (tmp_path / name).write_text("[" + "0," * 1000)
    monkeypatch.setattr("annealz.io.reading.available_memory", lambda: 128_000)
    assert "it is a text of 1.954 KiB" in refused(Schedule.load, tmp_path / name)


def test_a_long_header_is_refused_without_advice_to_trust_the_file(tmp_path: Path):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }" + b" " * 20_000 + b"\n"
    file = tmp_path / "long.npy"
    file.write_bytes(b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header + bytes(4))
    with pytest.raises(ValueError, match="may not be safe to load securely") as error:
        load_npy(file)
    assert "allow_pickle" not in str(error.value)
