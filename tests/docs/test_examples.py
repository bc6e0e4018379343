"""What is public has an example in its docstring, and the examples are true."""

import doctest
import inspect
from pathlib import Path

import pytest

import annealz

MAKERS = {  # what users never call by its name, and what makes it
    "BayesFactor": "annealz.log_bayes_factor(",
    "ColourGibbs": ".kernel()",
    "Conservative": "annealz.conservative_log_z",
    "Entropy": ".entropy()",
    "Estimate": "annealz.estimate_log_z",
    "Exchange": "annealz.exchange(",
    "ExchangeEstimate": 'method="exchange"',
    "Likelihood": "annealz.log_likelihood",
    "ModelTable": "annealz.compare_models(",
    "NestedEstimate": 'method="nested"',
    "Posterior": "estimate.posterior",
    "Progress": "on_progress=",
    "Run": "annealz.anneal",
    "TwoSided": "two_sided=True",
}
NAMES = [name for name in annealz.__all__ if name != "__version__"]


def docstrings() -> dict[str, str]:
    return {name: inspect.getdoc(getattr(annealz, name)) or "" for name in NAMES}


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


def test_a_wrong_example_is_seen(tmp_path: Path, monkeypatch):
    """The runner is not deaf."""
    monkeypatch.setitem(DOCSTRINGS, "wrong", ">>> 1 + 1\n3\n")
    with pytest.raises(AssertionError, match="Expected"):
        test_an_example_is_true("wrong", tmp_path, monkeypatch)
