"""Why no message fits: which of what was asked for never occurs, and what does that is near it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timezone
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decoder.explain.describer import About
    from pipeline.commands.messages.message_filter import Wanted
    from pipeline.commands.messages.messages import Decoded

_MOST_NAMES = 10_000
"""Names of a kind that are remembered: of more, those that came first."""
_NEAR = 3
"""Names that are suggested at most."""
_LISTED = 6
"""Names that are listed where none is near."""
_SIMILAR = 0.5


class Names:
    """Names of one kind, in the order in which they came; the same at most once."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def add(self, names: Collection[str]) -> None:
        """Remember them."""
        if len(self._names) < _MOST_NAMES:
            self._names.update(dict.fromkeys(names))

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def has(self, pattern: str) -> bool:
        """Whether one is like that; ``*`` and ``?`` stand for others."""
        return any(fnmatchcase(name, pattern) for name in self._names)

    def instead_of(self, name: str) -> str:
        """Which one was meant, or which there are; a sentence without its end."""
        if not self._names:
            return "these messages name none"
        if near := get_close_matches(name, self._names, _NEAR, _SIMILAR):
            return f"did you mean {' or '.join(near)}?"
        return listed(list(self._names))


class Occurring:
    """What occurs in messages, of that which one may ask for. Noted only until one is found that is as asked for."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._groups, self._topics, self._clients = Names(), Names(), Names()
        self._hosts, self._ends, self._connections, self._addresses = Names(), Names(), Names(), Names()
        self._partitions: set[int] = set()
        self._first_us = self._last_us = self._slowest_us = 0

    def note(self, item: Decoded, about: About | None) -> None:
        """Take note of a message.

        Args:
            item: the message.
            about: what it is about; None: not asked for.
        """
        frame = item.frame
        self._first_us = min(self._first_us or frame.ts, frame.ts)
        self._last_us = max(self._last_us, frame.ts)
        self._slowest_us = max(self._slowest_us, item.service_us or item.latency_us or 0)
        if item.message.client_id:
            self._clients.add([item.message.client_id])
        self._hosts.add([frame.client_ip, frame.server_ip])
        client, server = f"{frame.client_ip}:{frame.client_port}", f"{frame.server_ip}:{frame.server_port}"
        self._ends.add([server, client])
        self._connections.add([frame.connection_id])
        self._addresses.add([client])
        if about is not None:
            self._groups.add(about.groups)
            self._topics.add([topic for topic, _ in about.places])
            if len(self._partitions) < _MOST_NAMES:
                self._partitions.update(
                    partition for topic, partition in about.places
                    if partition is not None and fnmatchcase(topic, self._wanted.topic or "*")
                )  # fmt: skip

    def why_none(self) -> str:
        """Why no message is as asked for, as far as one thing alone explains it; empty: nothing does."""
        return "; ".join(self._reasons())

    def _reasons(self) -> Iterator[str]:
        wanted = self._wanted
        for option, pattern, names in (
            ("group", wanted.group, self._groups), ("topic", wanted.topic, self._topics),
            ("client", wanted.client, self._clients),
        ):  # fmt: skip
            if pattern is not None and not names.has(pattern):
                yield f"no --{option} {pattern}: {names.instead_of(pattern)}"
        if wanted.partition is not None and wanted.partition not in self._partitions and self._partitions:
            yield f"no --partition {wanted.partition}: {listed(sorted(self._partitions))}"
        if wanted.host is not None:
            yield from self._no_host(wanted.host)
        if wanted.connection is not None:
            yield from self._no_connection(wanted.connection)
        if wanted.slower_than is not None:
            yield f"the slowest answer took {self._slowest_us / 1000:,.1f} ms"
        if wanted.since is not None or wanted.until is not None:
            yield f"the messages are of {_span(self._first_us, self._last_us)}"

    def _no_host(self, host: str) -> Iterator[str]:
        if host not in self._hosts and host not in self._ends:
            near = self._ends if host.rpartition(":")[0] in self._hosts else self._hosts
            yield f"no --host {host}: {near.instead_of(host)}"

    def _no_connection(self, asked: str) -> Iterator[str]:
        if asked not in self._addresses and not any(one.startswith(asked) for one in self._connections):
            near = self._addresses if ":" in asked else self._connections
            yield f"no --connection {asked}: {near.instead_of(asked)}"


def listed(names: Sequence[object]) -> str:
    """``there is a``, ``there are a, b and 3 more``."""
    shown = ", ".join(map(str, names[:_LISTED]))
    more = len(names) - _LISTED
    return f"there {'is' if len(names) == 1 else 'are'} {shown}{f' and {more:,} more' if more > 0 else ''}"


def _span(first_us: int, last_us: int) -> str:
    """From when to when, with the day of the end if that is another one."""
    first, last = (datetime.fromtimestamp(us / 1e6, timezone.utc) for us in (first_us, last_us))
    begin = first.strftime("%Y-%m-%d %H:%M:%S")
    return f"{begin} to {last.strftime('%H:%M:%S' if first.date() == last.date() else '%Y-%m-%d %H:%M:%S')} UTC"
