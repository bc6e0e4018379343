"""A result as text: one line per row, then one per message."""

__all__ = ["as_text"]


def as_text(title: str, rows: list[tuple[str, str]], messages: tuple[str, ...]) -> str:
    """The rows (label and value) aligned under a title, then the messages."""
    width = max(len(label) for label, _ in rows)
    lines = [f"  {label:<{width}}  {value}" for label, value in rows]
    return "\n".join([title, *lines, *(f"  ! {message}" for message in messages)])
