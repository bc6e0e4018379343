"""What would help an estimate most, all things considered: remedies, the best first."""

import dataclasses

from annealz.diagnostics.remedy import Remedy, Writer

__all__ = ["Advice"]


@dataclasses.dataclass(frozen=True)
class Advice:
    """Remedies for one sentence, and the one to try next."""

    remedies: tuple[Remedy, ...] = ()
    next_try: Remedy | None = None
    """The first with which a run can be started as it is; None if there is no such remedy."""

    def in_words(self, write: Writer) -> str:
        """One sentence; empty without remedies."""
        words = ", or ".join(remedy.in_words(write) for remedy in self.remedies)
        return f"to do better: {words}." if words else ""
