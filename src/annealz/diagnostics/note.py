"""What a result has to say, as data: findings, advice, and text such as that a disk is full."""

from collections.abc import Iterable

from annealz.diagnostics.advice import Advice
from annealz.diagnostics.finding import Finding
from annealz.diagnostics.remedy import Writer

__all__ = ["Note", "messages_of"]

Note = Finding | Advice | str


def messages_of(notes: Iterable[Note], write: Writer) -> tuple[str, ...]:
    """A sentence for each, with settings as the medium writes them."""
    return tuple(note if isinstance(note, str) else note.in_words(write) for note in notes)
