"""The ratios that matter, what the engine is held to, and whether it keeps it.

All ratios are of times per step within one race. Where rbms races in several settings, its fastest
one counts.
"""

from typing import Any, NamedTuple

from race import ratio

__all__ = ["AT_MOST_OF_BARE", "TARGETS", "ratios", "verdicts"]

_RATIOS = (
    ("rbms", "annealz"),
    ("plain JAX", "annealz"),
    ("BlackJAX SMC", "annealz"),
    ("BlackJAX SMC", "annealz, 10 leapfrogs"),
    ("annealz", "bare products"),
    ("annealz", "bare arithmetic"),
)
AT_MOST_OF_BARE = 2.0  # annealz / bare arithmetic, of models other than RBMs, on a GPU


class Target(NamedTuple):
    """A bound on the ratio of two contestants' times per step at one number of hidden units."""

    num_hidden: int
    above: str
    below: str
    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, ratio: float) -> bool:
        high_enough = self.at_least is None or ratio >= self.at_least
        return high_enough and (self.at_most is None or ratio <= self.at_most)


TARGETS = (
    Target(20, "rbms", "annealz", at_least=15.0),
    Target(20, "annealz", "bare products", at_most=1.8),
    Target(500, "rbms", "annealz", at_least=5.2),
    Target(500, "annealz", "bare products", at_most=1.15),
)


def ratios(entries: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every ratio whose two contestants took part, by "above / below"."""
    out = {}
    for above, below in _RATIOS:
        settings = [entry for name, entry in entries.items() if name.split(",")[0] == above]
        if settings and below in entries:
            fastest = min(settings, key=lambda entry: entry["ms_per_step"])
            out[f"{above} / {below}"] = ratio(fastest, entries[below])
    return out


def verdicts(compared: dict[int, dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Each target with its ratio, and True, False or (contestant absent) None."""
    out = []
    for target in TARGETS:
        found = compared[target.num_hidden].get(f"{target.above} / {target.below}")
        value = None if found is None else found["ratio"]
        met = None if value is None else target.is_met(value)
        out.append(target._asdict() | {"ratio": value, "met": met})
    return out
