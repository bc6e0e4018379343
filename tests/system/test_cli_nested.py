"""`annealz estimate --method nested`: JSON, table, picture, page, interruption, options that do not fit."""

import contextlib
import json
import re
from pathlib import Path

import pytest

from annealz.engine.progress import Progress
from annealz.methods.annealing.request import AnnealingRequest
from annealz.methods.nested.request import NestedRequest
from support.command import KEYS, refused, run

NESTED = ("estimate", "support.bumps:BUMP", "--method", "nested")
SMALL = ("--live", "120", "--runs", "3", "--inner-steps", "10")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_json_has_the_keys_of_an_estimate_and_the_runs(capsys):
    status, out, _ = run(capsys, *NESTED, *SMALL, "--json", "--quiet")
    result = json.loads(out)
    assert status == 0
    assert {*result} >= {*KEYS}
    assert (result["method"], result["status"], result["num_live"]) == ("nested", "ok", 120)
    assert abs(result["log_z"]) < 6 * result["std_err"]
    assert set(result["runs"][0]) == {"log_z", "std_err", "ending", "evaluations"}


def test_the_table_the_picture_and_the_page(capsys):
    status, out, _ = run(capsys, *NESTED, *SMALL, "--plot", "p.png", "--report", "r.html")
    assert status == 0
    assert re.search(r"^method +nested sampling, 3 runs", out, re.MULTILINE)
    assert re.search(r"^ *3 +40 +[\d,]+ +-?\d\.\d{4} ± 0\.\d{4}", out, re.MULTILINE)
    assert Path("p.png").stat().st_size > 10_000
    page = Path("r.html").read_text()
    assert page.count("<svg") == 2
    command = re.sub(r"<[^>]+>", "", page)
    assert f"annealz {' '.join(NESTED)} {' '.join(SMALL)} --seed 0" in command


def test_ctrl_c_ends_it_with_one_sentence(capsys, monkeypatch):
    def interrupt(now: Progress) -> None:
        if now.step:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def shown(*_, **__):
        yield interrupt

    monkeypatch.setattr("annealz.views.progress.live_report", shown)
    status, out, err = run(capsys, *NESTED, *SMALL)
    assert (status, out, err) == (130, "", "annealz: interrupted, and nothing was saved.\n")


def test_an_unreliable_run_says_what_is_wrong(capsys):
    status, out, _ = run(capsys, *NESTED, *SMALL, "--max-evaluations", "30000", "--quiet")
    assert status == 0
    assert "! the limit of 30,000 evaluations was reached" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--steps", "100"], "--steps does not fit --method nested"),
        (["--cluster", "2"], "--cluster does not fit --method nested"),
        (["--two-sided"], "--two-sided does not fit --method nested"),
        (["--rungs", "4"], "--rungs does not fit --method nested"),
        (["--live", "10"], "--live must be at least 80, got 10"),
    ],
)
def test_options_that_do_not_fit_are_refused(capsys, options: list[str], words: str):
    assert words in refused(capsys, *NESTED, *options)


def test_its_options_belong_to_it(capsys):
    words = refused(capsys, "estimate", "support.bumps:BUMP", "--live", "100")
    assert "--live belongs to --method nested" in words


def test_the_command_that_is_advised_drops_what_does_not_fit():
    request = AnnealingRequest(model="m:f", num_steps=9, two_sided=True, seed=3)
    again = request.reproduction({"method": "nested"})
    assert again.text == "annealz estimate m:f --method nested --seed 3"
    more = NestedRequest(model="m:f", num_live=90, seed=3).reproduction({"num_live": 180})
    assert more.text == "annealz estimate m:f --method nested --seed 3 --live 180"
