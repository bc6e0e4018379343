"""Hostile files of models: each is refused in one sentence, before it takes time or memory."""

import os
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy.io import savemat

from annealz.io.archive import save_archive
from annealz.io.serialise import FAMILIES, restore
from annealz.models.formats.load import load_trajectory, read_model
from annealz.schedules.schedule import Schedule
from annealz.training.data import read_data
from support.hostile import (
    ARRAYS,
    DEEP,
    MODEL,
    npy,
    npy_header,
    refused,
    with_meta,
    write_hdf5,
    write_zip,
)

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
    '{"exact_log_z": 1' + "0" * 5000 + "}": "meta that is not a JSON record",
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
    text = refused(read_model, with_meta(tmp_path / "a.npz", meta))
    assert "a.npz" in text
    assert METAS[meta] in text


def test_a_record_cannot_name_code(tmp_path: Path):
    path = with_meta(tmp_path / "a.npz", '{"source": "os:system"}')
    assert "source" not in read_model(path)[1]


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
    assert "a.npz" in refused(read_model, path)
    (tmp_path / "a.npy").write_bytes(HEADERS[kind])
    for read in (Schedule.load, read_data):
        assert "a.npy" in refused(read, tmp_path / "a.npy")


def test_zips_that_numpy_does_not_write(tmp_path: Path):
    members = {f"{name}.npy": npy(array) for name, array in ARRAYS.items()}
    text = refused(read_model, write_zip(tmp_path / "a.npz", {**members, "notes.txt": b"hello"}))
    assert "holds notes.txt, which is not an array" in text
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):  # unpacked without a bound
        assert "not an array as np.savez writes" in refused(
            read_model, write_zip(tmp_path / "b.npz", members, method)
        )
    raw = write_zip(tmp_path / "c.npz", {"a.npy": npy(np.ones(1)), "b.npy": npy(np.ones(1))})
    raw.write_bytes(raw.read_bytes().replace(b"b.npy", b"a.npy"))
    assert "it holds a twice" in refused(read_model, tmp_path / "c.npz")
    many = {f"{'x' * 60_000}{i}.npy": b"" for i in range(200)}
    text = refused(read_model, write_zip(tmp_path / "d.npz", many))
    assert "directory is too long" in text


def test_names_are_made_fit_to_print(tmp_path: Path):
    names = {f"\x1b[31m{i}\n{'x' * 100}": np.ones(1) for i in range(50)}
    np.savez(tmp_path / "a.npz", **names)
    text = refused(read_model, tmp_path / "a.npz")
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
        (
            {**PAIR, "fields": np.zeros((9, 3), np.float32)},
            {},
            "(units, states) = (2, 3), got shape (9, 3)",
        ),
        (PAIR, {"plain": {"fields": None}}, "fields of the stored potts is damaged: got None"),
        (PAIR, {"plain": {"fields": "x" * 999}}, "is damaged: got 'xxx"),
        (PAIR, {"lengths": {"fields": 10**18}}, "lacks the array fields.0"),
        (PAIR, {"lengths": {"fields": "2"}}, "must be a whole number"),
        (PAIR, {"parts": {"fields": 3}}, "what is stored must be a table"),
        ({}, {"family": "block-gibbs"}, "holds a BlockGibbs, which is not a model"),
        (LATTICE, {"family": "square-ising", "plain": {"height": 3, "width": 4}}, "must be even"),
        (LATTICE, {"family": "square-ising", "plain": {"height": 2**30, "width": 2**30}}, "units"),
        (LATTICE, {"family": "square-ising", "plain": {"height": 1e3, "width": 4}}, "got 1000.0"),
        (LATTICE, {"family": "square-ising", "plain": {"height": True, "width": 4}}, "got True"),
    ],
)
def test_stored_models(tmp_path: Path, arrays: dict, change: dict, words: str):
    save_archive(tmp_path / "a.npz", arrays, {"stored": {**STORED, **change}})
    text = refused(read_model, tmp_path / "a.npz")
    assert "a.npz" in text
    assert words in text


@pytest.mark.parametrize("kind", [">f4", "f2", "f8", "g"])
def test_stored_numbers_of_other_widths(tmp_path: Path, kind: str):
    """JAX itself takes neither the other order of bytes nor more than eight of them."""
    pair = {name: array.astype(kind) for name, array in PAIR.items()}
    save_archive(tmp_path / "a.npz", pair, {"stored": STORED})
    assert read_model(tmp_path / "a.npz")[0].name == "potts-2x3"


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
        assert read_model(path)[0].digest == MODEL.digest
        return
    assert words in refused(read_model, path)
    refused(load_trajectory, path)


def test_names_that_are_no_text(tmp_path: Path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file[b"\xff\xfe\n\x1b"] = np.ones(3)
    assert "lacks weights" in refused(read_model, tmp_path / "a.h5")
    assert "a training of rbms holds" in refused(load_trajectory, tmp_path / "a.h5")


# --- MATLAB and safetensors ----------------------------------------------------------------------


def test_matlab_variables_that_are_no_numbers_are_left(tmp_path: Path):
    others = {"cell": np.array([[1, "a"]], object), "struct": {"a": 1}, "text": "hello"}
    savemat(tmp_path / "a.mat", {**ARRAYS, **others})
    assert read_model(tmp_path / "a.mat")[0].digest == MODEL.digest


@pytest.mark.parametrize("version", ["4", "5"])
def test_matlab_declares_more_than_it_holds(tmp_path: Path, version: str):
    path = tmp_path / "a.mat"
    savemat(path, {"vishid": np.ones((3, 7))}, format=version)
    sizes = np.array([3, 7], "<u4").tobytes()
    for change in ([2**31 - 1, 2**31 - 1], [2**16, 2**10], [3, 2**20]):
        path.write_bytes(path.read_bytes().replace(sizes, np.array(change, "<u4").tobytes()))
        assert "a.mat" in refused(read_model, path)
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
            assert "a.mat" in refused(read_model, path)  # it lacks the biases at the least


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
    assert "a.safetensors" in refused(read_model, path)
    path.write_bytes((99_999_999).to_bytes(8, "little") + header)
    assert "its header has 99999999 bytes" in refused(read_model, path)


def test_safetensors_of_other_kinds(tmp_path: Path):
    save_file({**ARRAYS, "flags": np.zeros(0, bool)}, tmp_path / "a.safetensors")
    assert read_model(tmp_path / "a.safetensors")[0].digest == MODEL.digest
