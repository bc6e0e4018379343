"""Tables, figures and verdicts of the race, from results/results.npz.

    python studies/schedules/standings.py [--out FOLDER]

Writes standings.csv and two figures into the folder, and the blocks of README.md between
`<!-- begin NAME -->` and `<!-- end NAME -->`. `outcome.py` defines what is measured, `verdicts.py` what
is concluded.
"""

import argparse
import csv
import io
import re
import sys
from pathlib import Path

import numpy as np

from annealz.io.files import write_atomic
from charts import write_charts
from outcome import MEASURES, Outcome
from significance import std_err
from verdicts import blocks

__all__ = ["fill", "standings_csv", "update"]

_BLOCK = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


def standings_csv(race: Outcome) -> str:
    """Every cell, one row."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["model", "base", "schedule", "num_steps", "num_replicates", "against", "log_z_against"]
        + ["log_z_against_std_err", "log_z", "bias", "bias_std_err", "rms_error"]
        + [name for measure in MEASURES for name in (measure, f"{measure}_std_err")]
    )
    for key, rows in race.cells.items():
        truth, log_z = race.truth(key.model), race.column(key, "log_z")
        losses = {measure: race.loss(key, measure) for measure in MEASURES}
        numbers = [truth.log_z, truth.std_err, log_z.mean(), log_z.mean() - truth.log_z]
        numbers += [std_err(log_z), np.sqrt(losses["mse"].mean())]
        for measure, loss in losses.items():
            numbers += [abs(loss.mean()) if measure == "ess" else loss.mean(), std_err(loss)]
        against = "exact" if truth.is_exact else "reference"
        texts = [f"{x:.6f}" if i in (0, 2) else f"{x:.5g}" for i, x in enumerate(numbers)]
        writer.writerow([*key, len(rows), against, *texts])
    return out.getvalue()


def fill(text: str, blocks: dict[str, str]) -> str:
    """The text with its blocks replaced; a block that is not among them is an error."""
    return _BLOCK.sub(lambda m: f"{m[1]}\n{blocks[m['name']]}\n{m[3]}", text)


def update(folder: Path, page: Path) -> None:
    """Write all that follows from the results."""
    race = Outcome.load(folder / "results.npz")
    write_atomic(folder / "standings.csv", standings_csv(race))
    write_charts(race, folder)
    write_atomic(page, fill(page.read_text("utf-8"), blocks(race)))


def main() -> int:
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=here / "results")
    update(parser.parse_args().out, here / "README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
