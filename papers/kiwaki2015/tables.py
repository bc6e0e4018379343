"""The tables, from the raw results.

    estimates    the paper's tables 1 and 2: every (model, schedule) at the largest K, the replicates
                 pooled (pooled.py), beside the paper's numbers
    steps        log Z-hat and median ESS at every K
    agreement    each replicate of a model whose log Z is known: z = (log Z-hat - log Z) / SE
    coverage     the same over all models and schedules, at every K
    runs         every replicate of every cell

Off is log Z-hat - log Z in nats, and in standard errors of the pooled estimate. The ESS is that of
one replicate: its median over replicates, and its range.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pooled import pool
from published import PUBLISHED, PUBLISHED_BASE, PUBLISHED_EXACT
from results import COLUMNS, Key, Results
from settings import SIZES, model_label, schedule_label
from sheet import Column, Sheet

__all__ = [
    "agreement",
    "estimates",
    "exact_line",
    "runs",
    "sheets",
    "steps",
    "summary",
    "write_tables",
]

_WHICH = (
    Column("model", "model"),
    Column("base", ""),
    Column("schedule", "schedule"),
)
_AGREEMENT = (
    Column("num_replicates", "replicates", shown="d", kept="d"),
    Column("num_ok", "ok", shown="d", kept="d"),
    Column("num_covered_ok", "ok and covered", shown="d", kept="d"),
    Column("largest_z_ok", "largest abs z, ok", shown=".2f", kept=".4f"),
    Column("num_covered_not_ok", "not ok but covered", shown="d", kept="d"),
    Column("largest_z_not_ok", "largest abs z, not ok", shown=".2f", kept=".4f"),
)


def write_tables(results: Results, folder: Path) -> None:
    """All tables as NAME.csv and NAME.md, and runs.csv."""
    for name, sheet in sheets(results).items():
        sheet.write(folder, name)


def sheets(results: Results) -> dict[str, Sheet]:
    """All tables by name; a size or a base that was not run has none."""
    out = {}
    for base in dict.fromkeys(key.base for key in results.cells):
        for number, size in enumerate(SIZES, start=1):
            if any(key.model in SIZES[size] for key in results.cells):
                out[f"table-{number}-{base}"] = estimates(results, size, base)
                out[f"steps-{size}-{base}"] = steps(results, size, base)
        out[f"agreement-{base}"] = agreement(results, base)
        out[f"coverage-{base}"] = coverage(results, base)
    out["runs"] = runs(results)
    return {name: sheet.without_empty() for name, sheet in out.items() if sheet.rows}


def estimates(results: Results, size: int, base: str) -> Sheet:
    """Every (model, schedule) of one size and base at the largest K."""
    columns = (
        *_WHICH,
        Column("num_steps", "", kept="d"),
        Column("exact_log_z", "", kept=".6f"),
        Column("log_z", "", kept=".6f"),
        Column("std_err", "", kept=".6f"),
        Column("", "log Ẑ", shown="s"),
        Column("off", "off, nats", shown="+.4f", kept=".6f"),
        Column("off_std_errs", "off, s.e.", shown="+.1f", kept=".4f"),
        Column("ess_median", "", kept=".3f"),
        Column("ess_min", "", kept=".3f"),
        Column("ess_max", "", kept=".3f"),
        Column("", "ESS (range)", shown="s"),
        Column("variance", "Var[log w]", shown=".3f", kept=".6f"),
        Column("num_ok", "", kept="d"),
        Column("num_replicates", "", kept="d"),
        Column("", "ok", shown="s"),
        Column("paper_log_z", "paper: log Ẑ", shown=".3f", kept=".3f"),
        Column("paper_ess", "paper: ESS", shown="d", kept="d"),
    )
    rows = []
    for key in _largest(results, base, SIZES[size]):
        cell, exact = results.cells[key], results.exact_log_z(key.model)
        estimate, ess = pool(cell, results.num_chains), cell["ess"]
        off = None if exact is None else estimate.log_z - exact
        num_ok, published = int(cell["is_ok"].sum()), _published(key)
        median = float(np.median(ess))
        rows.append(
            (
                *_words(key),
                key.num_steps,
                exact,
                *estimate,
                f"{estimate.log_z:.4f} ± {estimate.std_err:.4f}",
                off,
                None if off is None else off / estimate.std_err,
                median,
                float(ess.min()),
                float(ess.max()),
                f"{median:.0f} ({ess.min():.0f}–{ess.max():.0f})",
                float(cell["variance"].mean()),
                num_ok,
                ess.size,
                f"{num_ok} of {ess.size}",
                None if published is None else published.log_z,
                None if published is None else published.ess,
            )
        )
    return Sheet(columns, rows)


def exact_line(results: Results) -> str:
    """The exact log Z of the models that have one, ours and the paper's."""
    known = [model for model in results.record["models"] if results.exact_log_z(model) is not None]
    return "; ".join(
        f"{model_label(model)} {results.exact_log_z(model):.4f}"
        + (f" (paper: {PUBLISHED_EXACT[model]})" if model in PUBLISHED_EXACT else "")
        for model in known
    )


