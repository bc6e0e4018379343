"""What the race says: tables for people, and for every claim whether it holds.

Worse means: the mean of mixing's replicates is larger than that of the other schedule that came out best in
that cell, and so with p < 0.05 (`significance.py`), by Holm over all cells of the measure. The best of
seven is chosen after the runs, by the same numbers, which makes it look better than it is: the test is
harder on mixing than its level says. Beside it stands Holm over all (cell, other) pairs, where nothing is
chosen.
"""

from typing import NamedTuple

import numpy as np

from outcome import Outcome
from race import NUM_CHAINS, Key
from significance import Ratio, holm, larger_p, mean_ratio

__all__ = ["Comparison", "blocks", "compare"]

LEVEL = 0.05
LEAST_ESS = 25  # below it annealz calls no run ok
OURS = "mixing"
_WORDS = {
    "mse": "MSE of log Ẑ",
    "dissipation": "dissipation",
    "variance": "Var[log w]",
    "ess": "ESS",
}


class Comparison(NamedTuple):
    """Mixing and the best of the others in one cell, by one measure."""

    key: Key
    best: Key
    ours: float
    theirs: float
    p: float
    p_holm: float
    """Over cells, against the best that was seen."""
    p_all: float
    """Over cells and others: the least of the cell."""

    @property
    def is_worse(self) -> bool:
        return self.p_holm < LEVEL


def compare(race: Outcome, measure: str, base: str = "base-rate") -> list[Comparison]:
    """Every cell that mixing shares with others; those without an exact log Z have no error to compare."""
    ours = [key for key in race.cells if key.schedule == OURS and key.base == base]
    if measure == "mse":
        ours = [key for key in ours if race.truth(key.model).is_exact]
    rivals = [_others(race, key) for key in ours]
    p = [
        larger_p(race.loss(key, measure), np.stack([race.loss(other, measure) for other in others]))
        for key, others in zip(ours, rivals, strict=True)
    ]
    means = [[race.loss(other, measure).mean() for other in others] for others in rivals]
    chosen = [int(np.argmin(m)) for m in means]
    p_best = np.array([row[i] for row, i in zip(p, chosen, strict=True)])
    ends = np.cumsum([row.size for row in p])[:-1]
    p_all = [row.min() for row in np.split(holm(np.concatenate(p)), ends)]
    sign = -1 if measure == "ess" else 1
    return [
        Comparison(
            key=key,
            best=others[i],
            ours=sign * float(race.loss(key, measure).mean()),
            theirs=sign * float(m[i]),
            p=float(one),
            p_holm=float(adjusted),
            p_all=float(least),
        )
        for key, others, i, m, one, adjusted, least in zip(
            ours, rivals, chosen, means, p_best, holm(p_best), p_all, strict=True
        )
    ]


def blocks(race: Outcome) -> dict[str, str]:
    """Markdown by name of block."""
    found = {measure: compare(race, measure) for measure in _WORDS}
    return {
        "record": _record(race),
        "reference": _reference(race),
        **{measure: _table(race, measure) for measure in _WORDS},
        "verdicts": _verdicts(race, found),
        "tests": _tests(found),
        "not-best": _not_best(found),
        "worse": _worse(race, found["variance"]),
        "ratios": _ratios(race),
        "uniform": _uniform(race),
        "uniform-verdict": _uniform_verdict(race),
    }


def model_label(name: str) -> str:
    _, algorithm, num_hidden = name.split("-")
    return f"{algorithm.upper()}({num_hidden})"


def schedule_label(name: str) -> str:
    return name if name == OURS else name.replace("varopt-", "VAROPT").upper()


def _others(race: Outcome, key: Key) -> list[Key]:
    return [k for k in race.cells if k._replace(schedule=key.schedule) == key and k != key]


def _record(race: Outcome) -> str:
    record = race.record
    sweeps = sum(key.num_steps * len(rows) for key, rows in race.cells.items()) * NUM_CHAINS
    return (
        f"- device: {record['device']}, jax {record['jax']}; pilots of mixing on CPU cores\n"
        f"- {len(race.cells)} cells of {record['num_replicates']} replicates of "
        f"{record['num_chains']:,} chains, {sweeps:,} sweeps of a chain in all, pilots included\n"
        f"- seed {record['seed']}\n"
    )


def _reference(race: Outcome) -> str:
    rows = []
    for model in race.models("base-rate"):
        truth = race.truth(model)
        error = "exact" if truth.is_exact else f"reference, ± {truth.std_err:.4f}"
        rows.append([model_label(model), f"{truth.log_z:.4f}", error])
    return _markdown(["model", "log Z", ""], rows, flush="lrl")


