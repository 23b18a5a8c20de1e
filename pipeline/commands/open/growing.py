"""Captures and lakes that grow while one walks through them: what is there is read again when it has changed."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.commands.open.background import Apart
from pipeline.commands.open.source import Reading, Source, is_held, judge_into, open_source, opened
from pipeline.config.settings import Settings

_LEAST_S = 2.0
"""From the end of one reading to the next at least, s."""
_PAUSE = 3.0
"""The same, in times that the reading took: a quarter of the time is spent on reading."""


class Growing:
    """What is walked through, as often as it changes. Captures are read and judged whole each time.

    Args:
        places: captures, a directory of them, a landing zone, or one lake.
        settings: of reading, judging and asking.
        reading: how captures are read.
        folder: a private one, for tables.
    """

    def __init__(self, places: Sequence[str], settings: Settings, reading: Reading, folder: Path) -> None:
        self._places, self._settings, self._reading, self._folder = places, settings, reading, folder
        self._apart = Apart()
        self._seen: tuple[object, ...] = ()
        self._next_s = 0.0
        self._is_first = True

    def source(self) -> Source:
        """What is there now; captures are judged in a process of their own, whose memory goes with it.

        Raises:
            UserError: nothing can be read, or nothing was found.
        """
        begun = time.monotonic()
        self._seen = tuple(_looks(self._places))
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            if is_held(self._places):
                return open_source(self._places, self._settings, self._reading, folder)
            judged = self._apart.run(
                judge_into, folder, self._places, self._settings, self._reading, is_quiet=not self._is_first
            )
            return opened(self._places, judged, folder, self._settings)
        finally:
            shutil.rmtree(folder)  # what is mapped stays until it is closed
            self._is_first = False
            ended = time.monotonic()
            self._next_s = ended + max(_LEAST_S, _PAUSE * (ended - begun))

    @property
    def has_changed(self) -> bool:
        """Whether something came since the last reading, which is long enough ago."""
        return time.monotonic() >= self._next_s and tuple(_looks(self._places)) != self._seen

    def close(self) -> None:
        """End a reading that is under way."""
        self._apart.close()


def _looks(places: Sequence[str]) -> Iterator[object]:
    """What changes when files grow or come: of a lake its logs. Of an object store nothing is looked at."""
    for place in map(Path, places):
        for path in (
            place,
            *sorted(place.glob("*")),
            *sorted(place.glob("*/*")),
            *sorted(place.glob("*/*/_delta_log")),
        ):
            try:
                now = path.stat()
            except OSError:
                continue
            yield str(path), now.st_size, now.st_mtime_ns
