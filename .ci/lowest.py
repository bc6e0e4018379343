"""The lowest versions that pyproject.toml allows, as constraints of pip: one line a dependency."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))[
    "project"
]
needed = [*project["dependencies"], *project["optional-dependencies"]["formats"]]
for line in needed:
    found = re.fullmatch(r"([\w.-]+)>=([\w.]+)", line)
    if found is None:
        raise SystemExit(f"{line!r} has no lowest version.")
    print(f"{found[1]}=={found[2]}")
