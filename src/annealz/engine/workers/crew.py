"""All blocks of a run: those of process 0, and those of the other processes.

No step needs another process. A chunk of steps ends with one exchange: each process sends process 0 what
its blocks add to the records and to the weights, some hundred bytes per block, and process 0 adds them in
the order of the blocks. The blocks themselves are sent when a checkpoint is due and at the end. Neither
the owners of the blocks nor the number of processes changes a bit.
"""

import jax
import numpy as np

from annealz.core.devices import local_devices
from annealz.engine.advance import Block
from annealz.engine.blocks import cut
from annealz.engine.work import Part, Share, Work
from annealz.engine.workers.team import Team, from_bytes, to_bytes

__all__ = ["Crew"]


class Crew:
    """The blocks of one run, in their order, of all processes."""

    def __init__(self, work: Work, team: Team):
        self.work, self.team = work, team
        self._owners = team.owners(len(work.blocks[0]))
        self._share = Share(work, self._of(0), local_devices())
        self._gathered: tuple[int, list[Block]] = (-1, [])
        if team.size > 1:
            team.tell("anneal", terms=work.terms, digest=work.digest())

    def begin(self, draws: np.ndarray | None) -> None:
        """Stand before the first step; in reverse from these draws."""
        if draws is None:
            self._share.begin()
            self.team.tell("begin")
            return
        blocks = cut(draws, *self.work.blocks)
        self.team.tell("begin", self._deal(blocks))
        self._share.begin([blocks[i] for i in self._of(0)])

    def put(self, step: int, blocks: list[Block]) -> None:
        """Stand at this step, with these blocks."""
        self.team.tell("put", self._deal(blocks), step=step)
        self._share.put(step, [blocks[i] for i in self._of(0)])

    def advance(self, step: int, stop: int) -> list[Part]:
        """Take steps step + 1 .. stop with every block."""
        self.team.tell("advance", step=step, stop=stop)
        mine = self._share.advance(step, stop)
        if self.team.size == 1:
            return mine
        like = jax.tree.map(np.asarray, mine[0])
        return self._join(mine, self.team.collect("parts"), like)

    def at(self, step: int) -> list[Block]:
        """The blocks as they stand at this step, the last or the one before."""
        mine = self._share.at(step)
        if self.team.size == 1:
            return mine
        if self._gathered[0] != step:
            self.team.tell("blocks", step=step)
            blocks = self._join(mine, self.team.collect("blocks"), self.work.like)
            self._gathered = step, blocks
        return self._gathered[1]

    def close(self) -> None:
        self._share.close()

    @property
    def idle(self) -> str | None:
        """What to say where some devices have no block."""
        here, count = len(local_devices()), len(self._owners)
        devices = here if self.team.size == 1 else sum(self.team.num_devices)
        if count >= devices:
            return None
        chains, width = self.work.num_chains, self.work.blocks[1]
        return (
            f"{count} of {devices} devices had work: {chains:,} chains are {count} of the blocks that "
            f"devices take; {devices * width:,} chains would take no longer."
        )

    def _of(self, p: int) -> list[int]:
        return [i for i, owner in enumerate(self._owners) if owner == p]

    def _deal(self, blocks: list) -> list[bytes]:
        """The blocks of every process as bytes; none for process 0, which has its own."""
        others = range(1, self.team.size)
        return [b"", *(to_bytes([blocks[i] for i in self._of(p)]) for p in others)]

    def _join(self, mine: list, answers: dict, like) -> list:
        """One list in the order of the blocks."""
        all_of = {0: iter(mine)}
        for p, answer in answers.items():
            all_of[p] = iter(from_bytes(answer.payload, [like] * len(self._of(p))))
        return [next(all_of[owner]) for owner in self._owners]
