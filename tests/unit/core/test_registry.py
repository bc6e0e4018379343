"""The registries: annealz's own names, what other packages declare, and what is refused."""

import sys
from pathlib import Path

import pytest

import annealz
from annealz.io.formats import FORMATS
from annealz.io.registry import resolve
from annealz.io.schedules import SCHEDULES, described, has_pilot
from annealz.models.formats.load import read_model
from annealz.schedules.choose import make_schedule
from support.packages import PLUGIN, write_package

OWN = (
    "mixing", "linear", "sm08", "gms13", "varopt", "varopt-0.009", "varopt-0.006", "varopt-0.003",
    "varopt-fixed-point",
)  # fmt: skip
WRONG = {
    "absent": ("absent = no_such_module:RULE", "does not load: ModuleNotFoundError: No module"),
    "lacking": ("lacking = wrong_rules:LACKING", "does not load: AttributeError"),
    "number": ("number = wrong_rules:NUMBER", "must be an annealz.ScheduleRule, got a int"),
    "other": ("other = wrong_rules:LINEAR", "calls itself 'linear': one name is needed"),
    "linear": ("linear = wrong_rules:LINEAR", "has the name of one of annealz's own"),
    "varopt-0.5": ("varopt-0.5 = wrong_rules:HALF", "has the name of one of annealz's own"),
    "quits": ("quits = wrong_quits:RULE", "does not load: SystemExit"),
}
CODE = """
import annealz

NUMBER = 3
LINEAR = annealz.ScheduleRule("linear", "another", "annealz:linear")
HALF = annealz.ScheduleRule("varopt-0.5", "another", "annealz:linear")
BAD = annealz.ScheduleRule("bad", "gives a list", lambda num_steps: [0, 1])
SHORT = annealz.ScheduleRule("short", "one step too few", lambda n: annealz.linear(n - 1))
RAISES = annealz.ScheduleRule("raises", "divides by zero", lambda num_steps: 1 / 0)
SET = annealz.ScheduleRule("set", "no JSON", lambda num_steps: annealz.Schedule(
    annealz.linear(num_steps).betas, provenance={"a": {1}}
))
NPZ = annealz.FileFormat("mine", "takes .npz", (".npz",), "annealz.models.formats.load:read_model")
NAMED = annealz.FileFormat("npz", "takes the name", (".mine",), "annealz.models.formats.load:read_model")
LIST = annealz.FileFormat("list", "gives a list", (".list",), lambda path: [])
CRASH = annealz.FileFormat("crash", "raises", (".crash",), lambda path: 1 / 0)
FIRST = annealz.FileFormat("first", "one of two", (".twice",), "annealz.models.formats.load:read_model")
SECOND = annealz.FileFormat("second", "one of two", (".twice",), "annealz.models.formats.load:read_model")
"""


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package full of mistakes."""
    rules = [line for line, _ in WRONG.values()]
    rules += [f"{name} = wrong_rules:{name.upper()}" for name in ("bad", "short", "raises", "set")]
    formats = {"mine": "NPZ", "npz": "NAMED", "gone": "GONE"}
    formats |= {name: name.upper() for name in ("list", "crash", "first", "second")}
    lines = [f"{name} = wrong_rules:{value}" for name, value in formats.items()]
    write_package(
        tmp_path, "wrong_rules", CODE, schedules="\n".join(rules), formats="\n".join(lines)
    )
    (tmp_path / "wrong_quits.py").write_text("raise SystemExit(1)")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("wrong_rules", None)


def test_every_reference_of_annealz_leads_somewhere():
    for rule in SCHEDULES.own.values():
        assert callable(resolve(rule.rule))
        assert rule.check is None or callable(resolve(rule.check))
    for one in FORMATS.own.values():
        assert callable(resolve(one.read))
        assert callable(resolve(one.accepts))


def test_without_other_packages_the_names_are_annealz_own():
    assert SCHEDULES.names() == SCHEDULES.compared() == OWN
    assert SCHEDULES.refusals() == FORMATS.refusals() == []
    assert [one.name for one in FORMATS.usable()] == [
        "npz",
        "MATLAB",
        "HDF5",
        "safetensors",
        "adabmDCA",
        "UAI",
    ]


@pytest.mark.parametrize("name", OWN)
def test_a_rule_describes_itself(name: str):
    assert described(name)
    assert has_pilot(name) == (name not in ("linear", "sm08"))


def test_a_number_after_the_name_is_the_parameter():
    rule = SCHEDULES.find("varopt-0.0400")
    assert rule is not None
    assert (rule.name, rule.options) == ("varopt-0.04", {"max_step": 0.04})
    assert described("varopt-1E-3") == "varopt with max_step = 0.001"
    for name in ("varopt-", "varopt-fast", "varopt-inf", "varopt-nan", "linear-2", "nope", ""):
        assert SCHEDULES.find(name) is None
        assert described(name) == ""
    assert not has_pilot("varopt-0.04")  # which is not listed


def test_a_package_adds_names_after_annealz_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(PLUGIN)
    assert SCHEDULES.names() == (*OWN, "halfway", "quadratic")
    assert SCHEDULES.compared() == (*OWN, "quadratic")
    assert has_pilot("halfway")
    assert not has_pilot("quadratic")
    rule = SCHEDULES.find("halfway-0.25")
    assert rule is not None
    assert (rule.options, rule.package) == ({"share": 0.25}, "annealz-plugin 0.1")
    with pytest.raises(ValueError, match="a share must be from 0 to 1, got 2"):
        SCHEDULES.find("halfway-2").check_steps(10)  # pyright: ignore
    assert [one.suffixes for one in FORMATS.usable()][-1] == (".rbmtxt",)


def test_a_schedule_of_a_package_is_signed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(PLUGIN)
    rule = SCHEDULES.find("quadratic")
    assert rule is not None
    made = make_schedule(rule, 10)
    assert made.name == "quadratic"
    assert made.provenance == {
        "description": "β = t²: small steps first",
        "package": "annealz-plugin 0.1",
    }


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_used_is_refused_by_name(wrong: Path, name: str):
    with pytest.raises(ValueError, match=WRONG[name][1]) as caught:
        SCHEDULES.find(name)
    assert f"the schedule {name!r} of wrong_rules 0.1 " in str(caught.value)
    assert SCHEDULES.quietly(name) is None


def test_all_else_works_beside_it(wrong: Path):
    assert set(OWN) | set(WRONG) <= set(SCHEDULES.names())
    assert set(OWN) - set(SCHEDULES.compared()) == {"linear"}
    assert len(SCHEDULES.refusals()) == len(WRONG)
    assert SCHEDULES.find("sm08") is SCHEDULES.own["sm08"]
    assert [one.name for one in FORMATS.usable()][: len(FORMATS.own)] == list(FORMATS.own)
    assert read_model("mnist-pcd-20")[0].num_hidden == 20  # an npz file, whoever claims the name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bad", "must give an annealz.Schedule, got a list"),
        ("short", "must give 10 steps, got 9"),
        ("raises", "failed: ZeroDivisionError: division by zero"),
        ("set", "must have a provenance of JSON values"),
    ],
)
def test_a_rule_that_fails_is_named(wrong: Path, name: str, words: str):
    rule = SCHEDULES.find(name)
    assert rule is not None
    with pytest.raises(ValueError, match=f"the schedule '{name}' of wrong_rules 0.1 {words}"):
        make_schedule(rule, 10)


def test_two_packages_cannot_have_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("one", "two"):
        write_package(tmp_path, name, "", schedules=f"same = {name}:RULE")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ValueError, match="'same' is declared more than once, by one 0.1 and two 0.1"
    ):
        SCHEDULES.find("same")


@pytest.mark.parametrize(
    ("suffix", "words"),
    [
        (
            "list",
            "the file format 'list' of wrong_rules 0.1 must give a model and a record, got a list",
        ),
        ("crash", "the file format 'crash' of wrong_rules 0.1 failed: ZeroDivisionError"),
        (
            "twice",
            "could be read by the file format 'first' of wrong_rules 0.1 and by the file format 's",
        ),
        (
            "other",
            r"give npz .*list \(.list\).*'gone' of wrong_rules 0.1 does not load: AttributeError",
        ),
        ("other", "'mine' of wrong_rules 0.1 claims .npz, which annealz reads itself"),
        ("other", "'npz' of wrong_rules 0.1 has the name of one of annealz's own"),
    ],
)
def test_a_format_that_fails_is_named(wrong: Path, suffix: str, words: str):
    path = wrong / f"model.{suffix}"
    path.write_text("hello")
    with pytest.raises(ValueError, match=words):
        read_model(path)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "My Rule"}, "the name of a schedule must be like my-rule"),
        ({"name": "a,b"}, "the name of a schedule must be like my-rule"),
        ({"description": "two\nlines"}, "must be a line of at most 100 letters"),
        ({"description": ""}, "must be a line of at most 100 letters"),
        ({"pilot": "large"}, "must be one of none, annealed, knots, mixing, got 'large'"),
        ({"predicts_variance": True}, "must have a pilot of mixing to predict a variance"),
    ],
)
def test_a_rule_is_checked(changed: dict, words: str):
    fields = {"name": "mine", "description": "a rule", "rule": annealz.linear}
    annealz.ScheduleRule(**fields)
    with pytest.raises(ValueError, match=words):
        annealz.ScheduleRule(**(fields | changed))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": ""}, "the name of a file format must be a word"),
        ({"description": "two\nlines"}, "must be a line of at most 100 letters"),
        ({"suffixes": ()}, "must be like .npz"),
        ({"suffixes": ("npz",)}, "must be like .npz"),
    ],
)
def test_a_format_is_checked(changed: dict, words: str):
    fields = {"name": "mine", "description": "a format", "suffixes": (".mine",), "read": read_model}
    annealz.FileFormat(**fields)
    with pytest.raises(ValueError, match=words):
        annealz.FileFormat(**(fields | changed))
