"""Calls that show their progress: with `progress=True` a live bar, in a notebook or a terminal."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

__all__ = ["shown", "shown_by_name"]

Given = ParamSpec("Given")
Result = TypeVar("Result")


def shown(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, its progress shown where `progress=True`; `on_progress` is called all the same."""
    return _showing(function, "report_to")


def shown_by_name(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The same for a function whose runs have names."""
    return _showing(function, "report_labelled_to")


def _showing(function: Callable[Given, Result], reporter: str) -> Callable[Given, Result]:
    @functools.wraps(function)
    def call(*arguments: Given.args, **options: Given.kwargs) -> Result:
        given: dict[str, Any] = dict(options)
        if not given.pop("progress", False):
            return function(*arguments, **given)  # pyright: ignore[reportCallIssue]
        from annealz.views.show import board, live

        with live.live_board() as shown_board:
            if shown_board is not None:
                report = getattr(board, reporter)(shown_board)
                given["on_progress"] = _both(report, given.get("on_progress"))
            return function(*arguments, **given)  # pyright: ignore[reportCallIssue]

    return call


def _both(first: Callable, second: Callable | None) -> Callable:
    if second is None:
        return first

    def report(*now: Any) -> None:
        first(*now)
        second(*now)

    return report
