"""What would help: settings to change, or words where no setting does it."""

import dataclasses
from collections.abc import Callable
from typing import Any

__all__ = ["Remedy", "Writer"]

Writer = Callable[[str, Any], str]
"""How a medium writes a setting, from its name in Python and its value."""


@dataclasses.dataclass(frozen=True)
class Remedy:
    """Settings by their names in Python, with the values to try; None leaves a setting as it is."""

    exact: bool | None = None
    data: bool | None = None
    """Data are needed, which only the user has."""
    base: str | None = None
    method: str | None = None
    num_steps: int | None = None
    num_sweeps: int | None = None
    """Of replica exchange."""
    num_chains: int | None = None
    num_live: int | None = None
    """Of nested sampling."""
    num_inner_steps: int | None = None
    """Of nested sampling."""
    target_std_err: float | None = None
    max_seconds: int | None = None
    conservative: bool | None = None
    """Of a log-likelihood."""
    map: str | None = None
    """Of a model's file; may name numbers of the finding, in braces."""
    words: str = ""
    """What follows the settings in a sentence, or all there is."""

    @property
    def settings(self) -> dict[str, Any]:
        """What to change."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: value for name, value in values.items() if value is not None and name != "words"
        }

    @property
    def is_ready(self) -> bool:
        """Whether a run can be started with it as it is."""
        return bool(self.settings) and not self.data

    def in_words(self, write: Writer) -> str:
        """The settings as the medium writes them, and the words."""
        written = [write(name, value) for name, value in self.settings.items()]
        return ", ".join([*written, *([self.words] if self.words else [])])
