"""Healthy: MongoDB's change streams, read at once, slowly, by a reader that is deployed again, and where nothing comes.

By a server that has an oplog, and Java's driver, which asks again for as long as there is nothing.
"""

from __future__ import annotations

import re
import time
from contextlib import ExitStack

from tests.scenarios.java_program import Program, compiled
from tests.scenarios.rhythm import Clock
from tests.scenarios.truth import Truth

DRIVER = "4.11.5"
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()
_WRITER, _WRITES_S = "shop", 1.0
_READERS = {
    "mirror": ("follow", 0.5),
    "search-index": ("deployed", 0.5),
    "reports": ("slowly", 5.0),
    "archive": ("deletions", 0.5),
}
"""Applications that read: how, and the pause between two steps in seconds."""
_STARTING_S = 10.0
"""However fast the clock runs."""


def play(server: str, truth: Truth, clock: Clock) -> None:
    """`search-index` is deployed again each two minutes and resumes where it was; orders are deleted each 50 s."""
    class_path = compiled("mongodb_java_driver", "OrderChanges")

    def program(name: str, does: str, pause_s: float) -> Program:
        truth.client(name, "mongodb-driver-sync", "Java", DRIVER)
        return Program(class_path, "OrderChanges", server, name, does, str(round(1000 * clock.real(pause_s))))

    readers = {name: program(name, *how) for name, how in _READERS.items()}
    writer = program(_WRITER, "write", _WRITES_S)
    with ExitStack() as stack:
        for reader in readers.values():
            stack.enter_context(reader)
        time.sleep(_STARTING_S)
        with writer:
            clock.until(SECONDS - 20)
        clock.until(SECONDS)
    written = _events(writer)
    read = {name: _events(reader) for name, reader in readers.items()}
    truth.outcome(written=written, read=read)
    assert read["mirror"] == read["search-index"] == read["reports"] == written, (written, read)
    assert read["archive"] == written // 50, (written, read)


def _events(program: Program) -> int:
    found = re.search(r"^events: (\d+)$", program.output, re.MULTILINE)
    assert found is not None, program.output
    return int(found[1])
