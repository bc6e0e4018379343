"""JSON records with a digest of their own: an altered or damaged one is recognised."""

import hashlib
import json
from pathlib import Path
from typing import Any

from annealz.io.reading.fields import table
from annealz.io.reading.json_text import parse_json
from annealz.io.reading.regular import read_small
from annealz.io.reading.words import told
from annealz.io.storage.files import write_atomic

__all__ = ["digest_record", "load_record", "save_record"]


def save_record(path: str | Path, record: dict[str, Any]) -> None:
    """Write the record atomically, with its digest."""
    text = json.dumps({**record, "digest": digest_record(record)}, indent=1)
    write_atomic(path, text)


def load_record(path: str | Path) -> dict[str, Any]:
    """The record as it was saved; a ValueError names a file that was altered or damaged."""
    raw = read_small(path)
    try:
        record = table(parse_json(raw))
        if record.pop("digest", None) != digest_record(record):
            raise ValueError("its digest does not match")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} was altered or damaged: {told(error)}.") from error
    return record


def digest_record(record: dict[str, Any]) -> str:
    """Hexadecimal SHA-256 of the record, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
