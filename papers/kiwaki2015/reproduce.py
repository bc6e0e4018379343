"""Reproduce Kiwaki (2015).

    python papers/kiwaki2015/reproduce.py --preset quick

runs the cells of the preset that its file of raw results lacks (all of them with --fresh), then writes
tables and figures from that file. The committed results of the preset `full` lack nothing, so that
`--preset full` needs no GPU.
"""

import argparse
import sys
from pathlib import Path

from annealz.views.progress import live_report
from figures import write_figures
from page import update_page
from results import Results
from settings import PRESETS, SIZES
from sweep import sweep
from tables import summary, write_tables

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
PAGE_PRESET = "full"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", choices=PRESETS, default="quick")
    parser.add_argument("--fresh", action="store_true", help="run every cell again")
    parser.add_argument("--out", type=Path, help="folder; by default papers/kiwaki2015/PRESET")
    arguments = parser.parse_args()
    folder = arguments.out or HERE / arguments.preset
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "runs.npz"
    if arguments.fresh:
        file.unlink(missing_ok=True)
    try:
        with live_report() as report:
            results = sweep(PRESETS[arguments.preset], file, report)
    except KeyboardInterrupt:
        print("interrupted: the same command goes on.", file=sys.stderr)
        return 130
    except ValueError as error:
        print(f"reproduce: {error}", file=sys.stderr)
        return 2
    write_tables(results, folder / "tables")
    write_figures(results, folder / "figures")
    if arguments.preset == PAGE_PRESET and arguments.out is None:
        update_page(PAGE, results, folder)
    _say(results, folder)
    return 0


def _say(results: Results, folder: Path) -> None:
    for base in results.record["settings"]["bases"]:
        for size in SIZES:
            sheet = summary(results, size, base)
            if sheet.rows:
                print(f"log Z ± standard error / median ESS, K = {results.largest:,}, {base} base")
                print(sheet.text())
    print(f"raw results  {folder / 'runs.npz'}")
    print(f"tables       {folder / 'tables'}")
    print(f"figures      {folder / 'figures'}")


if __name__ == "__main__":
    sys.exit(main())
