"""Schedules: strictly increasing from 0 to 1, exact on disk, refused where they are not."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from annealz.schedules.choose import DEFAULT_NUM_STEPS, choose_schedule
from annealz.schedules.rules import linear, sm08
from annealz.schedules.schedule import Schedule

ANY_K = st.integers(1, 30_000)
CURVED = np.linspace(0, 1, 8) ** 1.7


# --- rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "sm08"])
@given(num_steps=ANY_K)
@example(1)
@example(2)
@example(3)
@example(29)
@example(100_000)
def test_rules_go_strictly_from_0_to_1(name: str, num_steps: int):
    schedule = choose_schedule(name, num_steps)
    assert schedule.num_steps == num_steps
    assert schedule.name == name
    assert schedule.betas[0] == 0
    assert schedule.betas[-1] == 1
    assert (np.diff(schedule.betas) > 0).all()
    assert (np.diff(schedule.betas.astype(np.float32)) > 0).all()  # what the engine anneals


@given(ANY_K)
def test_linear_has_equal_steps(num_steps: int):
    np.testing.assert_allclose(linear(num_steps).betas, np.arange(num_steps + 1) / num_steps)


def test_sm08_is_the_published_schedule():
    """Bit for bit at K = 14,500: numbers of the paper depend on it."""
    published = np.concatenate(
        [np.linspace(0, 0.5, 501), np.linspace(0.5, 0.9, 4001)[1:], np.linspace(0.9, 1, 10001)[1:]]
    )
    np.testing.assert_array_equal(sm08(14_500).betas, published)


@pytest.mark.parametrize("factor", [2, 3])
def test_sm08_keeps_its_proportions(factor: int):
    betas = sm08(14_500 * factor).betas
    for count, until in ((500, 0.5), (4500, 0.9), (14_500, 1.0)):
        assert betas[count * factor] == until
    tenth = sm08(1450).betas
    assert (tenth[50], tenth[450]) == (0.5, 0.9)


def test_sm08_with_few_steps_has_no_empty_segment():
    np.testing.assert_array_equal(sm08(1).betas, [0, 1])
    assert 0.9 in sm08(3).betas
    np.testing.assert_array_equal(sm08(29).betas[[1, 9]], [0.5, 0.9])


# --- the type --------------------------------------------------------------------------------


def test_betas_are_a_frozen_copy():
    mine = CURVED.copy()
    schedule = Schedule(mine)
    mine[3] = 0.0
    np.testing.assert_array_equal(schedule.betas, CURVED)
    with pytest.raises(ValueError, match="read-only"):
        schedule.betas[3] = 0.5


def test_equality_is_that_of_the_betas():
    assert Schedule(CURVED, "a") == Schedule(CURVED, "b", {"x": 1})
    assert hash(Schedule(CURVED, "a")) == hash(Schedule(CURVED, "b"))
    moved = CURVED.copy()
    moved[3] = np.nextafter(moved[3], 1)
    assert Schedule(moved) != Schedule(CURVED)
    assert Schedule(moved).digest != Schedule(CURVED).digest
    assert Schedule(CURVED) != "linear"


def test_integers_are_betas():
    assert Schedule(np.array([0, 1])).betas.dtype == np.float64


REFUSED = [
    ([0.0], r"at least 0 and 1, got shape \(1,\)"),
    ([], "at least 0 and 1"),
    (0.5, r"shape \(\)"),
    ([[0.0, 1.0]], r"shape \(1, 2\)"),
    ([0.0, 0.9], "start at 0 and end at 1, got .* an end of 0.9"),
    ([0.1, 1.0], "start at 0 and end at 1, got a start of 0.1"),
    ([0.0, 0.5, 1.0 + 1e-15], "start at 0 and end at 1, got .* an end of 1"),
    ([1.0, 0.0], "start at 0"),
    ([0.0, 0.5, 0.5, 1.0], "increase strictly, got 0.5 then 0.5 at positions 1 and 2"),
    ([0.0, 0.7, 0.3, 1.0], "increase strictly, got .* at positions 1 and 2"),
    ([0.0, np.nan, 1.0], "finite, got nan at position 1"),
    ([0.0, 1.0, np.inf], "finite, got inf at position 2"),
    (["0", "1"], "real numbers, got dtype <U1"),
    ([0j, 1 + 0j], "real numbers"),
    ([None, 1], "real numbers"),
    ([False, True], "real numbers"),
]


@pytest.mark.parametrize(("betas", "words"), REFUSED)
def test_other_betas_are_refused(betas, words: str):
    with pytest.raises(ValueError, match=words):
        Schedule(betas)


@given(st.lists(st.floats(0, 1, exclude_min=True, exclude_max=True), max_size=20))
def test_any_vector_is_refused_or_increasing(inner: list[float]):
    betas = np.array([0.0, *inner, 1.0])
    if (np.diff(betas) > 0).all():
        np.testing.assert_array_equal(Schedule(betas).betas, betas)
    else:
        with pytest.raises(ValueError, match="increase strictly"):
            Schedule(betas)


# --- files -----------------------------------------------------------------------------------


@given(st.sets(st.floats(0, 1, exclude_min=True, exclude_max=True), max_size=20))
def test_saved_betas_keep_every_bit(inner: set[float]):
    import tempfile

    schedule = Schedule(np.array([0.0, *sorted(inner), 1.0]), "made", {"from": [1, 2.5]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "betas.json"
        schedule.save(path)
        loaded = Schedule.load(path)
    assert loaded.betas.tobytes() == schedule.betas.tobytes()
    assert (loaded.name, loaded.provenance) == ("made", {"from": [1, 2.5]})


def test_saved_sm08_keeps_every_bit(tmp_path: Path):
    sm08(14_500).save(tmp_path / "s.json")
    assert Schedule.load(tmp_path / "s.json").digest == sm08(14_500).digest


@pytest.mark.parametrize("change", ["beta", "digest"])
def test_an_altered_file_is_refused(tmp_path: Path, change: str):
    path = tmp_path / "s.json"
    Schedule(CURVED).save(path)
    record = json.loads(path.read_text())
    if change == "beta":
        record["betas"][3] = float(np.nextafter(record["betas"][3], 1))
    else:
        record["digest"] = "0" * 64
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"s\.json: it was altered or damaged"):
        Schedule.load(path)


def test_truncated_files_are_refused(tmp_path: Path):
    path = tmp_path / "s.json"
    Schedule(CURVED).save(path)
    text = path.read_text()
    for length in range(0, len(text), 7):
        path.write_text(text[:length])
        with pytest.raises(ValueError, match=r"schedule file .*s\.json"):
            Schedule.load(path)


def write(path: Path, betas: np.ndarray) -> None:
    if path.suffix == ".npy":
        np.save(path, betas)
    elif path.suffix == ".json":
        path.write_text(json.dumps(betas.tolist()))
    else:
        separator = ", " if path.suffix == ".csv" else "\n"
        path.write_text(separator.join(repr(float(beta)) for beta in betas) + "\n")


@pytest.mark.parametrize("suffix", [".npy", ".txt", ".csv", ".json"])
def test_betas_load_from_other_files(tmp_path: Path, suffix: str):
    path = tmp_path / f"mine{suffix}"
    write(path, CURVED)
    loaded = Schedule.load(path)
    assert loaded == Schedule(CURVED)
    assert loaded.name == "mine"
    write(path, CURVED[::-1])
    with pytest.raises(ValueError, match=rf"schedule file .*mine{suffix}: betas must start at 0"):
        Schedule.load(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b"no json"),
        ("a.json", b"3"),
        ("a.json", b'{"format": "other"}'),
        ("a.json", b'["a", "b"]'),
        ("a.json", b"[[0, 1], [1]]"),
        ("a.json", b"[]"),
        ("a.json", b"\xff\xfe\x00"),
        ("a.txt", b"zero one"),
        ("a.txt", b""),
        ("a.txt", b"\xff\xfe"),
        ("a.csv", b"beta\n0\n1\n"),
        ("a.npy", b"\x93NUMPY\x01\x00"),
        ("a.npy", b"hello"),
        ("a.unknown", b"0 1"),
    ],
)
def test_other_content_is_refused_by_name(tmp_path: Path, name: str, content: bytes):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"schedule file .*{name}: ") as caught:
        Schedule.load(tmp_path / name)
    assert str(caught.value).endswith(".")
    assert not str(caught.value).endswith("..")


def test_pickled_betas_are_refused(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.array([0, None], dtype=object))
    with pytest.raises(ValueError, match=r"schedule file .*a\.npy"):
        Schedule.load(tmp_path / "a.npy")


@pytest.mark.parametrize("key", ["betas", "name", "provenance", "digest"])
def test_a_record_without_a_key_is_refused(tmp_path: Path, key: str):
    path = tmp_path / "s.json"
    Schedule(CURVED).save(path)
    record = json.loads(path.read_text())
    del record[key]
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"schedule file .*s\.json: it is neither"):
        Schedule.load(path)


def test_an_empty_npy_file_is_refused(tmp_path: Path):
    (tmp_path / "a.npy").touch()
    with pytest.raises(ValueError, match=r"schedule file .*a\.npy"):
        Schedule.load(tmp_path / "a.npy")


def test_an_npz_called_npy_is_refused(tmp_path: Path):
    np.savez(tmp_path / "a.npz", betas=CURVED)
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"schedule file .*a\.npy"):
        Schedule.load(tmp_path / "a.npy")


def test_missing_files_are_named(tmp_path: Path):
    with pytest.raises(ValueError, match=r"none\.json: No such file or directory\.$"):
        Schedule.load(tmp_path / "none.json")


# --- by name ---------------------------------------------------------------------------------


def test_choosing(tmp_path: Path):
    assert choose_schedule("linear") == linear(DEFAULT_NUM_STEPS)
    assert choose_schedule("sm08", 77) == sm08(77)
    mine = Schedule(CURVED)
    assert choose_schedule(mine) is mine
    assert choose_schedule(CURVED) == mine
    assert choose_schedule(CURVED.tolist(), 7) == mine
    mine.save(tmp_path / "mine.json")
    assert choose_schedule(tmp_path / "mine.json") == mine
    assert choose_schedule(str(tmp_path / "mine.json"), 7) == mine


@pytest.mark.parametrize(
    ("schedule", "num_steps", "words"),
    [
        ("cubic", None, "unknown schedule 'cubic': choose one of linear, sm08, or give a file"),
        ("linear", 0, "num_steps must be .*1.*, got 0"),
        ("linear", -3, "num_steps must be .*1.*, got -3"),
        (CURVED, 8, "num_steps is 8, but the given schedule has 7 steps: leave num_steps out"),
        ([0.0, 0.5], None, "start at 0 and end at 1"),
    ],
)
def test_choosing_refuses(schedule, num_steps, words: str):
    with pytest.raises(ValueError, match=words):
        choose_schedule(schedule, num_steps)
