"""Run the tutorials from top to bottom and keep what they print.

    python docs/tutorials/execute.py            all of them; `make tutorials`

A kernel of its own runs each. What is kept says nothing of the machine: no times of cells, no paths, no
versions, and cells are numbered.
"""

import argparse
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient

HERE = Path(__file__).parent
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_SECONDS_A_CELL = 300


def execute(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with fresh outputs, run in this folder; what a cell raises is raised here."""
    notebook = nbformat.read(path, as_version=4)
    # files in place of ports: nobody else can listen, and no port can be taken
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc")
    manager.connection_file = str(folder / "kernel.json")
    client = NotebookClient(
        notebook,
        km=manager,
        timeout=_SECONDS_A_CELL,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        client.execute()
    finally:
        run_sync(manager.shutdown_kernel)(now=True)
    return normalised(notebook)


def normalised(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The same without what differs from machine to machine."""
    notebook.metadata = nbformat.from_dict(_METADATA)
    notebook.nbformat_minor = 5
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", nbformat.from_dict({})
    return notebook


def main() -> None:
    parser = argparse.ArgumentParser(description="Run notebooks and keep what they print.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="by default the tutorials")
    parser.add_argument("--to", type=Path, help="folder for the results, by default in place")
    given = parser.parse_args()
    for path in given.notebooks or sorted(HERE.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(path, Path(folder))
        out = path if given.to is None else given.to / path.name
        nbformat.write(notebook, out)
        print(f"{out.name}: {out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
