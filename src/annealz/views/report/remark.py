"""A note on a page: what was found, and in bold what to do about it."""

from annealz.diagnostics.findings import Advice, Finding, Note, in_options
from annealz.views.report.page import Html, join, tag

__all__ = ["remark"]


def remark(note: Note) -> Html:
    """One note."""
    if isinstance(note, Advice):
        return tag("strong", note.in_words(in_options))
    if not isinstance(note, Finding):
        return join([note])
    to_do = note.what_to_do(in_options)
    return join([f"{note.what}; ", tag("strong", f"{to_do}.")] if to_do else [f"{note.what}."])
