"""What networks of the UAI competitions need: evidence from a file, and results as log10."""

import math
import sys
from pathlib import Path
from typing import Any

from annealz.cli.show import Result

__all__ = ["Log10", "shown_in", "with_evidence"]


def with_evidence(model: str, evidence: Path | None, quiet: bool) -> str:
    """The model given the evidence of a file, as `load_model` takes it.

    Evidence that lies beside a network is not used unasked: it would change log Z unseen. It is mentioned.
    """
    if evidence is None:
        beside = Path(f"{model}.evid")
        if model.endswith(".uai") and beside.is_file() and not quiet:
            print(
                f"annealz: {beside} lies beside the network and is not used: give --evidence {beside}.",
                file=sys.stderr,
            )
        return model
    from annealz.models.formats.uai import evidence_part, is_uai

    path = Path(model)
    if path.is_file():
        with path.open("rb") as file:
            is_network = is_uai(file.read(1024))
        if not is_network:
            raise ValueError(
                f"--evidence is for networks of the UAI format, and {model} is not one."
            )
    elif not path.parent.is_file():
        raise ValueError(
            f"--evidence is for networks of the UAI format, and {model} is not a file."
        )
    else:
        raise ValueError(f"{model} has evidence already: leave it out, or --evidence.")
    part = evidence_part(evidence)
    return f"{model}/{part}" if part else model


class Log10:
    """A result that is shown as log10 Z too."""

    def __init__(self, result: Any):
        self.result = result

    def rows(self) -> list[tuple[str, str]]:
        rows = self.result.rows()
        values = self._values()
        error = values["log10_std_err"]
        text = f"{values['log10_z']:.5f} ± " + ("unknown" if error is None else f"{error:.5f}")
        if values["exact_log10_z"] is not None:
            text += f" (exact {values['exact_log10_z']:.5f})"
        place = 1 + next(i for i, (label, _) in enumerate(rows) if label == "log Z")
        return [*rows[:place], ("log10 Z", text), *rows[place:]]

    def to_dict(self) -> dict[str, Any]:
        return self.result.to_dict() | self._values()

    def _values(self) -> dict[str, float | None]:
        record = self.result.to_dict()
        names = {"log10_z": "log_z", "log10_std_err": "std_err", "exact_log10_z": "exact_log_z"}
        found = {new: record.get(old) for new, old in names.items()}
        return {new: None if v is None else v / math.log(10) for new, v in found.items()}


def shown_in(result: Any, in_log10: bool) -> Result:
    """The result, or the same with log10 Z."""
    return Log10(result) if in_log10 else result
