"""Tables of measured numbers, from the files that the benchmarks write: there is no copy to keep.

A line `<!-- measured: NAME -->` of a page becomes what the function NAME here makes of the results.
"""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the tests read the tables without MkDocs
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
_LINE = re.compile(r"^<!-- measured: (?P<name>[a-z-]+) -->$", re.MULTILINE)
_BESIDE = ("plain JAX", "annealz, 10 leapfrogs", "BlackJAX SMC", "bare arithmetic")
_READING = {
    "rbms / annealz": "annealz is faster than rbms by",
    "plain JAX / annealz": "annealz is faster than plain JAX by",
    "annealz / bare products": "annealz takes, of the bare products,",
}


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    return fill(markdown)


def fill(markdown: str) -> str:
    """The page with its tables."""
    results = {
        name: json.loads((BENCHMARKS / f"{name}.json").read_text())
        for name in ("results", "device-results")
    }
    return _LINE.sub(lambda match: TABLES[match["name"]](results), markdown)


def _machine(found: dict[str, Any]) -> str:
    results = found["results"]
    about, rbms, settings = results["machine"], results["machine"]["rbms"], results["settings"]
    others = max(results["cores_busy_with_other_programs"], 0)
    return (
        f"{about['cpu']}, {about['cores']} cores, Python {about['versions']['python']}, JAX "
        f"{about['versions']['jax']}; rbms {rbms['rbms']} on torch {rbms['torch']} with {rbms['threads']} "
        f"threads. {settings['num_chains']:,} chains of {settings['num_visible']} visible units; medians "
        f"of {settings['num_rounds']} rounds in which all contestants took turns. Other programs took "
        f"{others:.2f} cores meanwhile."
    )


def _race(found: dict[str, Any]) -> str:
    race = found["results"]["race"]
    names = list(next(iter(race.values())))
    header = ["ms per step", *(f"{hidden} hidden units" for hidden in race)]
    rows = []
    for name in names:
        cells = (race[hidden][name] for hidden in race)
        texts = ("{:.3g} ({:.3g} … {:.3g})".format(c["ms_per_step"], *c["range"]) for c in cells)
        rows.append([f"**{name}**" if name == "annealz" else name, *texts])
    return _table(header, rows)


def _ratios(found: dict[str, Any]) -> str:
    ratios = found["results"]["ratios"]
    rows = []
    for name, reading in _READING.items():
        cells = (ratios[hidden][name] for hidden in ratios)
        texts = ("{:.2f}× ({:.2f} … {:.2f})".format(c["ratio"], *c["range"]) for c in cells)
        rows.append([reading, *texts])
    return _table(["", *(f"{hidden} hidden units" for hidden in ratios)], rows)


def _agreement(found: dict[str, Any]) -> str:
    same = found["results"]["agreement"]
    rows = [["exact", f"{same['exact_log_z']:.4f}"]]
    for name, log_z in same["log_z"].items():
        error = same["std_err"][name]
        rows.append([name, f"{log_z:.4f}" + ("" if error is None else f" ± {error:.4f}")])
    header = ["", f"log Z, {same['num_hidden']} hidden units, {same['num_steps']:,} steps"]
    return _table(header, rows)


def _step_times(found: dict[str, Any]) -> str:
    grid = found["results"]["step_times"]
    chains = sorted({row["num_chains"] for row in grid})
    cells = {(row["num_hidden"], row["num_chains"]): row["ms_per_step"] for row in grid}
    rows = [
        [f"{hidden} hidden units", *(f"{cells[hidden, n]:.3g}" for n in chains)]
        for hidden in sorted({row["num_hidden"] for row in grid})
    ]
    return _table(["ms per step", *(f"{n:,} chains" for n in chains)], rows)


def _whole_runs(found: dict[str, Any]) -> str:
    rows = [
        [
            f"{row['num_chains']:,}",
            f"{row['num_steps']:,}",
            f"{row['first_seconds']:.2f}",
            f"{row['seconds']:.2f}",
            f"{row['peak_mib']:.0f}",
            f"{row['start_mib']:.0f}",
        ]
        for row in found["results"]["cases"]
    ]
    header = ["chains", "steps", "first run, s", "second, s", "peak MiB", "MiB before the run"]
    return _table(header, rows)


def _gpu(found: dict[str, Any]) -> str:
    device = found["device-results"]
    rows = [
        [
            row["model"],
            f"{row['chains']:,}",
            f"{row['steps']:,}",
            f"**{row['fused']:.2f}**",
            f"{row['xla']:.2f}",
            f"{row['products']:.2f}",
            f"{row['fused first']:.1f}",
        ]
        for row in device["rows"]
    ]
    header = ["model", "chains", "steps", "fused, s", "XLA's steps, s", "bare products, s"]
    about = f"{device['device']}, JAX {device['jax']}.\n\n"
    return about + _table([*header, "first fused run, s"], rows)


def _others(found: dict[str, Any]) -> str:
    rows = []
    for row in found["results"]["others"]:
        times = {name: entry["ms_per_step"] for name, entry in row["race"].items()}
        rows.append([row["name"], f"{row['num_chains']:,}", *_beside(times, 1e3)])
    header = ["µs per step", "chains", "annealz", *(f"{name}, of it" for name in _BESIDE)]
    busy = max(row.get("cores_busy_with_other_programs", 0) for row in found["results"]["others"])
    note = f"\n\nOther programs took up to {busy:.2f} cores meanwhile." if busy > 0.1 else ""
    return _table(header, rows) + note


def _gpu_others(found: dict[str, Any]) -> str:
    measured = found["device-results"].get("others")
    if measured is None:
        return "Not measured yet."
    rows = []
    for row in measured:
        times = {name: one / row["steps"] for name, one in row["seconds"].items()}
        rows.append([row["name"], f"{row['chains']:,}", *_beside(times, 1e6)])
    header = ["µs per step", "chains", "annealz", *(f"{name}, of it" for name in _BESIDE)]
    return _table(header, rows)


def _beside(times: dict[str, float], unit: float) -> list[str]:
    """Of annealz in this unit, and of the others as multiples of it."""
    own = times["annealz"]
    shares = (f"{times[name] / own:.2f}×" if name in times else "" for name in _BESIDE)
    ours = unit * own
    return [f"**{ours:,.0f}**" if ours >= 1000 else f"**{ours:.3g}**", *shares]


def _estimates(found: dict[str, Any]) -> str:
    return _whole_estimates(found["results"]["estimates"])


def _gpu_estimates(found: dict[str, Any]) -> str:
    rows = found["device-results"].get("estimates")
    return "Not measured yet." if rows is None else _whole_estimates(rows)


def _whole_estimates(rows: list[dict[str, Any]]) -> str:
    lines = [
        [
            row["model"],
            f"{row['process_seconds']:.1f}",
            f"{row['first_seconds']:.2f}",
            f"{row['kept']['first_seconds']:.2f}",
            f"**{row['later_seconds']:.2f}**",
            f"{100 * row['pilot_share']:.0f} %",
            f"{sum(row['sweeps'].values()):,}",
        ]
        for row in rows
    ]
    first = ["start to first result, s", "first call, s", "with kept programs, s"]
    later = ["later calls, s", "pilot's share of these", "sweeps"]
    return _table(["model", *first, *later], lines)


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "machine": _machine,
    "race": _race,
    "ratios": _ratios,
    "agreement": _agreement,
    "step-times": _step_times,
    "whole-runs": _whole_runs,
    "others": _others,
    "estimates": _estimates,
    "gpu": _gpu,
    "gpu-others": _gpu_others,
    "gpu-estimates": _gpu_estimates,
}


def _table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
