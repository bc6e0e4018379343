"""The benchmark's results as text."""

from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["estimates", "show"]

_READING = {
    "rbms / annealz": "annealz is faster than rbms by",
    "plain JAX / annealz": "annealz is faster than plain JAX by",
    "annealz / bare products": "annealz takes, of the bare products,",
}
_BUSY = 0.1  # cores
_BESIDE = ("plain JAX", "annealz, 10 leapfrogs", "BlackJAX SMC", "bare arithmetic")
_YES_NO = {True: "yes", False: "NO", None: "not measured"}


def show(results: dict[str, Any], console: Console) -> None:
    about = results["machine"]
    console.print(f"{about['cpu']}, {about['cores']} cores, jax {about['versions']['jax']}")
    if about["rbms"] is not None:
        console.print("rbms {rbms} on torch {torch}, {threads} threads".format(**about["rbms"]))
    others = results["cores_busy_with_other_programs"]
    warning = ": TOO BUSY, do not trust these ratios" if others > _BUSY else ""
    console.print(f"other programs took {others:.2f} cores during the race{warning}")
    console.print(f"matrix products in a compiled step: {results['dots']} (expected 2)\n")
    for num_hidden, entries in results["race"].items():
        console.print(_race(num_hidden, entries, results["settings"]))
        for name, found in results["ratios"][num_hidden].items():
            low, high = found["range"]
            reading = f"{_READING[name]} {found['ratio']:.2f}x"
            console.print(f"  {reading:<46} (rounds {low:.2f} .. {high:.2f})")
        console.print()
    _agreement(results["agreement"], console)
    console.print("targets")
    for target in results["targets"]:
        bound = f">= {target['at_least']}" if target["at_least"] else f"<= {target['at_most']}"
        name = f"M = {target['num_hidden']}: {target['above']} / {target['below']} {bound}"
        seen = "" if target["ratio"] is None else f"{target['ratio']:.2f}"
        console.print(f"  {name:<46} {seen:>6}  {_YES_NO[target['met']]}")
    console.print()
    console.print(_grid(results["step_times"]))
    console.print()
    console.print(_cases(results["cases"]))
    console.print()
    console.print(_others(results["others"]))
    console.print()
    console.print(estimates(results["estimates"]))


def _race(num_hidden: int, entries: dict[str, Any], settings: dict[str, Any]) -> Table:
    sizes = f"N = {settings['num_chains']}, D = {settings['num_visible']}, M = {num_hidden}"
    table = _table(f"time per step, {sizes}", "contestant", "ms/step", "min .. max", "steps a call")
    for name, entry in entries.items():
        low, high = entry["range"]
        median = f"{entry['ms_per_step']:.3f}"
        table.add_row(name, median, f"{low:.3f} .. {high:.3f}", str(entry["num_steps"]))
    return table


def _agreement(found: dict[str, Any], console: Console) -> None:
    console.print(f"log Z, M = {found['num_hidden']}, {found['num_steps']} steps")
    console.print(f"  {'exact':<16}{found['exact_log_z']:>12.4f}")
    for name, log_z in found["log_z"].items():
        error = found["std_err"][name]
        spread = "" if error is None else f" +- {error:.4f}"
        console.print(f"  {name:<16}{log_z:>12.4f}{spread}")
    worst = max(abs(z) for z in found["z_scores"].values())
    word = "agree" if found["agree"] else "DO NOT AGREE"
    console.print(f"  they {word}: at most {worst:.1f} standard errors apart\n")


def _grid(rows: list[dict[str, Any]]) -> Table:
    chains = sorted({row["num_chains"] for row in rows})
    cells = {(row["num_hidden"], row["num_chains"]): row["ms_per_step"] for row in rows}
    table = _table("annealz, ms/step", "", *(f"N = {n}" for n in chains))
    for num_hidden in sorted({row["num_hidden"] for row in rows}):
        values = (f"{cells[num_hidden, n]:.3f}" for n in chains)
        table.add_row(f"M = {num_hidden}", *values)
    return table


def _cases(rows: list[dict[str, Any]]) -> Table:
    title = f"annealz, a fresh process a row, M = {rows[0]['num_hidden']}"
    table = _table(title, "N", "K", "seconds", "ms/step", "peak MiB", "MiB before the run")
    for row in rows:
        numbers = (row["seconds"], 1e3 * row["seconds"] / row["num_steps"])
        memory = (f"{row['peak_mib']:.0f}", f"{row['start_mib']:.0f}")
        texts = (f"{numbers[0]:.2f}", f"{numbers[1]:.3f}")
        table.add_row(str(row["num_chains"]), str(row["num_steps"]), *texts, *memory)
    return table


def _others(rows: list[dict[str, Any]]) -> Table:
    title = "other models: time per step of annealz, and what others take of it"
    table = _table(title, "model", "N", "ms/step", *_BESIDE)
    for row in rows:
        times = {name: entry["ms_per_step"] for name, entry in row["race"].items()}
        own = times["annealz"]
        shares = (f"{times[name] / own:.2f}x" if name in times else "" for name in _BESIDE)
        table.add_row(row["name"], str(row["num_chains"]), f"{own:.3f}", *shares)
    return table


def estimates(rows: list[dict[str, Any]]) -> Table:
    """Whole default estimates."""
    title = "whole default estimates, seconds"
    columns = ("process", "first call", "kept", "later call", "pilot's share", "sweeps")
    table = _table(title, "model", *columns)
    for row in rows:
        process, first, later = (row[f"{word}_seconds"] for word in ("process", "first", "later"))
        times = (f"{one:.2f}" for one in (process, first, row["kept"]["first_seconds"], later))
        sweeps = f"{sum(row['sweeps'].values()):,}"
        table.add_row(row["model"], *times, f"{row['pilot_share']:.0%}", sweeps)
    return table


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="", box=None, padding=(0, 2))
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
