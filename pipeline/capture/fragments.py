"""How do the fragments of an IP packet become whole again?"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

MAX_PACKETS = 256
"""Packets being put together at once; the oldest gives way. A flood of first fragments must not fill the memory."""

MAX_BYTES = 65_535
"""The largest IP payload that fragments can describe; offsets beyond it are an attack ("ping of death")."""


@dataclass(slots=True)
class _Partial:
    pieces: dict[int, bytes] = field(default_factory=dict)
    size: int | None = None


class Fragments:
    """IP packets of which not all fragments have been seen."""

    def __init__(self) -> None:
        self._partial: OrderedDict[tuple[bytes, bytes, int], _Partial] = OrderedDict()

    def add(self, key: tuple[bytes, bytes, int], offset: int, more: bool, payload: bytes) -> bytes | None:
        """Take one fragment; the whole payload if it was the last one missing.

        Args:
            key: source, destination and identification.
            offset: position of ``payload`` in the packet's payload, bytes.
            more: whether fragments follow it.
            payload: its bytes, completely captured.
        """
        if offset + len(payload) > MAX_BYTES:
            self._partial.pop(key, None)
            return None
        partial = self._partial.setdefault(key, _Partial())
        partial.pieces.setdefault(offset, payload)
        if not more:
            partial.size = offset + len(payload)
        whole = _join(partial)
        if whole is not None:
            del self._partial[key]
        elif len(self._partial) > MAX_PACKETS:
            self._partial.popitem(last=False)
        return whole


def _join(partial: _Partial) -> bytes | None:
    if partial.size is None:
        return None
    whole = bytearray()
    for offset in sorted(partial.pieces):
        if offset > len(whole):
            return None
        whole += partial.pieces[offset][len(whole) - offset :]
    return bytes(whole) if len(whole) >= partial.size else None
