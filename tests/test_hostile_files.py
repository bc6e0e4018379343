"""Files from strangers: each is refused in one sentence, before it takes memory or time."""

import gzip
import io
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
import typer
from safetensors.numpy import save_file
from scipy.io import savemat

import annealz
from annealz.checkpoint import Checkpoint, Standing
from annealz.cli.estimate import interrupted
from annealz.cli.main import _status, app
from annealz.data.array import read_data
from annealz.families import FAMILIES, restore
from annealz.folder import RunFolder
from annealz.formats.archive import load_archive, pack_archive, save_archive
from annealz.formats.load import load_model, load_trajectory
from annealz.formats.npz import save_model
from annealz.formats.record import load_record, save_record
from annealz.formats.run import run_from_arrays
from annealz.reading.budget import Budget, limited, max_text
from annealz.reading.regular import open_regular
from annealz.schedules.schedule import Schedule
from annealz.terrain import Terrain
from annealz.testing import random_rbm
from annealz.training.job import resume_training

FIXTURES = Path(__file__).parent / "fixtures"
MODEL = random_rbm(3, 5, seed=4)
ARRAYS = {
    name: np.asarray(getattr(MODEL, name)) for name in ("weights", "hidden_bias", "visible_bias")
}
DEEP = "[" * 100_000


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npy_header(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    raw = text.encode("latin1")
    width = 2 if version == (1, 0) else 4
    return b"\x93NUMPY" + bytes(version) + len(raw).to_bytes(width, "little") + raw


def write_zip(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as zipped:
        for name, raw in members.items():
            zipped.writestr(name, raw)
    return path


def with_meta(path: Path, meta: str) -> Path:
    """A plain file with a record of any text, which needs no checksum."""
    np.savez(path, **ARRAYS, meta=np.frombuffer(meta.encode(), np.uint8))
    return path


def write_hdf5(path: Path, change) -> Path:
    with h5py.File(path, "w") as file:
        for name, array in ARRAYS.items():
            file[name] = array
        change(file)
    return path


def refused(read, *args) -> str:
    """What the reader says, which must be one line that can be printed."""
    with pytest.raises(ValueError, match=".") as caught:
        read(*args)
    text = str(caught.value)
    assert text.isprintable(), text
    assert len(text) < 2000
    text.encode()
    return text


# --- what is no regular file -------------------------------------------------------------------


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


READERS = [load_model, Schedule.load, read_data, load_archive, load_record, Terrain.load]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "pipe"])
def test_only_regular_files_are_read(pipe: Path, read, device: str):
    path = pipe if device == "pipe" else Path(device)
    kind = "a pipe" if device == "pipe" else "a device"
    assert f"it is {kind}, and only regular files are read" in refused(read, path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".txt", ".csv", ".json", ".mat", ".gz"])
def test_a_pipe_is_refused_under_any_name(pipe: Path, suffix: str):
    path = pipe.rename(pipe.with_suffix(suffix))
    for read in (load_model, Schedule.load, read_data):
        assert "a pipe" in refused(read, path)


def test_a_folder_and_a_circle_of_links_are_refused(tmp_path: Path):
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    assert "symbolic links" in refused(open_regular, tmp_path / "one")
    assert "symbolic links" in refused(Schedule.load, tmp_path / "one")
    for read in (load_model, read_data):
        refused(read, tmp_path / "one")
    assert "directory" in refused(load_model, tmp_path)


@pytest.mark.parametrize(
    "options", [["/dev/zero"], ["mnist-pcd-20", "--schedule", "/dev/zero"], ["BOMB"]]
)
def test_the_command_line_ends_with_status_2(tmp_path: Path, capsys, options: list[str]):
    bomb = write_zip(
        tmp_path / "bomb.npz",
        {"weights.npy": npy_header("{'descr': '<f4', 'shape': (1" + ",1" * 99)},
    )
    assert _status(["estimate", *(str(bomb) if word == "BOMB" else word for word in options)]) == 2
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
from annealz.formats.load import load_model
from annealz.data.array import read_data
from annealz.schedules.schedule import Schedule
import h5py, scipy.io, safetensors.numpy

pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 900 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = {}
for path in sorted(Path(sys.argv[1]).iterdir()):
    read = {".gz": read_data, ".json": Schedule.load, ".txt": Schedule.load}.get(path.suffix, load_model)
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
        "data.gz",
        "packed.mat",
    ):
        assert "give --max-memory" in found[name][0], found[name]
    assert peak * 1024 < 10**9


def test_the_variable_raises_the_limit(tmp_path: Path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", **ARRAYS)
    monkeypatch.setenv("ANNEALZ_MAX_MEMORY", "50")
    text = refused(load_model, tmp_path / "a.npz")
    assert "a.npz declares" in text
    assert (
        "may take 50 bytes: give --max-memory, for example 8GB, or set ANNEALZ_MAX_MEMORY" in text
    )
    for given, size in (("8GB", 8 * 10**9), ("1.5 GiB", 3 * 2**29), ("4096", 4096), ("2k", 2000)):
        monkeypatch.setenv("ANNEALZ_MAX_MEMORY", given)
        assert max_text() == size // 64
    assert load_model(tmp_path / "a.npz")[0].digest == MODEL.digest
    for given in ("much", "-1", "0", "8XB", "1e400"):
        monkeypatch.setenv("ANNEALZ_MAX_MEMORY", given)
        assert "ANNEALZ_MAX_MEMORY must be a number of bytes" in refused(
            load_model, tmp_path / "a.npz"
        )


READERS = {
    "estimate": ["estimate", "model.npz"],
    "schedule": ["schedule", "model.npz"],
    "compare": ["compare", "model.npz"],
    "likelihood": ["likelihood", "model.npz"],
    "train": ["train", "rows.npy", "-o", "never.npz"],
    "resume": ["resume", "FOLDER"],
    "report": ["report", "FOLDER"],
}


@pytest.mark.parametrize("arguments", READERS.values(), ids=READERS)
def test_the_option_sets_the_limit_of_one_command(tmp_path: Path, monkeypatch, capsys, arguments):
    """It goes before the variable, of which a bad value is not looked at then."""
    monkeypatch.chdir(tmp_path)
    np.savez_compressed("model.npz", **ARRAYS)
    np.save("rows.npy", np.ones((5, 5)))
    options = {"schedule": "linear", "num_steps": 5, "num_chains": 5, "second_opinion": False}
    annealz.estimate_log_z(MODEL, out="FOLDER", **options)
    monkeypatch.setenv("ANNEALZ_MAX_MEMORY", "much")
    assert _status([*arguments, "--max-memory", "50"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "give --max-memory, for example 8GB, or set ANNEALZ_MAX_MEMORY" in said
    for size in ("much", "-1", "0", "", "8XB"):
        assert _status([*arguments, "--max-memory", size]) == 2
        said = capsys.readouterr().err
        assert (
            said == f"annealz: --max-memory must be a number of bytes, or like 8GB, got {size!r}.\n"
        )
    assert _status(arguments) == 2  # nothing is left of the option
    assert "ANNEALZ_MAX_MEMORY must be" in capsys.readouterr().err
    if arguments[0] == "report":
        assert _status([*arguments, "--max-memory", "2G"]) == 0
    assert not Path("never.npz").exists()


def test_the_command_that_goes_on_has_the_limit_too(capsys):
    folder = RunFolder("run")
    with limited("2 GiB"):
        interrupted(folder, is_kept=True)
        assert max_text() == 2**25
    interrupted(folder, is_kept=True)
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"{second} --max-memory '2 GiB'"


def test_every_command_that_reads_files_has_the_option():
    commands = typer.main.get_command(app).commands  # pyright: ignore
    assert {*commands} - {*READERS} == {"models"}
    for name in READERS:
        assert "max_memory" in {option.name for option in commands[name].params}


def test_own_archives_may_be_as_large_as_they_are():
    """A checkpoint of many chains goes on, whatever its size on disk."""
    assert Budget("run.npz", 2**34, is_own=True).limit == 2**34
    assert Budget("model.npz", 2**34).limit == 2**31
    assert Budget("model.npz", 2**23).limit == 2**29


def test_sparse_weights_that_compress_well_are_read(tmp_path: Path):
    weights = np.zeros((2000, 2000), np.float32)
    weights[::50, ::50] = 1
    arrays = {"weights": weights, "hidden_bias": np.zeros(2000), "visible_bias": np.zeros(2000)}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    assert (tmp_path / "a.npz").stat().st_size < weights.nbytes / 200
    assert float(load_model(tmp_path / "a.npz")[0].weights.sum()) == 1600


@pytest.mark.parametrize("name", ["a.json", "a.txt"])
def test_a_long_text_is_refused(tmp_path: Path, monkeypatch, name: str):
    (tmp_path / name).write_text("[" + "0," * 1000)
    monkeypatch.setenv("ANNEALZ_MAX_MEMORY", "64KB")
    assert "it is a text of 1.954 KiB" in refused(Schedule.load, tmp_path / name)


# --- npz ---------------------------------------------------------------------------------------


METAS = {
    "[1, 2]": "must be a table of names",
    '"text"': "must be a table of names",
    "null": "must be a table of names",
    '{"name": 3}': "name of the model's record must be a line of text, got 3",
    '{"name": {"a": 1}}': "must be a line of text, got a table of names",
    '{"name": "two\\nlines"}': "must be a line of text",
    '{"exact_log_z": "12"}': "exact_log_z of the model's record must be a number, got '12'",
    '{"exact_log_z": 1' + "0" * 400 + "}": "must be a number, got a number too large",
    '{"exact_log_z": 1' + "0" * 5000 + "}": "meta that is no JSON record",
    '{"exact_log_z": NaN}': "must be a finite number, got nan",
    '{"exact_log_z": true}': "must be a number, got True",
    '{"digest": []}': "digest of the model's record must be a text, got a list",
    '{"stored": 5}': "stored of the model's record must be a table",
    '{"stored": {}}': "lacks family",
    '{"stored": {"family": [], "plain": {}, "lengths": {}, "parts": {}}}': "family of what is stored",
    '{"stored": {"family": "none", "plain": {}, "lengths": {}, "parts": {}}}': "knows no 'none'",
    DEEP: "it is nested too deeply",
    '{"a": ' + DEEP + "]" * 100_000 + "}": "it is nested too deeply",
}


@pytest.mark.parametrize("meta", METAS, ids=lambda meta: meta[:40])
def test_records_of_models(tmp_path: Path, meta: str):
    text = refused(load_model, with_meta(tmp_path / "a.npz", meta))
    assert "a.npz" in text
    assert METAS[meta] in text


def test_a_record_cannot_name_code(tmp_path: Path):
    path = with_meta(tmp_path / "a.npz", '{"source": "os:system"}')
    assert "source" not in load_model(path)[1]


HEADERS = {
    "no end": npy_header("{'descr': '<f4', 'shape': ("),
    "empty": npy_header(""),
    "no table": npy_header("[1, 2]"),
    "names": npy_header("{'descr': '<f4'}"),
    "code": npy_header("{'descr': '<f4', 'fortran_order': print(), 'shape': (1,)}"),
    "negative": npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
    "huge": npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (10**9, 10**9)}"),
    "larger": npy_header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({10**30},)}}"),
    "many axes": npy_header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {(1,) * 200}}}"),
    "nothing": npy_header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': (0, {10**30})}}"),
    "no size": npy_header(f"{{'descr': '|V0', 'fortran_order': False, 'shape': ({10**18},)}}"),
    "objects": npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}")
    + b"\x80\x04K\x01.",
    "nested": npy_header("(" * 9000),
    "long": npy_header(" " * 60_000),
    "longer": npy_header("", (2, 0))[:8] + b"\xff\xff\xff\xff",
    "version": npy_header("{}", (9, 9)),
    "strings": npy(np.array(["a", "b"])),
    "dates": npy(np.array(["2001-01-01"], "M8[D]")),
    "short": npy(np.ones(9))[:-3],
    "more": npy(np.ones(9)) + b"more",
    "text": b"hello",
    "none": b"",
}


