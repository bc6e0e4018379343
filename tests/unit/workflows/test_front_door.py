"""The front doors: their signatures are the fields of the requests, and their bodies fit on a screen."""

import ast
import inspect
import textwrap

import pytest

import annealz
from annealz.core.errors import InputError
from annealz.engine.context import Context
from annealz.methods.method import METHODS, find_method
from annealz.testing import random_rbm

REQUESTS = {name: find_method(name).request_type for name in METHODS.names()}
HOW = inspect.signature(Context.__init__).parameters.keys() - {"self", "is_named", "is_resumed"}
MODEL = random_rbm(3, 4)


def parameters(function) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def test_arguments_are_the_fields_of_the_requests():
    named = {name for request in REQUESTS.values() for name in request.names()} - {"map"}
    assert parameters(annealz.estimate_log_z).keys() == named | HOW | {"model", "method"}


@pytest.mark.parametrize("method", REQUESTS)
def test_defaults_are_those_of_the_requests(method):
    """But for what a method leaves to be decided where None is asked for."""
    fields = REQUESTS[method].__dataclass_fields__
    for name, parameter in parameters(annealz.estimate_log_z).items():
        if name in fields and name not in ("model", "method"):
            assert parameter.default == fields[name].default, name


def test_resume_takes_what_no_folder_holds():
    objects = {"model", "path", "kernel", "observe"}
    how = HOW - {"force", "checkpoint_seconds", "on_forecast"}
    assert parameters(annealz.resume).keys() == objects | how


@pytest.mark.parametrize("function", [annealz.estimate_log_z, annealz.resume])
def test_a_body_fits_on_a_screen(function):
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    assert tree.end_lineno is not None
    assert tree.end_lineno - tree.body[1].lineno < 25
    assert not tree.decorator_list


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_live": 10}, "num_live belongs to method nested: leave it out"),
        ({"method": "exchange", "two_sided": True}, r"does not fit method exchange \(neighbouring"),
        (
            {"method": "exchange", "num_chains": 5},
            r"\(it has num_rungs times num_ensembles of them\)",
        ),
        ({"method": "nested", "num_steps": 5}, "num_inner_steps is the length of its walks"),
        ({"method": "nope"}, "method must be one of annealing, exchange, nested.*, got 'nope'"),
    ],
)
def test_arguments_of_other_methods_are_refused_with_their_reason(options, words):
    with pytest.raises(InputError, match=words):
        annealz.estimate_log_z(MODEL, **options)
