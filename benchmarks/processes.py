"""This process and all that it has started, as Linux's /proc shows them: the JVM, Python's workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process as it is now.

    Attributes:
        name: of its program, as the system has it.
        began: when, in clock ticks since the machine started: numbers of processes come again.
        ticks: of CPU time that it has used, without its children.
        resident: bytes in memory.
    """

    pid: int
    name: str
    began: int
    ticks: int
    resident: int


def ours() -> Iterator[Process]:
    """This process and those below it."""
    for pid in (os.getpid(), *below(os.getpid())):
        try:
            name, fields = Path(f"/proc/{pid}/stat").read_text().partition(" (")[2].rpartition(") ")[::2]
        except OSError:  # it has just ended
            continue
        _, _, *numbers = fields.split()
        user, system, began, pages = (int(numbers[place]) for place in (9, 10, 17, 19))
        yield Process(pid, name, began, user + system, pages * os.sysconf("SC_PAGE_SIZE"))


def below(pid: int) -> Iterator[int]:
    """All processes below one, whichever of its threads has started them."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # it, or one of its threads, has just ended
        return
    for child in children:
        yield child
        yield from below(child)
