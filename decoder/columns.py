"""Columns of texts or bytes in memory: end to end, as Arrow holds them; values as compact JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

Ints = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts in UTF-8, or bytes, end to end: number ``i`` is ``data[offsets[i]:offsets[i + 1]]``."""

    data: Bytes
    offsets: Ints

    def __getitem__(self, number: int) -> bytes:
        return self.data[self.offsets[number] : self.offsets[number + 1]].tobytes()

    @property
    def begins(self) -> Ints:
        """Where each text begins."""
        return self.offsets[:-1]

    @property
    def ends(self) -> Ints:
        """Where each text ends."""
        return self.offsets[1:]


@dataclass(frozen=True, slots=True)
class Spans:
    """Texts in any order, with others between them: number ``i`` is ``data[begins[i]:ends[i]]``."""

    data: Bytes
    begins: Ints
    ends: Ints


def joined(pieces: Sequence[bytes]) -> Texts:
    """The pieces end to end; ``data`` has one byte at least."""
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)), out=offsets[1:])
    return Texts(np.frombuffer(b"".join(pieces) or b"\0", np.uint8), offsets)


def json_text(value: object) -> str:
    """Compact JSON, as the columns hold it."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # integers beyond 64 bits or keys that are no strings: rare enough for the slow way
        return json.dumps(value, separators=(",", ":"), ensure_ascii=True)
