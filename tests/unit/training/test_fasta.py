"""Sequences in FASTA: what is read, and the sentence that refuses everything else."""

from pathlib import Path

import numpy as np
import pytest

from annealz.models.formats.adabmdca import ALPHABETS
from annealz.training.data import is_fasta, read_fasta
from support.hostile import refused


def write(folder: Path, text: str | bytes, name: str = "s.fasta") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        ">one with words\nAC-\nGU\n>two\n-ACGU\n",
        ">one\r\nAC-GU\r\n\r\n>two words\r\n-ACGU\r\n",
        "\ufeff>one\nAC-GU\n>two\n -ACGU \n\n",
    ],
)
def test_records_of_one_or_more_lines(tmp_path: Path, text: str):
    found = read_fasta(write(tmp_path, text), 5)
    assert found.names == ("one", "two")
    np.testing.assert_array_equal(found.rows, [[1, 2, 0, 3, 4], [0, 1, 2, 3, 4]])


def test_alphabets_by_the_number_of_states(tmp_path: Path):
    assert [len(letters) for letters in ALPHABETS.values()] == [21, 5, 5]
    protein = read_fasta(write(tmp_path, f">all\n{ALPHABETS['protein']}\n"), 21)
    np.testing.assert_array_equal(protein.rows, [np.arange(21)])
    assert read_fasta(write(tmp_path, ">a\nACGT\n"), 5).alphabet == "-ACGT"
    assert read_fasta(write(tmp_path, ">a\nACG-\n"), 5).alphabet == "-ACGU"
    assert read_fasta(write(tmp_path, ">a\nACG-\n"), 5, "dna").alphabet == "-ACGT"
    own = read_fasta(write(tmp_path, ">a\nHPPh\n"), 3, "HPh")
    np.testing.assert_array_equal(own.rows, [[0, 1, 1, 2]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (">a\nACG\n>b\nAXG\n", "has the letter 'X' at place 2 of 'b', which is not one of -ACGU"),
        (">a\nACU\n>b\nACT\n", "has the letter 'T' at place 3 of 'b'"),
        (">a\nA CG\n", "has the letter ' ' at place 2 of 'a'"),
        (">a\nACG*\n", "has the letter '*' at place 4"),
        (">a\nACgG\n", "sed '/^>/!s/[a-z.]//g'"),
        (">a\nAC.G\n", "are insertions, as in A3M files"),
        (
            ">a\nACG\n>b\nAC\n",
            "must hold aligned sequences of one length, got 2 letters in 'b' and 3",
        ),
        (">a\nACG\n>b\n", "truncated or damaged: the record 'b' has no letters"),
        (">a\nACG\n>\n\n>c\nACG\n", "the record 'record 2' has no letters"),
        ("ACG\n>b\nACG\n", "is not a FASTA file: its first line must begin with >"),
        ("", "is empty"),
        (" \n\n", "is empty"),
        (b"\x93NUMPY\x01\x00", "is not a FASTA file"),
        (b">a\nAC\xff\x00\n", "at place 3 of 'a'"),
        (b"\x1f\x8b\x08\x00", "is compressed: unpack it first"),
        (b">\x1b[31mred\nAXG\n", "of '\\x1b[31mred'"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str | bytes, words: str):
    assert words in refused(lambda path: read_fasta(path, 5), write(tmp_path, text))


@pytest.mark.parametrize(
    ("alphabet", "words"),
    [
        (None, "the model has 3 states per unit, so give their letters in order"),
        ("rna", "must have a letter for each of the model's 3 states, got 5: -ACGU"),
        ("AAB", "letters that differ, got 'AAB'"),
        ("AB ", "neither blanks nor >"),
        ("ABé", "letters that differ"),
    ],
)
def test_alphabets_that_do_not_fit(tmp_path: Path, alphabet: str | None, words: str):
    with pytest.raises(ValueError, match="alphabet") as error:
        read_fasta(write(tmp_path, ">a\nAAB\n"), 3, alphabet)
    assert words in str(error.value)


def test_large_files_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("annealz.io.reading.available_memory", lambda: 2000)
    path = write(tmp_path, ">a\n" + "A" * 300)
    assert "half of the free memory is 1,000 bytes" in refused(
        lambda path: read_fasta(path, 5), path
    )


def test_fasta_is_known_by_its_ending_or_first_byte(tmp_path: Path):
    assert is_fasta(tmp_path / "missing.fa")
    assert is_fasta(tmp_path / "missing.fasta.gz")
    assert is_fasta(write(tmp_path, ">a\nACG\n", "s.txt"))
    assert not is_fasta(write(tmp_path, "ACG\n", "s.txt"))
    assert not is_fasta(tmp_path / "rows.npy")
