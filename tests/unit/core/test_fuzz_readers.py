"""Files of every format, altered at random: a reader returns what it read or says in a line what is wrong.

A case is a function of its number alone: `python tests/test_fuzz_readers.py 1234` runs that one.
"""

import copy
import gzip
import io
import json
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections import Counter
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pytest
from safetensors.numpy import save
from scipy.io import savemat

import annealz
from annealz.engine.run import Run
from annealz.io.archive import load_archive, pack_archive
from annealz.io.records import digest_record, load_record
from annealz.methods.annealing.plan import AnnealingPlan
from annealz.models.formats.load import load_trajectory, read_model
from annealz.models.formats.npz import save_model
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from annealz.testing import random_rbm
from annealz.training.data import read_data
from annealz.training.job import TrainingPlan
from support.places import FIXTURES

QUICK, ALL = 500, 20_000
SCHEDULE = annealz.linear(10)
ODD = [
    *(None, True, False, 0, -1, 1, 2, 2**31, 2**63, 2**64, 10**400, 0.5, -0.0, 1e308),
    *(float("nan"), float("inf"), "", "a", "\n", "\x1b[31m", "\ud800", "x" * 2000, "potts", "rbm"),
    *([], {}, [[]], [1, 2], {"a": 1}, ["a"], [[[[0]]]], {"": None}),
]
TYPES = ["f2", ">f4", "f8", "g", "i1", "u8", "?", "c8", "S3", "U2", "M8[s]", "m8[s]", "V3", "V0"]


# --- seeds -------------------------------------------------------------------------------------


def saved(write) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "file")
        return next(Path(folder).iterdir()).read_bytes()


@cache
def seeds() -> dict:
    """Name of the format: what it is made of."""
    rbm = random_rbm(3, 5, seed=4)
    arrays = {n: np.asarray(getattr(rbm, n)) for n in ("weights", "hidden_bias", "visible_bias")}
    rows = {
        "vishid": arrays["weights"].T,
        "hidbiases": arrays["hidden_bias"],
        "visbiases": arrays["visible_bias"],
    }
    deep = {**rows, "hidpen": np.ones((3, 2), np.float32), "penbiases": np.ones(2, np.float32)}
    full = annealz.Potts(np.zeros((2, 3, 2, 3)), frequencies=np.full((2, 3), 1 / 3))
    pairs = {n: np.asarray(getattr(full, n)) for n in ("couplings", "fields", "frequencies")}
    models = {
        "full potts": full,
        "rbm": rbm,
        "potts": annealz.Potts.square(2, 3, 0.8),
        "ising": annealz.Ising.square(3, 0.3),
        "lattice": annealz.Ising.square(4, 0.3),
        "softmax": annealz.SoftmaxRBM(np.ones((2, 3, 4)), np.zeros(2), np.zeros((3, 4))),
        "gaussian": annealz.GaussianRBM(np.ones((2, 3)), np.zeros(2), np.zeros(3)),
        "dbm": annealz.DBM([np.ones((3, 4)), np.ones((2, 3))], [np.ones(n) for n in (4, 3, 2)]),
    }
    own = {}
    for name, model in models.items():
        record = {"name": name, "exact_log_z": 1.5, "digest": model.digest, "note": {"a": [1]}}
        raw = saved(lambda path, m=model, r=record: save_model(f"{path}.npz", m, r))
        with np.load(io.BytesIO(raw)) as members:
            own[name] = (
                {n: members[n] for n in members.files if n not in ("meta", "checksum")},
                json.loads(members["meta"].tobytes()),
            )
    path = rbm.path(annealz.BernoulliBase.uniform(5))
    run = annealz.anneal(path, annealz.BlockGibbs(), SCHEDULE, num_chains=8)
    betas = np.linspace(0, 1, 5)
    terrain = Terrain(betas, betas, betas + 1, betas + 5, 3, 0.5, {"a": 1}, tau=betas + 1)
    schedule = Schedule(SCHEDULE.betas, "linear", {"a": [1]}, terrain)
    options = {"schedule": "linear", "num_steps": 4, "num_chains": 8, "second_opinion": False}
    plan = annealz.estimate_log_z(rbm, base="uniform", **options).plan.to_dict()
    training = {
        "settings": {"num_hidden": 3, "algorithm": "pcd", "learning_rate": 0.1, "seed": 0},
        "data": {"name": "a", "kind": "file", "path": "a.npy"},
        "data_digest": "c",
        "file": "a.npz",
        "series": None,
        "checkpoint_seconds": 1.0,
    }
    return {
        "own": own,
        "plain": [arrays, rows, deep, pairs],
        "lines": (FIXTURES / "adabmdca-numbers.dat").read_bytes(),
        "run": run.to_arrays(),
        "terrain": (
            {n: getattr(terrain, n) for n in terrain._columns},
            {"kind": "terrain", "sweeps": 3, "seconds": 0.5, "provenance": {}},
        ),
        "schedule": json.loads(saved(schedule.save)),
        "records": [plan, training],
        "trainings": [(FIXTURES / f"rbms-{n}.h5").read_bytes() for n in ("binary", "potts")],
    }


