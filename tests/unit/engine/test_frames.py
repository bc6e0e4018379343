"""How far it is from the front door to the compiled step."""

import sys

import pytest

import annealz
from annealz.engine import run_program
from annealz.testing import random_rbm

MOST = 9  # from estimate_log_z to the call of the compiled step, both included


def test_few_frames_and_no_decorator_lie_between(monkeypatch: pytest.MonkeyPatch):
    """Of the main run, whose first chunk this thread takes; every frame is one of the package."""
    step, stacks = run_program.advance, []

    def spied(*arguments, **options):
        frame, names = sys._getframe(1), []
        while frame is not None and names[:1] != ["annealz.api.estimate_log_z"]:
            names.insert(0, f"{frame.f_globals['__name__']}.{frame.f_code.co_name}")
            frame = frame.f_back
        if any(name.endswith("run_forward") for name in names):
            stacks.append(names)
        return step(*arguments, **options)

    monkeypatch.setattr(run_program, "advance", spied)
    annealz.estimate_log_z(random_rbm(4, 6), num_steps=20, num_chains=50)
    assert stacks[0][0] == "annealz.api.estimate_log_z"
    assert all(name.startswith("annealz.") for name in stacks[0])
    assert len(stacks[0]) + 1 <= MOST, " ".join(stacks[0])  # and Compiled.__call__
