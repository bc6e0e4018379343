"""Where the seconds of a default estimate go: docs/images/profile-cpu.png.

    python docs/figures/stages.py [--draw]

The default estimate, twice in one process; every call of a compiled program is logged with its chains
and its steps, and compiling by JAX's own events; docs/figures/profile-cpu.json holds what was measured.
With --draw the picture is made from that file again. On a quiet machine, or it shows the neighbours.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
LOG, PICTURE = HERE / "profile-cpu.json", HERE.parent / "images" / "profile-cpu.png"
MODEL = "mnist-pcd-20"
COLOURS = {
    "base": "#8aa1b8",
    "pilot": "#5b86b0",
    "run": "#2b5c8a",
    "second": "#d08c3f",
    "probe": "#b5651d",
}


def measured() -> list[dict[str, Any]]:
    """The two calls: the seconds of every stage, and within it of compiling, with its sweeps."""
    import jax

    import annealz
    from annealz.engine.work import Work
    from annealz.workflows.pilots import survey_mixing

    calls, compiled, steps = [], [], []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **_: (
            compiled.append((time.perf_counter(), seconds)) if "compile" in name else None
        )
    )
    advance, visit = Work.advance, survey_mixing.visit

    def logged_advance(self, given, i, block, step, stop, *terms):
        out = advance(self, given, i, block, step, stop, *terms)
        steps.append((time.perf_counter(), (stop - step) * self.blocks[1], self.num_chains))
        return out

    def logged_visit(path, kernel, stream, chains, population, betas, legs, *way, **options):
        out = visit(path, kernel, stream, chains, population, betas, legs, *way, **options)
        count = sum(leg.num_sweeps for leg in legs)
        steps.append((time.perf_counter(), count * len(chains), len(chains)))
        return out

    Work.advance, survey_mixing.visit = logged_advance, logged_visit
    for _ in range(2):
        marks: list[tuple[float, str]] = []
        began = time.perf_counter()
        annealz.estimate_log_z(
            MODEL,
            on_progress=lambda now, marks=marks: marks.append((time.perf_counter(), now.stage)),
        )
        ended = time.perf_counter()
        calls.append(
            {"seconds": ended - began, "stages": _stages(began, ended, marks, compiled, steps)}
        )
        compiled.clear()
        steps.clear()
    return calls


def _stages(began, ended, marks, compiled, steps) -> list[dict[str, Any]]:
    """Consecutive marks of one stage joined; what comes before the first mark belongs to the first."""
    stages: list[list[Any]] = []
    for when, name in marks:
        if name in COLOURS and (not stages or stages[-1][0] != name):
            stages.append([name, when])
    stages[0][1] = began
    rows = []
    for i, (name, first) in enumerate(stages):
        last = stages[i + 1][1] if i + 1 < len(stages) else ended
        inside = [one for one in steps if first < one[0] <= last]
        rows.append(
            {
                "name": name,
                "first": first - began,
                "last": last - began,
                "compiling": sum(seconds for when, seconds in compiled if first < when <= last),
                "sweeps": sum(one[1] for one in inside),
                "chains": sorted({one[2] for one in inside}),
            }
        )
    return rows


def draw(calls: list[dict[str, Any]]) -> None:
    figure, axes = plt.subplots(2, 1, figsize=(9, 4.6), sharex=True)
    longest = max(call["seconds"] for call in calls)
    for axis, call, title in zip(axes, calls, ("first call", "later call"), strict=True):
        for level, row in enumerate(call["stages"]):
            seconds = row["last"] - row["first"]
            axis.barh(level, seconds, left=row["first"], color=COLOURS[row["name"]], height=0.7)
            axis.barh(
                level, row["compiling"], left=row["first"], height=0.7, color="none", hatch="///",
                edgecolor="white", linewidth=0,
            )  # fmt: skip
            each = 1e6 * seconds / row["sweeps"] if row["sweeps"] else float("nan")
            chains = " and ".join(map(str, row["chains"]))
            words = (
                f"{seconds:.2f} s: {row['sweeps']:,} sweeps, {chains} chains, {each:.2f} µs each"
            )
            is_late = row["first"] > longest / 2
            axis.text(
                row["first"] - 0.1 if is_late else row["last"] + 0.1, level, words, va="center",
                ha="right" if is_late else "left", fontsize=8,
            )  # fmt: skip
        axis.set_yticks(range(len(call["stages"])), [row["name"] for row in call["stages"]])
        axis.invert_yaxis()
        axis.set_title(
            f"{title}, {call['seconds']:.1f} s (hatched: compiling)", loc="left", fontsize=10
        )
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    axes[-1].set_xlabel(f"seconds of estimate_log_z({MODEL!r}), 2 cores")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    if "--draw" not in sys.argv:
        LOG.write_text(json.dumps(measured(), indent=1) + "\n")
    draw(json.loads(LOG.read_text()))
