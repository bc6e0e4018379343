"""Programs that JAX compiles, or reads from its cache, while a context lasts."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import jax

_EVENT = "/jax/core/compile/backend_compile_duration"


@contextlib.contextmanager
def count_compiled(threads: str = "") -> Iterator[list[str]]:
    """Names of the programs of threads whose names begin so, as they are compiled."""
    names: list[str] = []
    is_open = [True]

    def listen(event: str, _seconds: float, **about: Any) -> None:  # JAX has no way to take it off
        if is_open and event == _EVENT and threading.current_thread().name.startswith(threads):
            names.append(str(about.get("fun_name", "")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield names
    finally:
        is_open.clear()