# --- mutations ---------------------------------------------------------------------------------


class Fate:
    """The choices of one case."""

    def __init__(self, number: int):
        self.generator = np.random.default_rng(number)

    def below(self, count: int) -> int:
        return int(self.generator.integers(count)) if count > 0 else 0

    def one(self, things):
        things = list(things)
        return things[self.below(len(things))]

    def maybe(self, chance: float = 0.5) -> bool:
        return self.generator.random() < chance

    def raw(self, content: bytes) -> bytes:
        """Bytes altered: flipped, cut, overwritten, repeated, put in."""
        content = bytearray(content)
        for _ in range(1 + self.below(3)):
            kind, at = self.below(7), self.below(len(content))
            if kind < 2 and content:
                content[at] ^= 1 << self.below(8)
            elif kind == 2:
                del content[at : at + self.below(9) if self.maybe() else None]
            elif kind == 3:
                size = self.one((1, 2, 4, 8))
                extreme = self.one((0, 1, 2**31, 2 ** (8 * size) - 1, 2 ** (8 * size - 1)))
                number = min(extreme, 2 ** (8 * size) - 1)
                content[at : at + size] = number.to_bytes(size, self.one(("little", "big")))
            elif kind == 4:
                content[at:at] = content[at : at + self.below(64)]
            elif kind == 5:
                content[at:at] = self.generator.bytes(self.below(9))
            else:
                content[at : at + self.below(64)] = bytes(self.below(64))
        return bytes(content)

    def array(self, array: np.ndarray) -> np.ndarray:
        """An array of another shape, kind or content."""
        array = np.asarray(array)
        kind = self.below(9)
        if kind == 0 and array.dtype.kind in "fiub":
            return array.astype("f8").astype(self.one(TYPES[:7]))
        if kind == 1:
            return np.zeros(array.shape, self.one(TYPES))
        if kind == 2:
            return array.T
        if kind == 3:
            return array[: self.below(3)] if array.ndim else array.reshape(1)
        if kind == 4:
            return array[None] if self.maybe() else array.ravel()
        if kind == 5:
            return np.zeros(tuple(self.below(4) for _ in range(self.below(5))), array.dtype)
        if kind == 6 and array.size and array.dtype.kind == "f":
            array = array.copy()
            array.flat[self.below(array.size)] = self.one((np.nan, np.inf, -np.inf, 1e38, -1, 0.5))
            return array
        if kind == 7:
            return np.asfortranarray(array)
        return np.array(self.one((3, "text", 1j, b"", [], [[1]], -1.5)))

    def arrays(self, arrays: dict) -> dict:
        """Some arrays altered, left out, renamed or added."""
        arrays = dict(arrays)
        for _ in range(1 + self.below(2)):
            name, kind = self.one([*arrays, "more"]), self.below(5)
            array = arrays.get(name, np.ones(2))
            if kind < 3:
                arrays[name] = self.array(array)
            elif kind == 3:
                arrays.pop(name, None)
            else:
                new = self.one(
                    (*arrays, "meta", "checksum", "x\n", "\x1b", "ä" * 99, "visible_means")
                )
                arrays[new] = array
        return arrays

    def tree(self, value):
        """JSON with one node or more in the place of others."""
        value = copy.deepcopy(value)
        for _ in range(1 + self.below(2)):
            value = self._node(value)
        return value

    def _node(self, value):
        if isinstance(value, dict | list) and value and self.maybe(0.8):
            key = self.one(value if isinstance(value, dict) else range(len(value)))
            kind = self.below(6)
            if kind == 0:
                del value[key]
            elif kind == 1 and isinstance(value, dict):
                new = self.one(("more", "", "name", "family", "stored", str(key) * 2))
                value[new] = copy.deepcopy(self.one(ODD))
            else:
                value[key] = self._node(value[key])
            return value
        return copy.deepcopy(self.one(ODD))

    def text(self, value) -> bytes:
        """JSON of a value, now and then nested beyond reason or with altered bytes."""
        raw = json.dumps(value).encode()
        if self.maybe(0.03):
            return self.one((b"[", b'{"a":', b"[[{},")) * 50_000
        return self.raw(raw) if self.maybe(0.2) else raw


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def altered_npz(fate: Fate, arrays: dict, meta: dict | None) -> bytes:
    """An npz file: altered arrays or record under a right checksum, altered headers, altered bytes."""
    if fate.maybe(0.5):
        arrays = fate.arrays(arrays)
    if meta is not None and fate.maybe(0.6):
        meta = fate.tree(meta)
    reserved = {name: array for name, array in arrays.items() if name not in ("meta", "checksum")}
    if meta is not None and fate.maybe(0.7):
        raw = pack_archive(reserved, meta)
        return fate.raw(raw) if fate.maybe(0.15) else raw
    members = {name: npy(array) for name, array in arrays.items()}
    if meta is not None:
        members["meta"] = npy(np.frombuffer(fate.text(meta), np.uint8))
    if fate.maybe(0.6) and members:
        name = fate.one(members)
        start, end = (members[name][:128], members[name][128:])
        members[name] = fate.raw(start) + end
    buffer = io.BytesIO()
    method = fate.one((0, 0, 8, 8, 8, 12, 14))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(buffer, "w", method) as zipped:
            for name, content in members.items():
                zipped.writestr(f"{name}.npy" if fate.maybe(0.98) else name, content)
                if fate.maybe(0.02):
                    zipped.writestr(f"{name}.npy", content)
    raw = buffer.getvalue()
    return fate.raw(raw) if fate.maybe(0.3) else raw


