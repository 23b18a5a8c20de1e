"""What went over the wire? tcpdump on loopback, sure to have begun before and to have everything at the end."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

_QUIET_S = 1.0
"""The file must not grow for so long before the recording counts as complete."""


class CaptureError(RuntimeError):
    """Raised when tcpdump does not start, or when the kernel dropped packets."""


class Tcpdump:
    """Records TCP traffic of some loopback ports, and ICMP errors about it: `with Tcpdump(path, [9092]): …`.

    Of all addresses, or of `hosts`.
    """

    def __init__(self, path: Path, ports: list[int], buffer_kib: int = 4096, hosts: Sequence[str] = ()) -> None:
        self._path = path
        self._ports = ports
        self._hosts = hosts
        self._buffer_kib = buffer_kib
        self._process: subprocess.Popen[bytes] | None = None
        self.start_ms = 0
        """When tcpdump listened, ms since the epoch."""
        self.end_ms = 0
        """When tcpdump was told to end, ms since the epoch."""
        self._log = path.with_suffix(".tcpdump.log")

    def __enter__(self) -> Tcpdump:
        """Start tcpdump and wait until its filter is in place.

        Raises:
            CaptureError: if tcpdump ends or does not listen within 10 s.
        """
        ports = [f"tcp port {port}" for port in self._ports]
        ports += [f"icmp[30:2] == {port} or icmp[28:2] == {port}" for port in self._ports]  # of the quoted segment
        wanted = " or ".join(ports)
        if self._hosts:
            wanted = f"({wanted}) and ({' or '.join(f'host {host}' for host in self._hosts)})"
        # -Z root: Debian's tcpdump otherwise changes user and may not write here.
        command = ["tcpdump", "-i", "lo", "-n", "-s", "0", "-U", "--immediate-mode", "-B", str(self._buffer_kib)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "-Z", "root", "-w", str(self._path), wanted], stdout=subprocess.DEVNULL, stderr=log
            )
        deadline = time.monotonic() + 10
        # tcpdump says "listening on" after the socket is bound and the filter set: from then on the kernel queues.
        while "listening on" not in self._log.read_text():
            if self._process.poll() is not None or time.monotonic() > deadline:
                message = self._log.read_text()
                self._end()
                raise CaptureError(f"tcpdump did not start (it needs root or CAP_NET_RAW): {message}")
            time.sleep(0.02)
        self.start_ms = time.time_ns() // 1_000_000
        return self

    def stop(self) -> None:
        """Wait for the last packets, end tcpdump, and check that none was dropped. A second call does nothing.

        Raises:
            CaptureError: if the kernel dropped packets or tcpdump died.
        """
        if self._process is None:
            return
        self._wait_until_quiet()
        died = self._process.poll() is not None
        message = self._end()
        dropped = re.search(r"(\d+) packets? dropped by kernel", message)
        if died or dropped is None:
            raise CaptureError(f"tcpdump ended too early: {message}")
        if int(dropped.group(1)) > 0:
            raise CaptureError(f"the kernel dropped {dropped.group(1)} packets: record again on a quieter machine")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if error is None:
            self.stop()
        elif self._process is not None:
            self._end()

    def _wait_until_quiet(self) -> None:
        """Wait until no packet arrives, at most 2 s: clients that stay open continue talking."""
        deadline = time.monotonic() + 2
        size, since = -1, time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - since < _QUIET_S:
            now = self._path.stat().st_size
            if now != size:
                size, since = now, time.monotonic()
            time.sleep(0.1)

    def _end(self) -> str:
        assert self._process is not None
        self.end_ms = time.time_ns() // 1_000_000
        self._process.terminate()
        self._process.wait()
        self._process = None
        message = self._log.read_text()
        self._log.unlink()
        return message