def summary(results: Results, size: int, base: str) -> Sheet:
    """log Z-hat and median ESS at the largest K, in the paper's layout: a column a model."""
    texts: dict[str, dict[str, str]] = {}
    for key in _largest(results, base, SIZES[size]):
        cell = results.cells[key]
        estimate, median = pool(cell, results.num_chains), np.median(cell["ess"])
        text = f"{estimate.log_z:.4f} ± {estimate.std_err:.4f} / {median:.0f}"
        texts.setdefault(key.schedule, {})[model_label(key.model)] = text
    models = list(dict.fromkeys(model for row in texts.values() for model in row))
    columns = (Column("schedule", "schedule"), *(Column(m, m, shown="s") for m in models))
    rows = [(schedule_label(name), *(row.get(m) for m in models)) for name, row in texts.items()]
    return Sheet(columns, rows)


def steps(results: Results, size: int, base: str) -> Sheet:
    """At every K: log Z-hat, pooled; |log Z-hat - log Z| and ESS of a replicate, their medians."""
    columns = (
        *_WHICH,
        Column("num_steps", "K", shown=",d", kept="d"),
        Column("log_z", "log Ẑ", shown=".4f", kept=".6f"),
        Column("std_err", "s.e.", shown=".4f", kept=".6f"),
        Column("off", "off, nats", shown="+.4f", kept=".6f"),
        Column("abs_off_median", "abs off, median", shown=".4f", kept=".6f"),
        Column("ess_median", "ESS, median", shown=".0f", kept=".3f"),
    )
    rows = []
    for key, cell in results.cells.items():
        if key.base == base and key.model in SIZES[size]:
            exact, estimate = results.exact_log_z(key.model), pool(cell, results.num_chains)
            off = distance = None
            if exact is not None:
                off = estimate.log_z - exact
                distance = float(np.median(np.abs(cell["log_z"] - exact)))
            median = float(np.median(cell["ess"]))
            rows.append((*_words(key), key.num_steps, *estimate, off, distance, median))
    return Sheet(columns, rows)


def agreement(results: Results, base: str) -> Sheet:
    """How the replicates at the largest K lie about the exact log Z, by their status.

    Covered: the 95 % interval contains the exact value.
    """
    rows = []
    for key in _largest(results, base, tuple(results.record["models"])):
        if results.exact_log_z(key.model) is not None:
            rows.append((*_words(key), *_agree(results, [key])))
    return Sheet((*_WHICH, *_AGREEMENT), rows)


def coverage(results: Results, base: str) -> Sheet:
    """The same counts over all models and schedules, at every K."""
    known = [
        k for k in results.cells if k.base == base and results.exact_log_z(k.model) is not None
    ]
    rows = []
    for num_steps in sorted({key.num_steps for key in known}):
        keys = [key for key in known if key.num_steps == num_steps]
        rows.append((base, num_steps, *_agree(results, keys)))
    steps_column = Column("num_steps", "K", shown=",d", kept="d")
    return Sheet((Column("base", ""), steps_column, *_AGREEMENT), rows)


def _agree(results: Results, keys: list[Key]) -> tuple:
    """The columns of _AGREEMENT for all replicates of these cells."""
    z, is_covered, is_ok = [], [], []
    for key in keys:
        cell, exact = results.cells[key], results.exact_log_z(key.model)
        z.append(np.abs(cell["log_z"] - exact) / cell["std_err"])
        is_covered.append((cell["low"] <= exact) & (exact <= cell["high"]))
        is_ok.append(cell["is_ok"] > 0)
    z, covered, ok = np.concatenate(z), np.concatenate(is_covered), np.concatenate(is_ok)
    return (
        ok.size,
        int(ok.sum()),
        int((covered & ok).sum()),
        float(z[ok].max()) if ok.any() else None,
        int((covered & ~ok).sum()),
        float(z[~ok].max()) if (~ok).any() else None,
    )


def runs(results: Results) -> Sheet:
    """One row per replicate; CSV alone."""
    columns = (
        *(Column(name, "") for name in ("model", "base", "schedule", "num_steps", "replicate")),
        *(Column(name, "", kept="d" if name == "is_ok" else ".6f") for name in COLUMNS),
    )
    rows = []
    for key, cell in results.cells.items():
        for replicate, row in enumerate(cell.rows):
            numbers = [
                int(x) if name == "is_ok" else float(x)
                for name, x in zip(COLUMNS, row, strict=True)
            ]
            rows.append((*key, replicate, *numbers))
    return Sheet(columns, rows)


def _largest(results: Results, base: str, models: tuple[str, ...]) -> Iterator[Key]:
    """The cells of these models at the largest K, in the order in which they were run."""
    for key in results.cells:
        if key.num_steps == results.largest and key.base == base and key.model in models:
            yield key


def _words(key: Key) -> tuple[str, str, str]:
    return model_label(key.model), key.base, schedule_label(key.schedule)


def _published(key: Key):
    return PUBLISHED.get((key.model, key.schedule)) if key.base == PUBLISHED_BASE else None