@pytest.mark.parametrize("kind", HEADERS)
def test_arrays_of_any_bytes(tmp_path: Path, kind: str):
    members = {f"{name}.npy": npy(array) for name, array in ARRAYS.items()}
    path = write_zip(tmp_path / "a.npz", {**members, "weights.npy": HEADERS[kind]})
    assert "a.npz" in refused(load_model, path)
    (tmp_path / "a.npy").write_bytes(HEADERS[kind])
    for read in (Schedule.load, read_data):
        assert "a.npy" in refused(read, tmp_path / "a.npy")


def test_zips_that_numpy_does_not_write(tmp_path: Path):
    members = {f"{name}.npy": npy(array) for name, array in ARRAYS.items()}
    text = refused(load_model, write_zip(tmp_path / "a.npz", {**members, "notes.txt": b"hello"}))
    assert "holds notes.txt, which is no array" in text
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):  # unpacked without a bound
        assert "no array as np.savez writes" in refused(
            load_model, write_zip(tmp_path / "b.npz", members, method)
        )
    raw = write_zip(tmp_path / "c.npz", {"a.npy": npy(np.ones(1)), "b.npy": npy(np.ones(1))})
    raw.write_bytes(raw.read_bytes().replace(b"b.npy", b"a.npy"))
    assert "holds a.npy twice" in refused(load_model, tmp_path / "c.npz")
    many = {f"{i}.npy": b"" for i in range(60_000)}
    assert "directory is too long" in refused(
        load_model,
        write_zip(tmp_path / "d.npz", {f"{'x' * 60}{name}": raw for name, raw in many.items()}),
    )