def _table(race: Outcome, measure: str) -> str:
    """One row a (model, K), one column a schedule; the best in bold."""
    names = list(dict.fromkeys(key.schedule for key in race.cells if key.base == "base-rate"))
    needs_truth = measure in ("mse", "dissipation")
    rows = []
    for model in race.models("base-rate"):
        for steps in race.steps("base-rate"):
            keys = [Key(model, "base-rate", name, steps) for name in names]
            mark = "†" if needs_truth and not race.truth(model).is_exact else ""
            row = [model_label(model) + mark, f"{steps:,}", *_best_bold(race, keys, measure)]
            rows.append(row)
    return _markdown(
        ["model", "K", *map(schedule_label, names)], rows, flush="lr" + len(names) * "r"
    )


def _best_bold(race: Outcome, keys: list[Key], measure: str) -> list[str]:
    losses = [float(race.loss(key, measure).mean()) for key in keys]
    texts = [_number(abs(x) * (1e4 if measure == "mse" else 1)) for x in losses]
    best = int(np.argmin(losses))
    texts[best] = f"**{texts[best]}**"
    return texts


def _tests(found: dict[str, list[Comparison]]) -> str:
    rows = []
    for measure, cells in found.items():
        worse = [c for c in cells if c.is_worse]
        kept = [c for c in worse if c.p_all < LEVEL]
        rows.append(
            [
                _WORDS[measure] + (" (20 units)" if measure == "mse" else ""),
                f"{sum(_is_best(c, measure) for c in cells)} of {len(cells)}",
                str(sum(c.p < LEVEL for c in cells)),
                str(len(worse)),
                str(len(kept)),
                "**does not hold**" if worse else "**holds**",
            ]
        )
    heads = ["by", "mixing is best in", "p < 0.05", "Holm over cells", "Holm over all pairs", ""]
    return _markdown(heads, rows, flush="lrrrrl")


def _is_best(c: Comparison, measure: str) -> bool:
    return c.ours >= c.theirs if measure == "ess" else c.ours <= c.theirs


def _not_best(found: dict[str, list[Comparison]]) -> str:
    rows = []
    for measure, cells in found.items():
        scale = 1e4 if measure == "mse" else 1
        unit = ", 10⁻⁴" if measure == "mse" else ""
        for c in cells:
            if not _is_best(c, measure):
                texts = [_number(scale * x) for x in (c.ours, c.theirs)]
                ps = [_p(p) for p in (c.p, c.p_holm, c.p_all)]
                name = f"{_number(scale * c.theirs)} ({schedule_label(c.best.schedule)})"
                verdict = "**worse**" if c.is_worse else ""
                rows.append([_WORDS[measure] + unit, _where(c.key), texts[0], name, *ps, verdict])
    heads = ["by", "cell", "mixing", "best other", "p", "Holm, cells", "Holm, pairs", ""]
    return _markdown(heads, rows, flush="llrrrrrl")


def _worse(race: Outcome, variances: list[Comparison]) -> str:
    """Where mixing has more Var[log w], p < 0.05 before correction: what the other measures say."""
    rows, lines = [], []
    suspects = [c for c in variances if c.p < LEVEL]
    for c in suspects:
        for key in (c.key, c.best):
            x = {m: race.loss(key, m).mean() for m in _WORDS}
            rest = f"{x['dissipation'] - x['variance'] / 2:+.2f}".replace("-", "−")
            numbers = [_number(x["variance"]), _number(x["dissipation"]), rest]
            rows.append([_where(key), schedule_label(key.schedule), *numbers, _number(-x["ess"])])
        for measure in ("dissipation", "ess", "mse"):
            others = _others(race, c.key)
            losses = np.stack([race.loss(other, measure) for other in others])
            i = int(np.argmin(losses.mean(1)))
            scale = 1e4 if measure == "mse" else 1
            ours, theirs = (
                _number(scale * abs(float(x.mean())))
                for x in (race.loss(c.key, measure), losses[i])
            )
            p = larger_p(race.loss(c.key, measure), losses[[i]])[0]
            lines.append(
                f"- {_where(c.key)}, {_WORDS[measure]}: {ours} against {theirs} of the best other, "
                f"{schedule_label(others[i].schedule)}; p of being worse {_p(p)}, uncorrected"
                + (
                    ""
                    if measure != "mse" or race.truth(c.key.model).is_exact
                    else ", by the reference"
                )
            )
    heads = ["cell", "", "Var[log w]", "dissipation", "dissipation − Var / 2", "ESS"]
    return _markdown(heads, rows, flush="llrrrr") + "\n" + "\n".join(lines) + "\n"


