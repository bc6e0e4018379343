"""Every public name of annealz with what it takes, as JSON: `python .ci/public_names.py [BEFORE]`.

With the file of an earlier version it prints what was added, removed and changed.
"""

import inspect
import json
import sys
from pathlib import Path

import annealz
import annealz.testing


def members(thing) -> dict[str, str]:
    names = [name for name in dir(thing) if not name.startswith("_") or name == "__init__"]
    return {name: shape(inspect.getattr_static(thing, name)) for name in names}


def shape(thing) -> str:
    thing = getattr(thing, "__func__", thing)
    if isinstance(thing, property):
        return "property"
    try:
        return ", ".join(
            f"{one.kind.name[0]}:{one.name}" for one in inspect.signature(thing).parameters.values()
        )
    except (TypeError, ValueError):
        return type(thing).__name__


def public() -> dict[str, str]:
    found = {}
    for package, names in ((annealz, annealz.__all__), (annealz.testing, annealz.testing.__all__)):
        for name in names:
            thing = getattr(package, name)
            label = f"{package.__name__}.{name}"
            found[label] = shape(thing)
            if inspect.isclass(thing):
                found |= {f"{label}.{one}": what for one, what in members(thing).items()}
    return found


if __name__ == "__main__":
    now = public()
    if len(sys.argv) == 1:
        print(json.dumps(now, indent=1))
    else:
        before = json.loads(Path(sys.argv[1]).read_text())
        for name in sorted(now.keys() | before.keys()):
            if name not in now:
                print("removed", name)
            elif name not in before:
                print("added  ", name)
            elif now[name] != before[name]:
                print("changed", name, "\n  before", before[name], "\n  now   ", now[name])
        print(f"{len(before)} names before, {len(now)} now")
