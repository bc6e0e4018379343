"""Packages that declare something for annealz: the one in fixtures, and small ones made here."""

from pathlib import Path

from support.places import FIXTURES

PLUGIN = FIXTURES / "plugin"


def write_package(folder: Path, name: str, code: str, **groups: str) -> None:
    """A package of one module that is found where its folder is on the path; groups as `name = value`."""
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines = [f"[annealz.{group}]\n{entries}\n" for group, entries in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
