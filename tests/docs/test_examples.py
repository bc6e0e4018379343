"""What is public has an example in its docstring, and the examples are true."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import annealz

# Of these every public method and property is shown, in its own docstring or in that of the class.
CLASSES = (
    "BayesFactor",
    "Conservative",
    "Estimate",
    "Exchange",
    "ExchangeEstimate",
    "Likelihood",
    "ModelTable",
    "NestedEstimate",
    "Posterior",
    "Run",
    "Schedule",
    "Status",
    "Terrain",
    "TwoSided",
)
MAKERS = {  # what users never call by its name, and what makes it
    "BayesFactor": "annealz.log_bayes_factor(",
    "ColourGibbs": ".kernel()",
    "Conservative": "annealz.conservative_log_z",
    "Entropy": ".entropy()",
    "Estimate": "annealz.estimate_log_z",
    "Exchange": "annealz.exchange(",
    "ExchangeEstimate": "annealz.exchange_log_z(",
    "Likelihood": "annealz.log_likelihood",
    "ModelTable": "annealz.compare_models(",
    "NestedEstimate": "annealz.nested_log_z(",
    "Posterior": "estimate.posterior",
    "Progress": "on_progress=",
    "Run": "annealz.anneal",
    "TwoSided": "two_sided=True",
}
NAMES = [name for name in annealz.__all__ if name != "__version__"]


def members(cls: type) -> dict[str, object]:
    """The public methods and properties that a class defines, or has of a parent in annealz."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("annealz")]
    kinds = (property, classmethod, staticmethod)
    return {
        name: value
        for base in reversed(ours)
        for name, value in vars(base).items()
        if name[0] != "_" and (isinstance(value, kinds) or inspect.isfunction(value))
    }


def docstrings() -> dict[str, str]:
    found = {name: inspect.getdoc(getattr(annealz, name)) or "" for name in NAMES}
    for name in CLASSES:
        for member, value in members(getattr(annealz, name)).items():
            found[f"{name}.{member}"] = inspect.getdoc(value) or ""
    return found


def code(text: str) -> str:
    return "".join(example.source for example in doctest.DocTestParser().get_examples(text))


DOCSTRINGS = docstrings()


@pytest.mark.parametrize("name", [name for name, text in DOCSTRINGS.items() if ">>>" in text])
def test_an_example_is_true(name: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(DOCSTRINGS[name], {}, name, None, 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example_that_shows_it(name: str):
    shown = code(DOCSTRINGS[name])
    assert shown, f"annealz.{name} has no example."
    assert MAKERS.get(name, f"annealz.{name}") in shown, f"its example does not show {name}."


@pytest.mark.parametrize("name", CLASSES)
def test_every_member_is_documented_and_shown(name: str):
    own = code(DOCSTRINGS[name])
    for member in members(getattr(annealz, name)):
        text = DOCSTRINGS[f"{name}.{member}"]
        assert text, f"{name}.{member} has no docstring."
        assert re.search(rf"\.{member}\b", own + code(text)), f"no example shows {name}.{member}."


def test_a_wrong_example_is_seen(tmp_path: Path, monkeypatch):
    """The runner is not deaf."""
    monkeypatch.setitem(DOCSTRINGS, "wrong", ">>> 1 + 1\n3\n")
    with pytest.raises(AssertionError, match="Expected"):
        test_an_example_is_true("wrong", tmp_path, monkeypatch)