# --- cases -------------------------------------------------------------------------------------


def own_npz(fate: Fate, path: Path):
    path.write_bytes(altered_npz(fate, *fate.one(seeds()["own"].values())))
    return read_model


def plain_npz(fate: Fate, path: Path):
    meta = fate.one((None, {"name": "a", "exact_log_z": 1}))
    path.write_bytes(altered_npz(fate, fate.one(seeds()["plain"]), meta))
    return fate.one((read_model, read_data))


def run_archive(fate: Fate, path: Path):
    path.write_bytes(altered_npz(fate, *seeds()["run"]))
    return lambda file: Run.from_arrays(*load_archive(file), SCHEDULE)


def terrain_archive(fate: Fate, path: Path):
    path.write_bytes(altered_npz(fate, *seeds()["terrain"]))
    return Terrain.load


def hdf5_training(fate: Fate, path: Path):
    raw = fate.one(seeds()["trainings"])
    path.write_bytes(fate.raw(raw) if fate.maybe() else raw)
    if path.read_bytes() == raw:
        with h5py.File(path, "a") as file:
            for _ in range(1 + fate.below(2)):
                alter_hdf5(fate, file)
    return fate.one((read_model, load_trajectory))


def hdf5_plain(fate: Fate, path: Path):
    with h5py.File(path, "w", userblock_size=fate.one((0, 512))) as file:
        for name, array in fate.one(seeds()["plain"]).items():
            options = fate.one(({}, {"chunks": True}, {"compression": 1}, {"fletcher32": True}))
            file.create_dataset(name, data=array, **options)
        if fate.maybe(0.6):
            alter_hdf5(fate, file)
    raw = path.read_bytes()
    if raw[:8] == bytes(8) and fate.maybe(0.8):
        raw = b"MATLAB 7.3 MAT-file".ljust(512) + raw[512:]
    path.write_bytes(fate.raw(raw) if fate.maybe(0.4) else raw)
    return read_model


