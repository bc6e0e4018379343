"""Settings as the command line writes them; what is printed or stored as JSON writes them so too."""

import shlex
from typing import Any

__all__ = ["in_options", "option_of", "option_words"]


def option_of(name: str) -> str:
    """The option of a setting: --steps of num_steps, and of the num_sweeps of replica exchange."""
    name = "num_steps" if name == "num_sweeps" else name
    return f"--{name.removeprefix('num_').replace('_', '-')}"


def option_words(name: str, value: Any) -> list[str]:
    """The option and its value; DATA stands for a file that only the user has.

    Examples
    --------
    >>> from annealz.methods.in_options import option_words
    >>> option_words("num_steps", 400), option_words("exact", True), option_words("data", True)
    (['--steps', '400'], ['--exact'], ['--data', 'DATA'])
    >>> option_words("along", [0.5, 1.0]), option_words("second_opinion", False)
    (['--along', '0.5,1.0'], ['--no-second-opinion'])
    """
    option = option_of(name)
    if name == "data":
        return [option, "DATA"]
    if isinstance(value, bool):
        return [option if value else option.replace("--", "--no-", 1)]
    if isinstance(value, list):
        return [option, ",".join(str(one) for one in value)]
    return [option, str(value)]


def in_options(name: str, value: Any) -> str:
    """--steps 400."""
    return shlex.join(option_words(name, value))
