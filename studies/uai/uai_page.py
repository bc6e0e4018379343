"""README.md of this folder and the table in docs/models.md: python studies/uai/uai_page.py"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "models.md"
_MARKS = "<!-- studies/uai/uai_page.py writes this -->", "<!-- end -->"
_HEAD = """# Networks of the UAI 2014 competition

Task PR: log Z of fifteen networks, with reference values (log10, six digits) that came with them. The
networks are not part of this repository. `python studies/uai/uai_runs.py --uai FOLDER` runs what the table
shows, `python studies/uai/uai_page.py` writes this page from [results.json](results.json), and
`uai_pgmpy.py` adds what pgmpy gives.

- *annealing*: `annealz estimate FILE --max-seconds LIMIT`, or of a fixed length (steps × chains), else with
  all defaults: base searched for, second opinion. Shown is log Z less the reference, in nats, with the
  stated error. The status is that of annealing alone, without the exact value that annealz shows beside it.
  In parentheses stand the steps and chains that a limit left. One seed.
- *contraction*: `annealz.exact_log_z(load_model(FILE))`, with its seconds; * marks values of an earlier
  version of the code, written down with six decimals of log10 Z.
- *BP*: loopy belief propagation with Bethe's formula (`uai_bp.py`); "no" where messages did not converge.
- *pgmpy*: `get_partition_function` of pgmpy 1.1.2, which multiplies all factors into one table (4 GB,
  120 s), or why there is no value. Its elimination and junction trees give normalised marginals, without
  Z.
"""


def cell(row: dict[str, Any] | None, *, is_annealed: bool = False) -> str:
    """What a column shows of one row."""
    if row is None:
        return "not run"
    if row["log_z"] is None:
        return row["why"]
    off = row["log_z"] - row["reference"]
    if is_annealed:
        errors = abs(off) / row["std_err"]
        size = f" ({row['num_steps']} × {row['num_chains']})" if row["limit"] else ""
        return (
            f"{off:+.3f} ± {row['std_err']:.3f}, {errors:.1f} errors, {row['status_alone']}{size}"
        )
    if row["method"] == "bp":
        return f"{off:+.3f}" + ("" if row["converged"] else " (no)")
    return f"{off:+.4f}, {row['seconds']:.0f} s{'*' if row.get('is_early') else ''}"


def table(rows: list[dict[str, Any]]) -> str:
    """A line per network."""
    done = [row for row in rows if row["method"] == "annealing"]
    limits = sorted({(row["limit"], row.get("length") or "") for row in done})
    found = {
        (row["network"], row["method"], row["limit"], row.get("length") or ""): row for row in rows
    }
    heads = ["network", "log Z", *map(_named, limits)]
    heads += ["contraction", "BP", "pgmpy"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for name in sorted({row["network"] for row in rows}):
        own = [row for row in rows if row["network"] == name]
        holes = " (zeros)" if any(row.get("has_zeros") for row in own) else ""
        cells = [f"{name}{holes}", f"{own[0]['reference']:.3f}"]
        cells += [
            cell(found.get((name, "annealing", *limit)), is_annealed=True) for limit in limits
        ]
        cells += [
            cell(found.get((name, method, None, ""))) for method in ("contraction", "bp", "pgmpy")
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _named(limit: tuple[float, str]) -> str:
    return f"annealing, {limit[0]:g} s" if limit[0] else f"annealing, {limit[1]}"


def summary(rows: list[dict[str, Any]]) -> str:
    """What the table comes to."""
    done = [row for row in rows if row["method"] == "annealing"]
    ok = [row for row in done if row["status_alone"] == "ok"]
    wide = [row for row in ok if abs(row["log_z"] - row["reference"]) > 0.1]
    far = [row for row in ok if abs(row["log_z"] - row["reference"]) > 4 * row["std_err"] + 1e-3]
    loads = [row["load"] for row in done if row["load"] is not None]
    busy = (
        " Runs under limits of time had 2 quiet cores of a server; those of a fixed length a busy machine "
        f"(its load was {min(loads):g} to {max(loads):g} on 2 cores)."
        if loads
        else ""
    )
    wanted = {20.0: "20 s", 1200.0: "20 min"}
    left = [words for limit, words in wanted.items() if limit not in {row["limit"] for row in done}]
    missing = f" The limits of {' and '.join(left)} have not been run." if left else ""
    return (
        f"Of {len(done)} runs of annealing {len(ok)} are ok; of these {len(wide)} are more than 0.1 nats "
        f"off, and {len(far)} more than 4 errors (and the digits of the reference).{busy}{missing}"
    )


def main() -> None:
    rows = json.loads((HERE / "results.json").read_text("utf-8"))
    pgmpy = HERE / "pgmpy.json"
    if pgmpy.exists():
        rows += json.loads(pgmpy.read_text("utf-8"))
    text = f"{_HEAD}\n{summary(rows)}\n\n{table(rows)}\n"
    (HERE / "README.md").write_text(text, "utf-8")
    page = DOCS.read_text("utf-8")
    first, last = (page.index(mark) for mark in _MARKS)
    shown = f"{_MARKS[0]}\n\n{summary(rows)}\n\n{table(rows)}\n\n"
    DOCS.write_text(page[:first] + shown + page[last:], "utf-8")


if __name__ == "__main__":
    main()
