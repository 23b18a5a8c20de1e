"""How does a column of texts or bytes stand in memory? End to end, as Arrow holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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


def joined(pieces: Sequence[bytes]) -> Texts:
    """The pieces end to end; ``data`` has one byte at least."""
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)), out=offsets[1:])
    return Texts(np.frombuffer(b"".join(pieces) or b"\0", np.uint8), offsets)
