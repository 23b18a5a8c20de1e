"""Reports to systemd that a service runs, by two messages of sd_notify(3)."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping


class Supervisor:
    """Sends ``READY=1`` at the first sign of life, then ``WATCHDOG=1`` before each watchdog period is half over.

    Outside a systemd unit of ``Type=notify`` it sends nothing.

    Args:
        environment: has NOTIFY_SOCKET and, of a unit with WatchdogSec=, WATCHDOG_USEC, as systemd sets them.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        path = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + path[1:] if path.startswith("@") else path
        period = environment.get("WATCHDOG_USEC", "")
        self._every_s = int(period) / 2_000_000 if period.isascii() and period.isdecimal() else None
        self._sent: float | None = None

    def alive(self) -> None:
        """The service works."""
        if not self._address:
            return
        now = time.monotonic()
        if self._sent is None:
            is_taken = self._send(b"READY=1")
        elif self._every_s is None or now - self._sent < self._every_s:
            return
        else:
            is_taken = self._send(b"WATCHDOG=1")
        if is_taken:
            self._sent = now

    def _send(self, message: bytes) -> bool:
        """Send a message; False: systemd did not take it, and it is due again at the next sign of life."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(message, self._address)
        except OSError:
            return False
        return True
