"""JSON, of any depth and any bytes, or a ValueError."""

import json
from typing import Any

from annealz.io.reading.budget import max_text, size_text

__all__ = ["parse_json"]


def parse_json(text: bytes | str) -> Any:
    """The value; what is nested too deeply is refused like what is not JSON."""
    limit = max_text()
    if len(text) > limit:
        raise ValueError(f"it is a text of {size_text(len(text))}, above {size_text(limit)}")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