def alter_hdf5(fate: Fate, file: h5py.File) -> None:
    names = []
    file.visit(names.append)
    name = fate.one([*names, "update_9/params/hbias", "more"])
    place, _, last = name.rpartition("/")
    if place not in file and place:
        file.create_group(place)
    group = file[place] if place else file
    if not isinstance(group, h5py.Group):
        return
    old = group[last][()] if isinstance(group.get(last), h5py.Dataset) else np.ones(3)
    kind = fate.below(9)
    if last in group:
        del group[last]
    if kind == 0:
        group.create_group(last)
    elif kind == 1:
        group[last] = h5py.SoftLink(fate.one(("/", name, "/nowhere", f"/{place}")))
    elif kind == 2:
        group[last] = h5py.ExternalLink("/dev/zero", "/")
    elif kind == 3:
        shape = tuple(fate.one((0, 1, 10, 10**5, 10**9)) for _ in range(fate.below(4)))
        is_large = np.prod(shape, dtype=float) > 1e6
        group.create_dataset(
            last, shape, "f4", chunks=(1,) * len(shape) if is_large and 0 not in shape else None
        )
    elif kind == 4:
        group.create_dataset(last, (4,), "f4", external=[("/dev/zero", 0, 16)])
    elif kind == 5:
        group[fate.one((b"\xff\xfe", b"a\n", b"\x1b[31m"))] = old
    elif kind == 6:
        group[last] = fate.one(("text", np.bytes_(b"\xff"), 3, h5py.Empty("f4"), [["a"]], True))
    elif kind == 7:
        new = fate.array(np.asarray(old) if np.asarray(old).dtype.kind in "fiub" else np.ones(3))
        if new.dtype.kind in "fiubc":
            group[last] = new


def mat(fate: Fate, path: Path):
    arrays = {n: a for n, a in fate.arrays(fate.one(seeds()["plain"])).items() if n.isidentifier()}
    if fate.maybe(0.2):
        arrays["more"] = fate.one((np.array([[1, "a"]], object), {"a": 1}, "text"))
    arrays = {
        n: a for n, a in arrays.items() if getattr(a, "dtype", np.dtype("f4")).kind in "fiubcUOS"
    }
    buffer, is_packed = io.BytesIO(), fate.maybe()
    version = fate.one("4555")
    try:
        savemat(buffer, arrays, do_compression=is_packed and version == "5", format=version)
    except (TypeError, ValueError, NotImplementedError):  # what the writer cannot write
        savemat(buffer, fate.one(seeds()["plain"]))
        is_packed = False
    raw = buffer.getvalue()
    if is_packed and version == "5" and fate.maybe():
        raw = repacked(fate, raw)
    elif fate.maybe(0.7):
        raw = raw[:128] + fate.raw(raw[128:]) if fate.maybe() else fate.raw(raw)
    path = path.rename(path.with_suffix(".mat")) if path.exists() else path.with_suffix(".mat")
    path.write_bytes(raw)
    return lambda _: read_model(path)


def repacked(fate: Fate, raw: bytes) -> bytes:
    """A compressed file with altered bytes inside of its compression."""
    out, at = raw[:128], 128
    while at + 8 <= len(raw):
        size = int.from_bytes(raw[at + 4 : at + 8], "little")
        content = zlib.decompress(raw[at + 8 : at + 8 + size])
        content = zlib.compress(fate.raw(content) if fate.maybe() else content)
        out += (15).to_bytes(4, "little") + len(content).to_bytes(4, "little") + content
        at += 8 + size
    return out


def safetensors(fate: Fate, path: Path):
    arrays = fate.arrays(fate.one(seeds()["plain"]))
    arrays = {
        n: np.ascontiguousarray(a)
        for n, a in arrays.items()
        if a.dtype.str[1:] in ("f4", "f8", "i1")
    }
    raw = save(arrays)
    size = int.from_bytes(raw[:8], "little")
    header, body = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    kind = fate.below(3)
    if kind == 0:
        text = fate.text(fate.tree(header))
        raw = len(text).to_bytes(8, "little") + text + body
    elif kind == 1:
        raw = fate.raw(raw)
    path.write_bytes(raw)
    return read_model


def adabmdca(fate: Fate, path: Path):
    lines = seeds()["lines"].split(b"\n")
    kind = fate.below(4)
    if kind == 0:
        del lines[fate.below(len(lines))]
    elif kind == 1:
        words = fate.one(lines).split(b" ")
        words[fate.below(len(words))] = str(fate.one(ODD[:15])).encode(errors="replace")
        lines[fate.below(len(lines))] = b" ".join(words)
    elif kind == 2:
        lines[fate.below(len(lines))] = fate.one(lines)
    raw = b"\n".join(lines)
    path = path.with_suffix(".dat")
    path.write_bytes(fate.raw(raw) if fate.maybe() else raw)
    return lambda _: read_model(path)


