"""Sentences of the library in the words of the command line."""

import pytest

from annealz.cli.main import _option_names
from annealz.cli.spoken import in_words_of_options


@pytest.mark.parametrize(
    ("python", "command_line"),
    [
        ("num_live must be at least 2, got 1.", "--live must be at least 2, got 1."),
        ("or a larger num_live.", "or a larger --live."),
        ("give two_sided=True with them.", "give --two-sided with them."),
        ("try num_steps=400.", "try --steps 400."),
        ("or give base=, a GaussianBase", "or give --base, a GaussianBase"),
        ("max_evaluations must be a whole number", "--max-evaluations must be a whole number"),
    ],
)  # fmt: skip
def test_arguments_become_options(python, command_line):
    assert in_words_of_options(python, _option_names()) == command_line


@pytest.mark.parametrize(
    "sentence",
    [
        "no such file: num_steps.npz.",
        "it holds 'num_steps', runs/max_seconds and base.",
        "make the model by annealz.from_prior or hidden_bias.",
    ],
)
def test_other_words_stay(sentence):
    assert in_words_of_options(sentence, _option_names()) == sentence