def test_names_are_made_fit_to_print(tmp_path: Path):
    names = {f"\x1b[31m{i}\n{'x' * 100}": np.ones(1) for i in range(50)}
    np.savez(tmp_path / "a.npz", **names)
    text = refused(load_model, tmp_path / "a.npz")
    assert "\\x1b[31m0\\n" in text
    assert "30 more" in text


# --- what is stored under the name of a family ---------------------------------------------------


STORED = {"family": "potts", "plain": {}, "lengths": {}, "parts": {}}
LATTICE = {"couplings": np.zeros(2, np.float32), "field": np.zeros((), np.float32)}
PAIR = {"couplings": np.zeros((2, 2), np.float32), "fields": np.zeros((2, 3), np.float32)}


@pytest.mark.parametrize(
    ("arrays", "change", "words"),
    [
        ({}, {}, "lacks the array couplings"),
        ({**PAIR, "fields": np.array(["a"])}, {}, "fields must hold real numbers"),
        ({**PAIR, "fields": np.zeros(2, np.float32)}, {}, "fields of the stored potts is damaged"),
        ({**PAIR, "fields": np.zeros((9, 3), np.float32)}, {}, "of 2 units, got shape (9, 3)"),
        (PAIR, {"plain": {"fields": None}}, "fields of the stored potts is damaged: got None"),
        (PAIR, {"plain": {"fields": "x" * 999}}, "is damaged: got 'xxx"),
        (PAIR, {"lengths": {"fields": 10**18}}, "lacks the array fields.0"),
        (PAIR, {"lengths": {"fields": "2"}}, "must be a whole number"),
        (PAIR, {"parts": {"fields": 3}}, "what is stored must be a table"),
        ({}, {"family": "block-gibbs"}, "holds a BlockGibbs, which is no model"),
        (LATTICE, {"family": "square-ising", "plain": {"height": 3, "width": 4}}, "must be even"),
        (LATTICE, {"family": "square-ising", "plain": {"height": 2**30, "width": 2**30}}, "units"),
        (LATTICE, {"family": "square-ising", "plain": {"height": 1e3, "width": 4}}, "got 1000.0"),
        (LATTICE, {"family": "square-ising", "plain": {"height": True, "width": 4}}, "got True"),
    ],
)
def test_stored_models(tmp_path: Path, arrays: dict, change: dict, words: str):
    save_archive(tmp_path / "a.npz", arrays, {"stored": {**STORED, **change}})
    text = refused(load_model, tmp_path / "a.npz")
    assert "a.npz" in text
    assert words in text