def schedule(fate: Fate, path: Path):
    kind = fate.below(6)
    if kind == 0:
        content, end = npy(fate.array(SCHEDULE.betas)), ".npy"
        content = fate.raw(content) if fate.maybe() else content
    elif kind == 1:
        words = [str(fate.one((beta, *ODD[:15]))) for beta in SCHEDULE.betas]
        content, end = fate.raw(" ".join(words).encode()), fate.one((".txt", ".csv"))
    elif kind == 2:
        content, end = fate.text(fate.tree(SCHEDULE.betas.tolist())), ".json"
    else:
        content, end = fate.text(fate.tree(seeds()["schedule"])), ".json"
    path = path.with_suffix(end)
    path.write_bytes(content)
    return lambda _: Schedule.load(path)


def record(fate: Fate, path: Path):
    """Under a right digest, as a stranger would write it."""
    is_training = bool(fate.one((False, True)))
    content = fate.tree(seeds()["records"][is_training])
    if isinstance(content, dict):
        content["digest"] = digest_record({k: v for k, v in content.items() if k != "digest"})
    path.write_bytes(fate.text(content))

    kind = TrainingPlan if is_training else AnnealingPlan
    return lambda file: kind.read(load_record(file), file)


def data(fate: Fate, path: Path):
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    raw = bytes([0, 0, 8, 3]) + np.array(pixels.shape, ">u4").tobytes() + pixels.tobytes()
    kind, end = fate.below(4), ""
    if kind == 0:
        raw, end = npy(fate.array(pixels)), ".npy"
    if kind < 2:
        raw = fate.raw(raw)
    elif kind == 2:
        raw = gzip.compress(fate.raw(raw))
    else:
        raw = fate.raw(gzip.compress(raw))
    path = path.with_suffix(end)
    path.write_bytes(raw)
    return lambda _: read_data(path)


CASES = [
    *(own_npz, own_npz, plain_npz, run_archive, terrain_archive, hdf5_training, hdf5_plain),
    *(mat, safetensors, adabmdca, schedule, schedule, record, data),
]


def run_case(number: int, folder: Path) -> tuple[str, str]:
    """(format, outcome): read, refused, or what went wrong."""
    fate = Fate(number)
    make = fate.one(CASES)
    path = folder / f"case{number}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = make(fate, path)
    start = time.monotonic()
    try:
        read(path)
        outcome = "read"
    except ValueError as error:
        text = str(error)
        outcome = "refused" if text.isprintable() and 0 < len(text) < 5000 else f"says {text!r}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        outcome = f"{type(error).__name__}: {error}"
    if time.monotonic() - start > 10:
        outcome = f"took {time.monotonic() - start:.0f} s"
    for left in folder.glob(f"case{number}*"):
        left.unlink()
    return make.__name__, outcome


def run_cases(numbers, folder: Path) -> Counter:
    seeds()
    counts, wrong = Counter(), []
    for number in numbers:
        name, outcome = run_case(number, folder)
        if outcome not in ("read", "refused"):
            wrong.append(f"case {number} ({name}): {outcome}")
        counts[name, outcome if outcome in ("read", "refused") else "wrong"] += 1
    assert not wrong, "\n".join([f"{len(wrong)} cases", *wrong[:40]])
    return counts


def test_altered_files_are_read_or_refused(tmp_path: Path):
    counts = run_cases(range(QUICK), tmp_path)
    assert {name for name, _ in counts} == {case.__name__ for case in CASES}
    assert sum(count for (_, outcome), count in counts.items() if outcome == "read") > QUICK / 20


@pytest.mark.slow
def test_many_altered_files_are_read_or_refused(tmp_path: Path):
    counts = run_cases(range(QUICK, ALL), tmp_path)
    assert sum(counts.values()) == ALL - QUICK


def main() -> None:
    """The cases of these numbers, or of a range `0:20000`, with their outcomes."""
    import faulthandler
    import resource

    faulthandler.enable()
    warnings.simplefilter("error")
    first, _, last = sys.argv[1].partition(":")
    numbers = range(int(first), int(last or int(first) + 1))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        seeds()
        counts = Counter()
        for number in numbers:
            if len(numbers) > 100:
                Path(sys.argv[2]).write_text(str(number))
            name, outcome = run_case(number, Path(folder))
            counts[name, outcome if outcome in ("read", "refused") else "wrong"] += 1
            if outcome not in ("read", "refused"):
                print(f"case {number} ({name}): {outcome[:300]}", flush=True)
    for key, count in sorted(counts.items()):
        print(*key, count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(numbers)} cases, {time.monotonic() - start:.1f} s, peak {peak:.0f} MiB")


if __name__ == "__main__":
    main()