def _ratio(race: Outcome, model: str, other: str) -> Ratio:
    steps = max(race.steps("base-rate"))
    ours, theirs = (Key(model, "base-rate", name, steps) for name in (OURS, other))
    return mean_ratio(race.loss(ours, "variance"), race.loss(theirs, "variance"))


def _ratios(race: Outcome) -> str:
    rows = []
    for model in race.models("base-rate"):
        row = [model_label(model)]
        for other, bound, word in (("varopt", 1 / 2, "1/2"), ("linear", 1 / 3, "1/3")):
            ratio = _ratio(race, model, other)
            row += [_interval(ratio), f"{'at most' if ratio.value <= bound else 'above'} {word}"]
        rows.append(row)
    return _markdown(["model", "to VAROPT", "", "to LINEAR", ""], rows, flush="lrlrl")


def _verdicts(race: Outcome, found: dict[str, list[Comparison]]) -> str:
    lines = []
    worse = {m: [c for c in cells if c.is_worse] for m, cells in found.items()}
    failed = [m for m in ("mse", "dissipation", "variance") if worse[m]]
    lines.append(
        "1. *Mixing is never significantly worse than the best of the others.* "
        + (
            "**Holds**"
            if not failed
            else f"**Does not hold**: by {' and '.join(_WORDS[m] for m in failed)} it is worse"
        )
        + (" in " + "; ".join(_told(c) for m in failed for c in worse[m]) if failed else "")
        + ". "
        + " ".join(
            f"By {_WORDS[m]} it is {'worse in ' + str(len(worse[m])) if worse[m] else 'worse in none'} "
            f"of {len(found[m])} cells."
            for m in _WORDS
            if m not in failed
        )
        + _near_misses(found)
        + f" The test by MSE is weak: {_power(race, found['mse'])}."
    )
    big = [m for m in race.models("base-rate") if m.endswith("-500")]
    small = "mnist-cd25-20"
    half = [m for m in big if _ratio(race, m, "varopt").value <= 1 / 2]
    is_half = _ratio(race, small, "varopt").value <= 1 / 2
    told = ", ".join(
        f"{model_label(m)} {_interval(_ratio(race, m, 'varopt'))}" for m in [small, *big]
    )
    lines.append(
        "2. *At the largest K its Var[log w] is at most half of VAROPT's on CD25(20) and on at least "
        f"two RBMs of 500 units.* **{'Holds' if is_half and len(half) >= 2 else 'Does not hold'}**: {told}."
    )
    asked = [small, *half]
    third = {m: _ratio(race, m, "linear") for m in asked}
    told = ", ".join(f"{model_label(m)} {_interval(r)}" for m, r in third.items())
    missed = [m for m, r in third.items() if r.value > 1 / 3]
    surely = [m for m in missed if third[m].low > 1 / 3]
    lines.append(
        "3. *And at most a third of LINEAR's*, on the same models. **"
        + ("Holds" if not missed else "Does not hold")
        + (f" on {', '.join(map(model_label, missed))}" if missed else "")
        + f"**: {told}."
        + (
            f" The interval of {', '.join(map(model_label, surely))} excludes 1/3."
            if surely
            else (" The interval reaches below 1/3." if missed else "")
        )
    )
    return "\n".join(lines) + "\n"


def _near_misses(found: dict[str, list[Comparison]]) -> str:
    near = [(m, c) for m, cells in found.items() for c in cells if c.p < LEVEL and not c.is_worse]
    told = [f"by {_WORDS[m]} {_told(c)}, p {_p(c.p)} before correction" for m, c in near]
    return f" Not counted, for the correction alone: {'; '.join(told)}." if near else ""


def _told(c: Comparison) -> str:
    return (
        f"{_where(c.key)} ({_number(c.ours)} against {_number(c.theirs)} of "
        f"{schedule_label(c.best.schedule)}, Holm's p {_p(c.p_holm)})"
    )


def _power(race: Outcome, cells: list[Comparison]) -> str:
    ratios = [mean_ratio(race.loss(c.key, "mse"), race.loss(c.best, "mse")) for c in cells]
    width = float(np.exp(np.mean([np.log(r.high / r.value) for r in ratios])))
    low, high = (f(c.ours / c.theirs for c in cells) for f in (min, max))
    return (
        f"the MSE of mixing is {low:.2f} to {high:.2f} times that of the best other, and "
        f"{race.record['num_replicates']} replicates determine such a ratio to a factor of {width:.1f} "
        "either way"
    )


