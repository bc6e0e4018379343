"""Pages, messages, helps, docstrings and comments use the words of the field."""

import re
from pathlib import Path

import pytest

from support.places import ROOT
from support.prose import passages

PER = (
    r"chain|example|step|row|unit|run|second|block|sweep|epoch|process|draw|worker|update"
    r"|replicate|ensemble|program|device|core|pair|knot|seed|cell|element|GPU|node|minibatch|message"
)
COUNTED = (
    r"one|two|three|ten|\d+|nats?|bits?|bytes?|numbers?|floats?|seconds?|minutes?|kB|MB|GB"
    r"|ms|µs|s|sweeps?|steps?|keys?|words?|evaluations?|gradients?|rows?|lines?|files?|chains?|blocks?"
    r"|units?|updates?|draws?|values?|replicas|divisions?|products?|multiplications?|swaps?"
)
IS_NO_USUAL = (
    r"longer|more|less|fewer|better|worse|larger|smaller|greater|slower|faster|wider|narrower|other"
    r"|one|such"
)

# (what must not be written, examples that the pattern has to find, what to write instead)
WORDS = [
    (r"foretold|foretell\w*", "the foretold error; it foretells", "predicted"),
    (r"told|tells?|telling", "the run tells it; it was told", "reported, reports"),
    (
        r"caught(?=[^.;]*\b(chain|mode|run)s?\b)|\b(chain|mode|run|walker)s?\b[^.;]*\bcaught",
        "chains are caught in a mode",
        "trapped",
    ),
    (r"crews?|teams?|leader(s|'s)?", "a crew; a team; the leader's share", "workers"),
    (
        r"(a|the|each|its|no|every|long|short|own|two|eight|even|by|within) stays?|stays? of|makes stays",
        "a stay at β = 1; a tail of two stays",
        "a run at fixed β",
    ),
    (r"climb\w*", "the climb of the kernel", "adaptation"),
    (r"rungs?", "each rung tunes", "temperature"),
    (r"dwell\w*|dwelt", "the dwell of a schedule", "time density"),
    (
        rf"({COUNTED}) an? ({PER})",
        "one a chain; nats an example; 16 bytes a chain; seconds a run",
        "per chain, per example",
    ),
    (r"judg\w+", "the judgement of a run; it judges", "diagnose, diagnosis"),
    (r"but for", "all but for one", "except"),
    (
        r"(make|makes|made|making) (it|them|one|this) again",
        "make it again; the command that makes it again",
        "reproduce",
    ),
    (r"(go|goes|going|gone|went) on with", "go on with it; it goes on with that", "resume with"),
    (
        rf"(?<!there )(is|are|was|were) no (?!({IS_NO_USUAL})\b)(?=[a-z])|(or|^) no \w+ file",
        "x.npz is no npz file; damaged or no npz file",
        "is not an npz file",
    ),
    (r"names? nothing|named nothing", "the name names nothing", "not found"),
    (r"in the places? of", "in the place of a run", "instead of"),
    (r"anew", "run anew", "again"),
    (r"where not given", "where not given, 0", "default"),
    (r"dearer|dearest", "it is dearer", "costs more"),
    (r"deal(s|t|ing)? out", "dealt out to devices", "distributed"),
    (r"astray", "goes astray", "loses its weight"),
    (r"enclosed by", "enclosed by both", "bounds"),
    (r"forward alone", "forward alone", "forward estimate"),
    (r"(may|can|might) be a lower bound", "it may be a lower bound", "may be underestimated"),
    (
        r"seconds allowed",
        "the 1 seconds allowed 63 of 1000 chains",
        "time limit of 1 s reached after 63 of 1000 chains",
    ),
    (r"what can be made", "what can be made", "available targets"),
    (r"pulls? at the weights?", "pull at the weights; it pulls at the weights", "L2 weight decay"),
    (r"looks? from below", "look from below too", "also compute a lower bound"),
    (
        r"whosever|whose every|none where none",
        "None where none is; whose every block is; whosever these are",
        "a sentence read once",
    ),
]
PATTERNS = [re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE) for pattern, _, _ in WORDS]

PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "mkdocs.yml",
    "Makefile",
    "docs/**/*.md",
    "docs/**/*.py",
    "docs/tutorials/*.ipynb",
    "examples/**/*.py",
    "studies/**/*.md",
    "studies/**/*.py",
    "papers/**/*.md",
    "papers/**/*.py",
    "benchmarks/*.py",
]


def _sources() -> list[Path]:
    package = ROOT / "src" / "annealz"
    return sorted(package.rglob("*.py"))


def _pages() -> list[Path]:
    return sorted({path for page in PAGES for path in ROOT.glob(page)})


def _found(path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: '{match[0]}' (write: {instead}) in …"
        f"{text[max(0, match.start() - 60) : match.end() + 60]}…"
        for line, text in passages(path)
        for pattern, (_, _, instead) in zip(PATTERNS, WORDS, strict=True)
        for match in pattern.finditer(text)
    ]


@pytest.mark.parametrize("number", range(len(WORDS)))
def test_patterns_find_their_example(number):
    for example in WORDS[number][1].split("; "):
        assert PATTERNS[number].search(example), example


def test_strings_and_comments_are_read_and_names_are_not(tmp_path):
    path = tmp_path / "code.py"
    path.write_text(
        '"""Ran anew; `anew` is a name."""\n'
        "anew = 1  # run anew\n"
        'print(f"{anew} was run "\n      "anew", "anew")\n'
    )
    assert [text.count("anew") for _, text in passages(path)] == [1, 1, 1]


def test_of_code_on_a_page_comments_and_output_are_read(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(
        "Run\nanew: `anew`, [a link](anew.md).\n\n```console\n$ anew  # anew\n```\n\n"
        "```text\nanew\n```\n"
    )
    assert sum(text.count("anew") for _, text in passages(path)) == 3


def test_sources_use_plain_words():
    assert not (found := [line for path in _sources() for line in _found(path)]), "\n".join(found)


def test_pages_use_plain_words():
    assert not (found := [line for path in _pages() for line in _found(path)]), "\n".join(found)
