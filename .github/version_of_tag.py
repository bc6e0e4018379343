"""What the changelog says of the version of a tag: `python version_of_tag.py v1.2.3`.

pyproject.toml, CITATION.cff and CHANGELOG.md must call themselves by that version.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(tag: str, root: Path = ROOT) -> str:
    """The section of the changelog, or SystemExit with what does not agree."""
    version = tag.removeprefix("v")
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    citation = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    changelog = (root / "CHANGELOG.md").read_text()
    section = re.search(
        rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )
    if not tag.startswith("v") or project != version:
        raise SystemExit(f"the tag is {tag} and pyproject.toml says {project}: tag it v{project}.")
    if citation is None or citation[1].strip('"') != version:
        raise SystemExit(f"CITATION.cff is not of version {version}.")
    if section is None:
        raise SystemExit(f"CHANGELOG.md has no section [{version}].")
    return section[1].strip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(notes(sys.argv[1]))
