"""Texts that were made once are read by the next process, and made again where they cannot be."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from annealz.core import compilation_cache as module
from annealz.core.compilation_cache import kept_text


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("ANNEALZ_PROGRAMS", raising=False)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "programs"))
    return tmp_path / "programs" / "kind"


class Maker:
    """Makes texts, and counts them."""

    def __init__(self, text: str = "// what ü made\nof it"):
        self.text, self.count = text, 0

    def __call__(self) -> str:
        self.count += 1
        return self.text


def test_made_once(folder: Path):
    make = Maker()
    assert [kept_text("kind", ("a", "b"), make) for _ in range(3)] == 3 * [make.text]
    assert make.count == 1
    assert len(list(folder.iterdir())) == 1


def test_by_all_that_it_is_made_of(folder: Path):
    make = Maker()
    for of in (("a", "b"), ("ab",), ("a", "b", ""), ("b", "a")):
        kept_text("kind", of, make)
    kept_text("other", ("a", "b"), make)
    assert make.count == 5


@pytest.mark.parametrize("damage", [b"", b"no digest", b"\xff\xfe", None], ids=str)
def test_what_was_damaged_is_made_again(folder: Path, damage: bytes | None):
    make = Maker()
    kept_text("kind", ("a",), make)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] if damage is None else damage)
    assert kept_text("kind", ("a",), make) == make.text
    assert make.count == 2
    assert file.read_bytes() == whole


def test_nothing_is_kept_where_it_is_not_wanted(folder: Path, monkeypatch: pytest.MonkeyPatch):
    for value in ("", "gs://bucket/programs"):
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", value)
        make = Maker()
        assert [kept_text("kind", ("a",), make) for _ in range(2)] == 2 * [make.text]
        assert make.count == 2
    assert not folder.exists()


def test_nothing_is_kept_where_nothing_can_be_written(folder: Path):
    folder.parent.write_text("a file")
    make = Maker()
    assert kept_text("kind", ("a",), make) == make.text


def test_those_not_used_for_long_are_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_MOST_TEXTS", 3)
    make, files = Maker(), {}
    for i, name in enumerate("abc"):
        kept_text("kind", (name,), make)
        (files[name],) = set(folder.iterdir()) - set(files.values())
        os.utime(files[name], (1000 + i, 1000 + i))
    kept_text("kind", ("a",), make)  # used now
    kept_text("kind", ("d",), make)
    assert [file.exists() for file in files.values()] == [True, False, True]
    assert len(list(folder.iterdir())) == 3


def test_by_several_at_once(folder: Path):
    texts = [f"text {i}\n" * 1000 for i in range(4)]

    def one(i: int) -> bool:
        return kept_text("kind", (str(i % 4),), Maker(texts[i % 4])) == texts[i % 4]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(200)))
    assert len(list(folder.iterdir())) == 4
