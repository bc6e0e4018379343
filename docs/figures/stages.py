"""Where the seconds of a default estimate go: docs/images/profile-cpu.png and profile-gpu.png.

    python docs/figures/stages.py [--draw | --measure] [cpu | gpu] [FOLDER]

Calls of the default estimate in one process: on a CPU the first and a later one, on a GPU later ones of two
models, the median of five by its seconds. Every call of a compiled program is logged with its time, its
chains and its steps, and compiling by JAX's own events. On a GPU surveys go side by side: that of the pilot
lies in the time of the base. docs/figures/profile-cpu.json and profile-gpu.json hold what was measured, or
files of these names in FOLDER, with the pictures. With --draw the picture is made from its file again, with
--measure the file without a picture. On a quiet machine, or it shows the neighbours.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
IMAGES = HERE.parent / "images"
MODELS = ("mnist-pcd-20", "mnist-pcd-500")
NUM_LATER = 5
COLOURS = {
    "base": "#8aa1b8",
    "pilot": "#5b86b0",
    "run": "#2b5c8a",
    "second": "#d08c3f",
    "probe": "#b5651d",
}


def on_cpu() -> list[dict[str, Any]]:
    """The first call and a later one."""
    first, later = measured(MODELS[0], 2)
    return [first | {"call": "first call"}, later | {"call": "later call"}]


def on_gpu() -> list[dict[str, Any]]:
    """A later call of either model."""
    later = (measured(model, 1 + NUM_LATER)[1:] for model in MODELS)
    medians = (sorted(calls, key=lambda call: call["seconds"])[NUM_LATER // 2] for calls in later)
    return [median | {"call": f"a later call, the median of {NUM_LATER}"} for median in medians]


def measured(model: str, num_calls: int) -> list[dict[str, Any]]:
    """The seconds of every stage of every call, of compiling and of steps within it, and its sweeps."""
    import jax

    import annealz
    from annealz.engine.run_program import RunProgram
    from annealz.pilots import survey_mixing

    calls, compiled, steps = [], [], []
    kind = jax.devices()[0].device_kind
    device = f"{os.cpu_count()} cores" if kind == "cpu" else kind

    def listen(name: str, seconds: float, **_: Any) -> None:
        if "compile" in name:
            compiled.append((time.perf_counter(), seconds))

    def logged(function: Callable[..., Any], count: Callable[..., tuple[int, int]]):
        def call(*given, **options):
            began = time.perf_counter()
            out = function(*given, **options)
            ended = time.perf_counter()
            steps.append((ended, *count(*given), began))
            return out

        return call

    def steps_of_run(work, given, i, block, step, stop, *terms):
        return (stop - step) * work.blocks[1], work.num_chains

    def sweeps_of_survey(path, kernel, stream, chains, population, betas, legs, *way):
        return sum(leg.num_sweeps for leg in legs) * len(chains), len(chains)

    before = RunProgram.advance, survey_mixing.visit
    RunProgram.advance = logged(before[0], steps_of_run)
    survey_mixing.visit = logged(before[1], sweeps_of_survey)
    jax.monitoring.register_event_duration_secs_listener(listen)
    for seed in range(num_calls):
        marks: list[tuple[float, str]] = []
        began = time.perf_counter()
        annealz.estimate_log_z(
            model,
            seed=seed,
            on_progress=lambda now, marks=marks: marks.append((time.perf_counter(), now.stage)),
        )
        ended = time.perf_counter()
        stages = _stages(began, ended, marks, compiled, steps)
        about = {"model": model, "device": device, "seconds": ended - began}
        calls.append(about | {"stages": stages})
        compiled.clear()
        steps.clear()
    RunProgram.advance, survey_mixing.visit = before
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
                "stepping": _covered((one[3], one[0]) for one in inside),
                "sweeps": sum(one[1] for one in inside),
                "chains": sorted({one[2] for one in inside}),
            }
        )
    return rows


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds inside of at least one: halves of a run go side by side."""
    total, reached = 0.0, float("-inf")
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, reached))
        reached = max(reached, last)
    return total


def draw(calls: list[dict[str, Any]], picture: Path) -> None:
    import matplotlib.pyplot as plt

    size = 9, max(2.3 * len(calls), 2.8)
    figure, axes = plt.subplots(len(calls), 1, figsize=size, sharex=True, squeeze=False)
    axes = axes[:, 0]
    longest = max(call["seconds"] for call in calls)
    hatched = "compiling" if any(call["call"] == "first call" for call in calls) else "stepping"
    words = {"compiling": "compiling", "stepping": "inside of programs that take steps"}[hatched]
    for axis, call in zip(axes, calls, strict=True):
        for level, row in enumerate(call["stages"]):
            _draw_stage(axis, level, row, longest, hatched)
        axis.set_yticks(range(len(call["stages"])), [row["name"] for row in call["stages"]])
        axis.invert_yaxis()
        title = f"{call['call']}, {call['model']}: {call['seconds']:.3g} s"
        title += f" (hatched: {words})" if hatched in call["stages"][0] else ""
        axis.set_title(title, loc="left", fontsize=10)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    axes[-1].set_xlabel(f"seconds of estimate_log_z, {calls[0]['device']}")
    figure.tight_layout()
    figure.savefig(picture, dpi=110)


def _draw_stage(axis: Any, level: int, row: dict[str, Any], longest: float, hatched: str) -> None:
    seconds, space = row["last"] - row["first"], longest / 100
    axis.barh(level, seconds, left=row["first"], color=COLOURS[row["name"]], height=0.7)
    axis.barh(
        level, row.get(hatched, 0.0), left=row["first"], height=0.7, color="none", hatch="///",
        edgecolor="white", linewidth=0,
    )  # fmt: skip
    words = f"{seconds:.2g} s"
    if row["sweeps"]:
        chains, each = " and ".join(map(str, row["chains"])), 1e6 * seconds / row["sweeps"]
        words += f": {row['sweeps']:,} sweeps, {chains} chains, {each:.2g} µs each"
    is_late = row["first"] > longest / 2
    axis.text(
        row["first"] - space if is_late else row["last"] + space, level,
        words, va="center", ha="right" if is_late else "left", fontsize=8,
    )  # fmt: skip


def main(words: list[str]) -> None:
    given = [word for word in words if not word.startswith("--")]
    where, folder = given[0] if given else "cpu", Path(given[1]) if len(given) > 1 else None
    log = (folder or HERE) / f"profile-{where}.json"
    if "--draw" not in words:
        log.write_text(json.dumps({"cpu": on_cpu, "gpu": on_gpu}[where](), indent=1) + "\n")
    if "--measure" not in words:
        draw(json.loads(log.read_text()), (folder or IMAGES) / f"profile-{where}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
