"""What the package exports: every name, whatever was imported before, and nothing until it is asked for."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import annealz

HEAVY = ("blackjax", "equinox", "jax", "matplotlib", "numpy", "optax", "scipy")
SOURCE = Path(annealz.__file__)
HOMES: dict[str, str] = vars(annealz)["_HOMES"]

# In a process of its own: modules that are imported twice have classes that differ.
IN_ORDER = """
import importlib, sys
from types import ModuleType

for order in sys.argv[1:]:
    for name in [name for name in sys.modules if name.split(".")[0] == "annealz"]:
        del sys.modules[name]
    for name in order.split():
        importlib.import_module(name)
    import annealz
    for name, home in annealz._HOMES.items():
        value = getattr(annealz, name)
        assert not isinstance(value, ModuleType), (order, name)
        assert value is getattr(sys.modules[home], name), (order, name)
        assert value is vars(annealz)[name], (order, name)
    for name in set(order.split()) - {"annealz"}:
        assert isinstance(sys.modules[name], ModuleType), (order, name)
        assert importlib.import_module(name) is sys.modules[name]
print(len(sys.argv) - 1)
"""


def python(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def submodules() -> list[str]:
    found = pkgutil.walk_packages([str(SOURCE.parent)], "annealz.")
    return [module.name for module in found if module.name != "annealz.__main__"]


def test_import_takes_nothing_heavy_until_a_name_is_asked_for():
    loaded = f"[name for name in {HEAVY} if name in sys.modules]"
    code = f"import sys, annealz; print({loaded}); annealz.linear; print('numpy' in sys.modules)"
    dask = "annealz.estimate_log_z; print({'dask', 'distributed'} & set(sys.modules))"
    assert python(f"{code}; {dask}").splitlines() == ["[]", "True", "set()"]


def test_a_first_estimate_does_not_wait_for_what_it_needs_late():
    """Packages of a third of a second to a second each, imported on use or in a thread."""
    late = {"arviz_stats", "blackjax", "matplotlib", "optax", "pandas", "xarray"}
    late |= {"scipy.integrate", "scipy.interpolate", "scipy.optimize", "scipy.stats"}
    code = f"import sys, annealz; annealz.estimate_log_z; print(sorted({late} & set(sys.modules)))"
    assert python(code) == "[]"


def test_no_module_at_the_top_has_the_name_of_a_public_thing():
    """So that `annealz.anneal` is the function, whatever was imported first."""
    entries = {entry.stem for entry in SOURCE.parent.iterdir()}
    assert not entries & set(HOMES)


def test_the_top_has_few_entries():
    entries = [entry.name for entry in SOURCE.parent.iterdir() if entry.name != "__pycache__"]
    assert len(entries) <= 20, sorted(entries)


@pytest.mark.slow
def test_names_are_right_whatever_module_is_imported_first():
    orders = submodules()
    assert len(orders) > 100
    assert python(IN_ORDER, *orders) == str(len(orders))


def test_modules_are_attributes_and_others_are_not():
    assert annealz.models is importlib.import_module("annealz.models")
    assert annealz.plots is importlib.import_module("annealz.views.plots")
    for name in ("nonsense", "_nonsense", "__main__"):
        with pytest.raises(AttributeError, match=f"module 'annealz' has no attribute '{name}'"):
            getattr(annealz, name)


def test_a_star_imports_what_dir_lists():
    names: dict = {}
    exec("from annealz import *", names)
    assert set(names) - {"__builtins__"} == set(dir(annealz)) == {*HOMES, "__version__"}
    assert names["anneal"] is annealz.anneal
