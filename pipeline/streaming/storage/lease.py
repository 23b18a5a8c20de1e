"""Lets only one job write to a lake in an object store, which has no locks: by a lease that lapses with its process.

The folder of a lease holds one object for each term, which only one process can make, as it is made on the condition
that it is not there. Its holder writes it again several times in the time that the lease lasts. Who finds that this
has not happened for that long, by a clock of its own, makes the object of the next term. So clocks of two machines need
not agree, and a holder that was suspended finds out by its own clock that the lease has lapsed.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

LASTS_S = 60.0
"""Seconds after which a lease lapses that is not renewed."""
_RENEWALS = 4
"""In that time."""
_LOOKS = 12
"""At a lease that may have lapsed."""


class Objects(Protocol):
    """The objects of one folder by name. What the store refuses raises OSError."""

    def names(self) -> list[str]:
        """Of all objects; none where there is no such folder."""

    def read(self, name: str) -> bytes | None:
        """The content of an object; None: there is no such object."""

    def create(self, name: str, content: bytes) -> bool:
        """Make an object unless there is one of this name. Of several who try at once one succeeds."""

    def replace(self, name: str, content: bytes) -> None:
        """Give an object another content."""

    def remove(self, name: str) -> None:
        """Remove an object."""


class HeldError(Exception):
    """Raised when another process holds the lease; ``owner`` names it."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


def _seconds() -> float:
    """A clock that also runs while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(slots=True)
class Lease:
    """A lease that this process may hold.

    Attributes:
        objects: of the folder in which it is noted, which must hold nothing else.
        owner: names this process to others.
        lasts_s: seconds after which it lapses unless it is renewed.
        clock: seconds, which never go back.
        sleep: waits this many seconds.
        lapses: called with the seconds from now until the lease lapses, each time when they change.
    """

    objects: Objects
    owner: str = field(default_factory=lambda: f"{os.getpid()} on {socket.gethostname()}")
    lasts_s: float = LASTS_S
    clock: Callable[[], float] = _seconds
    sleep: Callable[[float], None] = time.sleep
    lapses: Callable[[float], None] = lambda _: None
    _term: int = 0
    _writes: int = 0
    _until: float = 0.0
    _taken_over: bool = False

    def take(self, waits: Callable[[str], None] = lambda _: None) -> None:
        """Hold the lease from now on; wait first until that of another process has lapsed.

        Args:
            waits: called with the owner that has to be waited for.

        Raises:
            HeldError: another process holds it and continues renewing it, or has just taken it.
            OSError: the store refuses.
        """
        term, noted = self._newest()
        if noted is not None and not _is_free(noted):
            waits(_owner(noted))
            term, noted = self._lapsed(term, noted)
        self._term, began = term + 1, self.clock()
        if not self.objects.create(_name(self._term), self._content()):
            raise HeldError(_owner(self.objects.read(_name(self._term)) or b""))
        now = self.objects.read(_name(term)) if term else None
        if now is not None and now != noted:
            self.objects.remove(_name(self._term))  # it was renewed at the last moment
            raise HeldError(_owner(now))
        self._hold_until(began + self.lasts_s)
        for old in range(max(term - 1, 0), self._term):
            with suppress(OSError):
                self.objects.remove(_name(old))

    def _lapsed(self, term: int, noted: bytes) -> tuple[int, bytes | None]:
        """The newest term and what is noted of it, once it is free."""
        began = self.clock()
        while self.clock() < began + self.lasts_s:
            self.sleep(self.lasts_s / _LOOKS)
            newest, now = self._newest()
            if now is None or _is_free(now):
                return newest, now
            if (newest, now) != (term, noted):
                before = _owner(noted) if newest == term else "?"  # a file may be read while it is written
                raise HeldError(_owner(now, before))
        return term, noted

    def renew(self) -> None:
        """Hold it for the whole time again, unless another process has taken it over.

        Raises:
            OSError: the store refuses.
        """
        began = self.clock()
        if began < self._until and self._newest_term() == self._term:
            self.objects.replace(_name(self._term), self._content())
            if self._newest_term() == self._term:  # else another took it meanwhile, as one that has lapsed
                self._hold_until(began + self.lasts_s)
                return
        self._taken_over = True
        self._hold_until(0.0)

    @property
    def is_held(self) -> bool:
        """Whether no other process can have taken it."""
        return not self._taken_over and self.clock() < self._until

    def release(self) -> None:
        """Let another process take it at once.

        Raises:
            OSError: the store refuses.
        """
        if self.is_held:
            self._hold_until(0.0)
            self.objects.replace(_name(self._term), self._content(is_free=True))

    def _hold_until(self, until: float) -> None:
        self._until = until
        self.lapses(max(until - self.clock(), 0.0))

    def _newest(self) -> tuple[int, bytes | None]:
        """The newest term and what its holder noted; 0 and None where there never was one."""
        newest = self._newest_term()
        return newest, self.objects.read(_name(newest)) if newest else None

    def _newest_term(self) -> int:
        return max((int(name.removesuffix(_SUFFIX)) for name in self.objects.names() if _is_term(name)), default=0)

    def _content(self, *, is_free: bool = False) -> bytes:
        self._writes += 1
        return json.dumps({"owner": self.owner, "is_free": is_free, "writes": self._writes}).encode()


@contextmanager
def holding(
    lease: Lease, waits: Callable[[str], None] = lambda _: None, lost: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold a lease, and renew it by a thread.

    Args:
        lease: not held yet.
        waits: see :meth:`Lease.take`.
        lost: called once, by that thread, when the lease is not held any more.

    Raises:
        HeldError: another process holds it.
        OSError: the store refuses it.
    """
    lease.take(waits)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(lease.lasts_s / _RENEWALS):
            with suppress(OSError):  # it is asked again until the lease has lapsed
                lease.renew()
            if not lease.is_held:
                lost()
                return

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(OSError):  # then it lapses by itself
            lease.release()


_SUFFIX = ".json"


def _name(term: int) -> str:
    return f"{term:012}{_SUFFIX}"


def _is_term(name: str) -> bool:
    return name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).isdecimal()


def _noted(content: bytes) -> dict[str, object]:
    try:
        noted = json.loads(content)
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}


def _is_free(content: bytes) -> bool:
    return _noted(content).get("is_free") is True


def _owner(content: bytes, otherwise: str = "?") -> str:
    return str(_noted(content).get("owner", otherwise))
