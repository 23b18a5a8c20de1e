"""How is a file read that somebody still writes?"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.capture.packets.pipe import TICK_S

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Growing(io.RawIOBase):
    """A file that is read as it grows.

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
        self.position += count
        return count

    def close(self) -> None:
        """See io.IOBase."""
        self._file.close()
        super().close()