@pytest.mark.parametrize("kind", [">f4", "f2", "f8", "g"])
def test_stored_numbers_of_other_widths(tmp_path: Path, kind: str):
    """JAX itself takes neither the other order of bytes nor more than eight of them."""
    pair = {name: array.astype(kind) for name, array in PAIR.items()}
    save_archive(tmp_path / "a.npz", pair, {"stored": STORED})
    assert load_model(tmp_path / "a.npz")[0].name == "potts-2x3"


@pytest.mark.parametrize("family", FAMILIES)
def test_no_family_is_made_of_nothing(family: str):
    if family not in ("block-gibbs", "bernoulli-units"):  # have no fields
        refused(restore, {}, {**STORED, "family": family})


def test_parts_within_parts_end(tmp_path: Path):
    record = STORED
    for _ in range(300):
        record = {**STORED, "family": "mixture", "parts": {"units": record}}
    refused(restore, {}, record)


# --- HDF5 --------------------------------------------------------------------------------------


def external_values(file: h5py.File) -> None:
    file.create_dataset("extra", (4,), "f4", external=[("pipe", 0, 16)])


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("pipe", "x", (4,))
    file.create_virtual_dataset("extra", layout)


def circle(file: h5py.File) -> None:
    file["one"], file["two"] = h5py.SoftLink("/two"), h5py.SoftLink("/one")


def put(name: str | bytes, value):
    def change(file: h5py.File) -> None:
        if isinstance(name, str) and name in file:
            del file[name]
        file[name] = value

    return change


def group(name: str):
    def change(file: h5py.File) -> None:
        if name in file:
            del file[name]
        file.create_group(name)

    return change


def training(change):
    def write(file: h5py.File) -> None:
        for name in ARRAYS:
            del file[name]
        file["model_type"] = "BBRBM"
        parameters = file.create_group("update_1/params")
        parameters["weight_matrix"] = ARRAYS["weights"].T
        parameters["hbias"], parameters["vbias"] = ARRAYS["hidden_bias"], ARRAYS["visible_bias"]
        change(file)

    return write


HDF5 = {
    "external link": (put("extra", h5py.ExternalLink("pipe", "/x")), "extra as a link to another"),
    "used link": (put("weights", h5py.ExternalLink("pipe", "/x")), "weights as a link to another"),
    "external values": (external_values, "extra with values in other files"),
    "virtual": (virtual, "extra with values in other files"),
    "circle": (circle, "one as a link to another place"),
    "self": (put("extra", h5py.SoftLink("/extra")), "extra as a link"),
    "group": (group("weights"), "lacks weights"),
    "update": (training(put("update_1", np.ones(3))), "update_1 must be a group"),
    "params": (training(put("update_1/params", np.ones(3))), "params must be a group"),
    "type": (training(group("model_type")), "holds a model of type ?"),
    "type of numbers": (training(put("model_type", np.ones((9, 9)))), "holds a model of type ?"),
    "type of bytes": (training(put("model_type", np.bytes_(b"\xff\n"))), "a model of type"),
    "no arrays": (training(group("update_1/params/weight_matrix")), "lacks weight_matrix"),
    "long number": (put(f"update_{'9' * 5000}", np.ones(3)), None),
    "names": (put(b"\xff\xfe\n", np.ones(3)), None),
    "dates": (put("weights", np.array(["a", "b"], "S1")), "lacks weights"),
    "types": (put("weights", np.zeros(3, [("a", "f4"), ("b", "i8")])), "lacks weights"),
}


