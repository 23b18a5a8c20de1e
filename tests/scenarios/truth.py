"""What did the clients really do? Their own log of a scenario, the yardstick for what is decoded from the wire."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Event = dict[str, Any]
LOGS = ("log", "log_begun")
"""Kinds of events for what libraries log; only `tests.captures.client_logs` keeps them."""


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """Who speaks: `client_id` as sent on the wire."""

    client_id: str
    library: str
    language: str
    version: str


class Truth:
    """Collects events from many threads and processes.

    An event has `ts_ms` (ms since the epoch), `client_id`, `kind`, and as known `topic`, `partition`, `offset` (as
    acknowledged; for commits the committed position), `group`, `member`, `generation`, `error`. Kinds: produced,
    consumed (`first_offset` to `offset`), commit_ok, commit_error, assigned, revoked, txn_begin, txn_open, txn_commit,
    txn_abort, request_answered, connection_closed, closed, error, incident (it begins), log (`text`: what the library
    itself logs as a warning or worse; sarama's log has no levels), log_begun (from now on it is read).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._clients: dict[str, ClientInfo] = {}
        self._outcome: dict[str, Any] = {}

    def client(self, client_id: str, library: str, language: str, version: str) -> None:
        """Introduce a client."""
        with self._lock:
            self._clients[client_id] = ClientInfo(client_id, library, language, version)

    def add(self, client_id: str, kind: str, **fields: Any) -> None:
        """Log an event of now; fields that are None are left out."""
        known = {name: value for name, value in fields.items() if value is not None}
        self.append({"ts_ms": time.time_ns() // 1_000_000, "client_id": client_id, "kind": kind, **known})

    def append(self, event: Event) -> None:
        """Log a ready event."""
        with self._lock:
            self._events.append(event)

    def outcome(self, **facts: Any) -> None:
        """State how the scenario ended, as read from the broker."""
        with self._lock:
            self._outcome.update(facts)

    def events(self, **wanted: Any) -> list[Event]:
        """Return the events whose fields equal `wanted`, in the order of their time."""
        with self._lock:
            some = [e for e in self._events if all(e.get(name) == value for name, value in wanted.items())]
        return sorted(some, key=lambda e: int(e["ts_ms"]))

    def wait_for(self, count: int = 1, timeout_s: float = 60.0, **wanted: Any) -> None:
        """Wait until `count` events with these fields are there.

        Raises:
            TimeoutError: after `timeout_s` seconds; says what was awaited and what came last.
        """
        deadline = time.monotonic() + timeout_s
        while len(self.events(**wanted)) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {count} events {wanted} in {timeout_s:.0f} s; last: {self.events()[-5:]}")
            time.sleep(0.05)

    def write(
        self, path: Path, about: dict[str, Any], start_ms: int, end_ms: int, without: tuple[str, ...] = ()
    ) -> None:
        """Write one JSON document, one event a line: what was logged while the capture ran (ms since the epoch).

        Events of the kinds `without` are left out.
        """
        head = {**about, "capture_start_ms": start_ms, "capture_end_ms": end_ms}
        head |= {"clients": [asdict(c) for c in self._clients.values()], "outcome": self._outcome}
        seen = [e for e in self.events() if start_ms <= int(e["ts_ms"]) <= end_ms and e["kind"] not in without]
        lines = ",\n".join("    " + json.dumps(e, separators=(",", ":")) for e in seen)
        text = json.dumps(head, indent=2)
        path.write_text(text[: text.rindex("}")].rstrip() + ',\n  "events": [\n' + lines + "\n  ]\n}\n")
