"""Reads a file that somebody still writes."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.capture.packets.pipe import TICK_S

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BEGIN_BYTES = 64
"""By this many bytes, in which the time of the first packet is, a file is known again."""


class Growing(io.RawIOBase):
    """A file that is read as it grows, to the end of what is there if another content takes its place.

    Args:
        path: of the file.
        on_end: called where the file ends now, every TICK_S; False ends the stream once no more has come meanwhile.

    Attributes:
        position: bytes read.

    Raises:
        OSError: it cannot be opened, or by reading: it cannot be read.
    """

    def __init__(self, path: str, on_end: Callable[[], bool]) -> None:
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - see close
        self._begin = self._begins(_BEGIN_BYTES)
        self._on_end = on_end
        self.position = 0

    def readable(self) -> bool:
        """See io.IOBase."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """See io.RawIOBase."""
        goes_on = True
        while not (count := self._file.readinto(buffer)) and goes_on:
            goes_on = self._on_end()
            if goes_on:
                time.sleep(TICK_S)
            if not self._is_same():
                return 0
        self.position += count
        return count

    def _is_same(self) -> bool:
        """Whether the file was not cut, and does not begin with something else now."""
        return os.fstat(self._file.fileno()).st_size >= self.position and self._begins(len(self._begin)) == self._begin

    def _begins(self, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, 0)

    def close(self) -> None:
        """See io.IOBase."""
        self._file.close()
        super().close()