@pytest.mark.parametrize("kind", HDF5)
def test_hdf5(tmp_path: Path, kind: str, monkeypatch):
    """Beside a pipe, which would never answer."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    change, words = HDF5[kind]
    path = write_hdf5(tmp_path / "a.h5", change)
    if words is None:
        assert load_model(path)[0].digest == MODEL.digest
        return
    assert words in refused(load_model, path)
    refused(load_trajectory, path)


def test_names_that_are_no_text(tmp_path: Path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file[b"\xff\xfe\n\x1b"] = np.ones(3)
    assert "lacks weights" in refused(load_model, tmp_path / "a.h5")
    assert "a training of rbms holds" in refused(load_trajectory, tmp_path / "a.h5")


# --- MATLAB and safetensors ----------------------------------------------------------------------


def test_matlab_variables_that_are_no_numbers_are_left(tmp_path: Path):
    others = {"cell": np.array([[1, "a"]], object), "struct": {"a": 1}, "text": "hello"}
    savemat(tmp_path / "a.mat", {**ARRAYS, **others})
    assert load_model(tmp_path / "a.mat")[0].digest == MODEL.digest


@pytest.mark.parametrize("version", ["4", "5"])
def test_matlab_declares_more_than_it_holds(tmp_path: Path, version: str):
    path = tmp_path / "a.mat"
    savemat(path, {"vishid": np.ones((3, 7))}, format=version)
    sizes = np.array([3, 7], "<u4").tobytes()
    for change in ([2**31 - 1, 2**31 - 1], [2**16, 2**10], [3, 2**20]):
        path.write_bytes(path.read_bytes().replace(sizes, np.array(change, "<u4").tobytes()))
        assert "a.mat" in refused(load_model, path)
        sizes = np.array(change, "<u4").tobytes()


@pytest.mark.parametrize("version", ["4", "5"])
def test_any_byte_of_a_matlab_file(tmp_path: Path, version: str):
    """A general reader ended the process at some of them."""
    path = tmp_path / "a.mat"
    savemat(path, {"vishid": np.ones((3, 2)), "text": "a", "cell": 3}, format=version)
    raw = path.read_bytes()
    for at in range(0 if version == "4" else 124, len(raw)):
        for value in (0x00, 0x0F, 0xFF):
            path.write_bytes(raw[:at] + bytes([value]) + raw[at + 1 :])
            assert "a.mat" in refused(load_model, path)  # it lacks the biases at the least


@pytest.mark.parametrize(
    "header",
    [
        b"{",
        b"{}" + b" " * 50,
        b'{"weights": 3}',
        b'{"weights": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 4]}}',
        b'{"weights": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}',
        b'{"weights": {"dtype": "F32", "shape": [1], "data_offsets": [0, 99999999999]}}',
        b'{"weights": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}',
        b'{"weights": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}',
        b'{"a":' + b"[" * 100_000,
    ],
    ids=range(9),
)
def test_safetensors(tmp_path: Path, header: bytes):
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0\0\0")
    assert "a.safetensors" in refused(load_model, path)
    path.write_bytes((99_999_999).to_bytes(8, "little") + header)
    assert "its header has 99999999 bytes" in refused(load_model, path)


def test_safetensors_of_other_kinds(tmp_path: Path):
    save_file({**ARRAYS, "flags": np.zeros(0, bool)}, tmp_path / "a.safetensors")
    assert load_model(tmp_path / "a.safetensors")[0].digest == MODEL.digest


# --- schedules, records, runs --------------------------------------------------------------------


def schedule_file(path: Path, **changes) -> Path:
    annealz.sm08(145).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


TERRAIN = {"betas": [0, 1], "mean": [0, 1], "variance": [1, 1], "ess": [5, 5]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": 3}, "name of the schedule must be a line of text, got 3"),
        ({"betas": "0"}, "betas of the schedule must be a list"),
        ({"betas": [0, [1], 1]}, "must be a number, got a list"),
        ({"betas": [0, 10**400]}, "must be a number, got a number too large"),
        ({"provenance": [1]}, "provenance of the schedule must be a table"),
        ({"digest": 5}, "digest of the schedule must be a text"),
        ({"terrain": [1]}, "terrain of the schedule is damaged"),
        ({"terrain": {}}, "its terrain is damaged"),
        ({"terrain": {**TERRAIN, "mean": [0, 10**400]}}, "a number too large"),
        ({"terrain": {**TERRAIN, "mean": [{}, 1]}}, "must be a number"),
        ({"terrain": {**TERRAIN, "sweeps": "9"}}, "sweeps of the terrain must be a whole number"),
        ({"terrain": {**TERRAIN, "more": 1}}, "its terrain is damaged"),
    ],
)
def test_saved_schedules(tmp_path: Path, changes: dict, words: str):
    assert words in refused(Schedule.load, schedule_file(tmp_path / "a.json", **changes))


@pytest.mark.parametrize(
    "text", [DEEP, '{"a":' * 99_999, "[0, 1" + "0" * 400 + "]", "[0, [[1]]]", "[0, {}]", "\x00", ""]
)
def test_other_schedules(tmp_path: Path, text: str):
    for name in ("a.json", "a.txt", "a.csv"):
        (tmp_path / name).write_text(text)
        assert f"schedule file {tmp_path / name}: " in refused(Schedule.load, tmp_path / name)
    (tmp_path / "a.txt").write_bytes(b"\xff 0 1")
    refused(Schedule.load, tmp_path / "a.txt")


@pytest.mark.parametrize("text", [DEEP, "[]", "3", "{}", '{"digest": []}', "\xff"])
def test_records_of_folders(tmp_path: Path, text: str):
    (tmp_path / "run.json").write_bytes(text.encode("latin1"))
    assert "run.json was altered or damaged" in refused(load_record, tmp_path / "run.json")


RUN_ARRAYS = {
    "log_weights": np.zeros(4),
    "states": np.zeros((4, 3), np.uint8),
    **{f"trace:{name}": np.arange(2.0) for name in ("steps", "betas", "log_z", "ess")},
}
RUN_META = {"log_z0": 1.0, "seed": 0, "purpose": "run", "seconds": 1.0, "messages": []}


@pytest.mark.parametrize(
    ("arrays", "meta", "words"),
    [
        ({"log_weights": np.array(["a"])}, {}, "log_weights must hold real numbers"),
        ({"log_weights": np.zeros((4, 4))}, {}, "log_weights has shape (4, 4)"),
        ({"log_weights": np.zeros(0)}, {}, "0 chains"),
        ({"states": np.zeros(3)}, {}, "states has shape (3,)"),
        ({"trace:ess": np.zeros(3)}, {}, "trace:ess has shape (3,)"),
        ({"mean:u": np.zeros(7)}, {}, "mean:u has shape (7,)"),
        ({}, {"log_z0": "1"}, "log_z0 of the record of a run must be a number"),
        ({}, {"messages": "text"}, "messages of the record of a run must be a list"),
        ({}, {"island_size": 3}, "4 chains make no islands of 3"),
        ({}, {"island_size": 0}, "no islands of 0"),
        ({}, {"seed": 1.5}, "must be a whole number"),
    ],
)
def test_stored_runs(arrays: dict, meta: dict, words: str):
    schedule = annealz.linear(10)
    assert run_from_arrays(RUN_ARRAYS, RUN_META, schedule).num_chains == 4
    assert words in refused(
        run_from_arrays, {**RUN_ARRAYS, **arrays}, {**RUN_META, **meta}, schedule
    )
    for name in RUN_ARRAYS:
        rest = {key: array for key, array in RUN_ARRAYS.items() if key != name}
        assert f"lacks the array {name}" in refused(run_from_arrays, rest, RUN_META, schedule)
    for name in RUN_META:
        rest = {key: value for key, value in RUN_META.items() if key != name}
        assert f"lacks {name}" in refused(run_from_arrays, RUN_ARRAYS, rest, schedule)


def test_checkpoints(tmp_path: Path):
    start = Standing(0, [np.zeros((4, 3), np.float32), np.arange(4, dtype=np.float32)], [])
    checkpoint = Checkpoint(tmp_path / "a.npz", "digest")
    checkpoint.save(Standing(1, start.blocks, [{"step": 1, "u": 2.0}]), 3.0)
    assert checkpoint.load(start)[0].records == [{"step": 1, "u": 2.0}]
    arrays, meta = load_archive(tmp_path / "a.npz")
    for changes, record in (
        ({"leaf:0": np.zeros(9, np.uint8)}, {}),
        ({"leaf:1": np.zeros(9)}, {}),
        ({"leaf:1": np.array(["a"])}, {}),
        ({"record:u": np.zeros(5)}, {}),
        ({"record:step": np.array(5)}, {}),
        ({}, {"step": "1"}),
        ({}, {"seconds": None}),
        ({}, {"digest": 4}),
    ):
        save_archive(tmp_path / "a.npz", {**arrays, **changes}, {**meta, **record})
        assert "a.npz" in refused(checkpoint.load, start)
    save_archive(tmp_path / "a.npz", {}, meta)
    assert "lacks the array leaf:0" in refused(checkpoint.load, start)


def test_terrains(tmp_path: Path):
    path = tmp_path / "a.npz"
    columns = {name: np.array(values) for name, values in TERRAIN.items()}
    for arrays, meta in (
        ({**columns, "mean": np.array(["a", "b"])}, {}),
        ({**columns, "more": np.ones(2)}, {}),
        ({}, {}),
        (columns, {"sweeps": []}),
        (columns, {"more": 1}),
    ):
        save_archive(path, arrays, {"kind": "terrain", **meta})
        assert "a.npz holds a damaged terrain" in refused(Terrain.load, path)


def test_trainings(tmp_path: Path):
    record = {
        "settings": {"num_hidden": 3},
        "data": {"name": "a", "kind": "file", "path": "a.npy", "digest": ""},
        "file": "model.npz",
        "series": None,
        "checkpoint_seconds": 1.0,
    }
    for changes, words in (
        (
            {"file": "../../model.npz"},
            "file of the record of a training must be the name of a file",
        ),
        ({"file": "/model.npz"}, "must be the name of a file"),
        ({"settings": {"num_hidden": "3"}}, "must be a whole number"),
        ({"data": {**record["data"], "kind": "pipe"}}, "must be one of mnist, file"),
        ({"data": 3}, "data of the record of a training is damaged"),
        ({"series": "x"}, "series of the record"),
    ):
        save_record(tmp_path / "training.json", {**record, **changes})
        assert words in refused(resume_training, tmp_path)
    save_record(tmp_path / "training.json", record)
    save_record(tmp_path / "result.json", {"result": [1]})
    assert "the result of a training must be a table" in refused(resume_training, tmp_path)


# --- data --------------------------------------------------------------------------------------


def test_data(tmp_path: Path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\0\0\x08\xff" + b"\xff" * 1020))
    assert "a.gz declares its array" in refused(read_data, tmp_path / "a.gz")
    (tmp_path / "a").write_bytes(b"\0\0\x08\xff" + b"\0\0\0\1" * 255 + b"\1")
    assert "is damaged" in refused(read_data, tmp_path / "a")
    (tmp_path / "a.npz").write_bytes(pack_archive({"x": np.array(["a"])}, {}))
    assert "must hold real numbers" in refused(read_data, tmp_path / "a.npz")


def test_models_that_were_saved_are_read(tmp_path: Path):
    for model in (MODEL, annealz.Potts.square(4, 3, 0.8), annealz.Ising.square(4, 0.3)):
        save_model(tmp_path / "a.npz", model, {"name": "a", "note": {"any": [1]}})
        found, meta = load_model(tmp_path / "a.npz")
        assert (found.digest, meta["note"]) == (model.digest, {"any": [1]})
