"""Every kind of finding and every remedy in every medium: Python, command line, page and docs."""

import dataclasses
import inspect
import re
from typing import Any

import pytest
import typer

import annealz
from annealz.cli.main import app
from annealz.core.names import METHODS
from annealz.diagnostics.findings import (
    Advice,
    Finding,
    Kind,
    Note,
    Remedy,
    Writer,
    in_options,
    in_python,
    option_of,
)
from annealz.diagnostics.sheet import Result, Sheet
from annealz.views.report import render_report
from support.places import ROOT

ERRORS = (ROOT / "docs" / "errors.md").read_text()
MEDIA: dict[str, Writer] = {"Python": in_python, "command line": in_options}
TEXTS = {"why": "too few", "side": "forward", "base": "uniform", "name": "rates"}
REMEDIES = {  # every setting that a remedy can name, with the words in both media
    "exact": (Remedy(exact=True), "annealz.exact_log_z", "--exact"),
    "data": (Remedy(data=True), "data=DATA", "--data DATA"),
    "base": (Remedy(base="fitted"), 'base="fitted"', "--base fitted"),
    "method": (Remedy(method="exchange"), 'method="exchange"', "--method exchange"),
    "num_steps": (Remedy(num_steps=40_000), "num_steps=40000", "--steps 40000"),
    "num_chains": (Remedy(num_chains=100), "num_chains=100", "--chains 100"),
    "num_live": (Remedy(num_live=1000), "num_live=1000", "--live 1000"),
    "num_inner_steps": (Remedy(num_inner_steps=60), "num_inner_steps=60", "--inner-steps 60"),
    "target_std_err": (
        Remedy(target_std_err=0.12),
        "target_std_err=0.12",
        "--target-std-err 0.12",
    ),
    "max_seconds": (Remedy(max_seconds=60), "max_seconds=60", "--max-seconds 60"),
    "conservative": (Remedy(conservative=True), "conservative=True", "--conservative"),
    "map": (
        Remedy(map="visible_means=m"),
        'annealz.load_model(file, map="visible_means=m")',
        "--map visible_means=m",
    ),
}
FUNCTIONS = {  # that take a setting which `estimate_log_z` does not take
    "conservative": annealz.log_likelihood,
    "map": annealz.load_model,
}
kinds = pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
settings = pytest.mark.parametrize("name", REMEDIES)
media = pytest.mark.parametrize("write", MEDIA.values(), ids=MEDIA)


def finding_of(kind: Kind, remedy: Remedy | None = None) -> Finding:
    """With some numbers."""
    return Finding.of(kind, remedy, **{name: TEXTS.get(name, 9) for name in kind.names})


def options_of(command: str) -> set[str]:
    """The options that the --help of a command lists."""
    group: Any = typer.main.get_command(app)
    return {option for parameter in group.commands[command].params for option in parameter.opts}


class Noted(Result):
    """A result of which there is something to know."""

    def __init__(self, *notes: Note):
        self._notes = notes

    def sheet(self) -> Sheet:
        return Sheet(name="Noted", headline=("number", "1"), notes=self._notes)


def items_of(*notes: Note) -> list[str]:
    """The list of a page."""
    return re.findall(r"<li>(.*?)</li>", render_report(Noted(*notes)))


# --- findings --------------------------------------------------------------------------------


@kinds
@media
def test_a_finding_is_one_sentence(kind: Kind, write: Writer):
    for remedy in (None, Remedy(num_steps=400, words="or more chains")):
        found = finding_of(kind, remedy)
        said = found.in_words(write)
        assert said.startswith(found.what)
        assert said.endswith(f"{found.what_to_do(write)}.")
        assert not re.search(r"[{}]|; ?\.|\.\.$|  ", said)


@kinds
def test_the_page_shows_what_to_do_apart(kind: Kind):
    found = finding_of(kind)
    to_do = found.what_to_do(in_options)
    bold = re.findall(r"<strong>(.*?)</strong>", items_of(found)[0])
    assert bold == ([f"{to_do}."] if to_do else [])
    assert to_do or found.remedy is None


@kinds
def test_a_finding_lacks_no_number(kind: Kind):
    numbers = dict.fromkeys(kind.names, 9)
    for wrong in ({**numbers, "other": 1}, dict.fromkeys([*kind.names][1:], 9)):
        if wrong != numbers:
            with pytest.raises(ValueError, match=f"{kind.name} has the numbers"):
                Finding(kind, wrong)


@kinds
def test_a_kind_is_in_the_docs(kind: Kind):
    assert re.split(r":|\(|\{|,", kind.words)[0].strip() in ERRORS


@kinds
def test_settings_stand_in_remedies_and_not_in_words(kind: Kind):
    """So that each medium writes them in its own way."""
    words = f"{kind.words} {kind.remedy.words if kind.remedy else ''}"
    assert not re.search(r"--\w|\bnum_|annealz\.", words)


# --- remedies --------------------------------------------------------------------------------


def test_every_setting_of_a_remedy_is_listed_here():
    assert [*REMEDIES] == [f.name for f in dataclasses.fields(Remedy) if f.name != "words"]


@settings
def test_a_remedy_in_both_media(name: str):
    remedy, python, options = REMEDIES[name]
    assert [*remedy.settings] == [name]
    assert (remedy.in_words(in_python), remedy.in_words(in_options)) == (python, options)
    found = finding_of(Kind.MISSED_TARGET, remedy)
    assert found.in_words(in_python).endswith(f"; try {python}.")
    assert found.in_words(in_options).endswith(f"; try {options}.")


@settings
def test_an_option_and_an_argument_that_are_advised_exist(name: str):
    command = "likelihood" if name == "conservative" else "estimate"
    assert option_of(name) in options_of(command)
    if name != "exact":
        function = FUNCTIONS.get(name, annealz.estimate_log_z)
        assert name in inspect.signature(function).parameters


@pytest.mark.parametrize("method", METHODS[1:])
def test_every_method_can_be_advised(method: str):
    remedy = Remedy(method=method)
    assert remedy.in_words(in_python) == f'method="{method}"'
    assert remedy.in_words(in_options) == f"--method {method}"


def test_data_must_come_from_the_user():
    assert {name for name, (remedy, *_) in REMEDIES.items() if not remedy.is_ready} == {"data"}
    assert not Remedy(words="more time would narrow the error").is_ready


def test_words_follow_the_settings():
    remedy = Remedy(base="fitted", words="a base found by pilots")
    assert remedy.in_words(in_options) == "--base fitted, a base found by pilots"
    assert Remedy(words="use the exact value").in_words(in_options) == "use the exact value"


def test_advice_is_bold_on_a_page_and_text_is_not():
    advice = Advice((Remedy(num_steps=400), Remedy(exact=True)))
    assert items_of(advice, "a < b; c") == [
        "<strong>to do better: --steps 400, or --exact.</strong>",
        "a &lt; b; c",
    ]
