"""Every message that a judgement can give: its words, its remedy, its line in the docs."""

import re
from pathlib import Path

import pytest

from annealz.status import Message, Status, status_of

ERRORS = (Path(__file__).parents[1] / "docs" / "errors.md").read_text()
kinds = pytest.mark.parametrize("kind", Message, ids=lambda kind: kind.name)


def test_values_are_those_of_the_json():
    assert [status.value for status in Status] == ["ok", "unreliable"]


@kinds
def test_one_fatal_finding_makes_an_estimate_unreliable(kind):
    assert status_of({kind: "…"}) is (Status.UNRELIABLE if kind.is_fatal else Status.OK)
    assert status_of({}) is Status.OK


@kinds
def test_a_message_is_one_sentence(kind):
    names = {name.split(":")[0] for name in re.findall(r"\{(.*?)\}", kind.words + kind.remedy)}
    said = kind.say(**dict.fromkeys(names, 9))
    assert said.endswith(".")
    assert not said.endswith((";.", "; .", ".."))
    assert kind.remedy in said or "{" in kind.remedy
    assert "{" not in said


@kinds
def test_a_message_is_in_the_docs(kind):
    assert re.split(r":|\(|\{|,", kind.words)[0].strip() in ERRORS
