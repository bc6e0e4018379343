"""The generated blocks of README.md, from the raw results.

The page is written by hand except for what stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

import re
from pathlib import Path

from annealz.io.files import write_atomic
from results import Results
from settings import model_label
from tables import exact_line, sheets

__all__ = ["blocks", "fill", "update_page"]

_BLOCK = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


def update_page(page: Path, results: Results, folder: Path) -> None:
    """Write the blocks of the page again; `folder` holds the preset's results."""
    write_atomic(page, fill(page.read_text("utf-8"), blocks(results, folder)))


def blocks(results: Results, folder: Path) -> dict[str, str]:
    """Markdown by name of block: all tables, those of the models as they are found in the folder."""
    found = {name: sheet.markdown() for name, sheet in sheets(results).items() if name != "runs"}
    found["exact"] = f"Exact log Z: {exact_line(results)}.\n"
    found["record"] = _record(results)
    models = folder / "tables" / "models.md"
    if models.exists():
        found["models"] = models.read_text("utf-8")
    return found


def fill(text: str, found: dict[str, str]) -> str:
    """The text with its blocks replaced; a block that was not found stays as it is."""

    def replaced(match: re.Match) -> str:
        content = found.get(match["name"])
        return match[0] if content is None else f"{match[1]}\n{content}\n{match[3]}"

    return _BLOCK.sub(replaced, text)


def _record(results: Results) -> str:
    versions = dict(results.record["versions"])
    device = versions.pop("device")
    sweeps = sum(key.num_steps * len(cell.rows) for key, cell in results.cells.items())
    sweeps *= results.num_chains
    minutes = sum(cell.seconds for cell in results.cells.values()) / 60
    lines = [
        f"- device: {device}",
        f"- versions: {', '.join(f'{name} {version}' for name, version in versions.items())}",
        f"- {len(results.cells)} cells, {sweeps:,} sweeps of a chain, {minutes:.1f} minutes",
        *(
            f"- {model_label(name)}: digest {facts['digest'][:16]}"
            for name, facts in results.record["models"].items()
        ),
    ]
    return "\n".join(lines) + "\n"
