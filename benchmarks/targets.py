"""What the engine is held to, as ratios within one run, and whether it keeps it."""

from typing import Any, NamedTuple

__all__ = ["TARGETS", "verdicts"]


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
    Target(20, "rbms", "annealz", at_least=7.0),
    Target(500, "rbms", "annealz", at_least=4.5),
    Target(500, "annealz", "bare products", at_most=1.25),
)


def verdicts(ratios: dict[int, dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Each target with its ratio, and True, False or (contestant absent) None."""
    out = []
    for target in TARGETS:
        found = ratios[target.num_hidden].get(f"{target.above} / {target.below}")
        ratio = None if found is None else found["ratio"]
        met = None if ratio is None else target.is_met(ratio)
        out.append(target._asdict() | {"ratio": ratio, "met": met})
    return out