def _uniform(race: Outcome) -> str:
    rows = []
    for model in race.models("uniform"):
        for steps in race.steps("uniform"):
            keys = [k for k in race.cells if k[:2] == (model, "uniform") and k[3] == steps]
            for measure in ("ess", "variance", "mse"):
                unit = ", 10⁻⁴" if measure == "mse" else ""
                cells = _best_bold(race, keys, measure)
                rows.append([model_label(model), f"{steps:,}", _WORDS[measure] + unit, *cells])
    names = list(dict.fromkeys(k.schedule for k in race.cells if k.base == "uniform"))
    return _markdown(["model", "K", "", *map(schedule_label, names)], rows, flush="lrlrrrr")


def _uniform_verdict(race: Outcome) -> str:
    """Collapse, in two senses, for varopt and mixing."""
    ours = [k for k in race.cells if k.base == "uniform" and k.schedule == OURS]
    lines, below, low = [], {}, {}
    for name in ("varopt", OURS):
        keys = [k._replace(schedule=name) for k in ours]
        p = holm(
            np.array(
                [
                    larger_p(
                        race.loss(k, "ess"), race.loss(k._replace(schedule="linear"), "ess")[None]
                    )[0]
                    for k in keys
                ]
            )
        )
        below[name] = [k for k, one in zip(keys, p, strict=True) if one < LEVEL]
        low[name] = [k for k in keys if race.column(k, "ess").mean() < LEAST_ESS]
    lost = [k._replace(schedule=OURS) for k in below["varopt"]]
    both = [k for k in lost if k in below[OURS]]
    lines.append(
        f"- **ESS significantly below LINEAR's** (Holm over {len(ours)} cells): VAROPT in "
        f"{_listed(race, below['varopt'])}; mixing in {_listed(race, below[OURS])}. "
        f"*Where VAROPT collapses, mixing does not*: **{'does not hold' if both else 'holds'}**."
    )
    both = [k for k in low[OURS] if k._replace(schedule="varopt") in low["varopt"]]
    lines.append(
        f"- **Mean ESS below {LEAST_ESS}**, where annealz calls no run ok: VAROPT in "
        f"{_listed(race, low['varopt'])}; mixing in {_listed(race, low[OURS])}. "
        f"*Where VAROPT collapses, mixing does not*: **{'does not hold' if both else 'holds'}**."
    )
    rivals = [k._replace(schedule="varopt") for k in ours]
    for measure, word in (("ess", "more ESS"), ("mse", "a smaller MSE")):
        p = holm(
            np.array(
                [
                    larger_p(race.loss(v, measure), race.loss(k, measure)[None])[0]
                    for k, v in zip(ours, rivals, strict=True)
                ]
            )
        )
        better = [k for k, one in zip(ours, p, strict=True) if one < LEVEL]
        lines.append(
            f"- Mixing has significantly {word} than VAROPT in {len(better)} of {len(ours)} cells"
            + (f": {', '.join(map(_where, better))}." if better else ".")
        )
    lines += [_trust(race, k) for k in ours if k.model == "mnist-cd25-20"]
    return "\n".join(lines) + "\n"


def _trust(race: Outcome, key: Key) -> str:
    """Whether the ESS predicts the error."""
    ess, off = race.column(key, "ess"), race.column(key, "log_z") - race.truth(key.model).log_z
    predicted = np.sqrt(np.mean(1 / ess - 1 / NUM_CHAINS))
    line = (
        f"- {_where(key)}: the root mean square error of mixing is {np.sqrt((off**2).mean()):.2f} nats, "
        f"that predicted by its ESS {predicted:.2f}."
    )
    high = off[ess > 100]
    if high.size:
        low_end, high_end = (f"{x:+.2f}".replace("-", "−") for x in (high.min(), high.max()))
        line += (
            f" The {high.size} replicates with an ESS above 100 are off by {low_end} to {high_end}."
        )
    return line


def _listed(race: Outcome, keys: list[Key]) -> str:
    """Cells with their ESS."""
    return ", ".join(f"{_where(k)} ({race.column(k, 'ess').mean():.0f})" for k in keys) or "none"


def _where(key: Key) -> str:
    return f"{model_label(key.model)} K = {key.num_steps:,}"


def _interval(ratio: Ratio) -> str:
    return f"{ratio.value:.3f} ({ratio.low:.3f}–{ratio.high:.3f})"


def _number(x: float) -> str:
    """Three digits, never an exponent."""
    if x == 0:
        return "0"
    decimals = max(0, 2 - int(np.floor(np.log10(abs(x)))))
    return f"{x:,.{decimals}f}"


def _p(p: float) -> str:
    return f"{p:.2g}" if p >= 0.0001 else "< 0.0001"


def _markdown(heads: list[str], rows: list[list[str]], flush: str) -> str:
    rule = ["---:" if f == "r" else "---" for f in flush]
    return "".join(f"| {' | '.join(words)} |\n" for words in (heads, rule, *rows))
