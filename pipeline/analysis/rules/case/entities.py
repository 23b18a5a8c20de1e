"""What a finding is about: the names by which two findings can be about the same thing.

They come from the columns of ``gold.findings`` and from its ``details``, wherever a rule states them there under the
names below: a new rule joins in by naming its figures as the others do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from pipeline.analysis.rules.callers import Caller, callers_in, host_of_address, texts_of
from pipeline.analysis.rules.model import NAMELESS

Entity = tuple[str, ...]
"""A kind and a name (of a partition: topic and index), within a cluster."""

CLIENT, HOST, GROUP, TOPIC, PARTITION = "client", "host", "group", "topic", "partition"
MEMBER, TRANSACTION, SERVER, NAMESPACE, CONNECTION = "member", "transaction", "server", "namespace", "connection"
KINDS = (CLIENT, HOST, GROUP, TOPIC, PARTITION, MEMBER, TRANSACTION, SERVER, NAMESPACE, CONNECTION)

_NAMES = {
    "client": CLIENT, "application": CLIENT, "client_id": CLIENT, "client_ids": CLIENT,
    "writers": CLIENT, "readers": CLIENT, "reader": CLIENT,
    "host": HOST, "hosts": HOST, "client_ip": HOST,
    "group_id": GROUP, "group_ids": GROUP, "groups": GROUP,
    "member_id": MEMBER, "members": MEMBER, "group_instance_id": MEMBER,
    "transactional_id": TRANSACTION, "transactional_ids": TRANSACTION,
    "server": SERVER, "servers": SERVER, "broker": SERVER, "brokers": SERVER, "silent_brokers": SERVER,
    "namespace": NAMESPACE, "namespaces": NAMESPACE,
    "topic": TOPIC, "topics": TOPIC,
    "connection_id": CONNECTION, "connections": CONNECTION,
}  # fmt: skip
"""Fields of ``details``, at any depth, whose texts name something."""


def names_of_each(processes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of processes (``client_id``, ``address``, ``member_id``): with port and member where two are alike."""
    some = list(processes)
    names = [str(Caller(one.get("client_id"), host_of_address(str(one.get("address") or "")))) for one in some]
    return [name if names.count(name) == 1 else _in_full(one) for name, one in zip(names, some, strict=True)]


def _in_full(process: Mapping[str, Any]) -> str:
    member = f", member {process['member_id']}" if process.get("member_id") else ""
    return f"{process.get('client_id') or NAMELESS} ({process.get('address')}{member})"


def details_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The ``details`` of a row of ``gold.findings``, which are JSON; none where they cannot be read."""
    try:
        details = orjson.loads(row["details"] or "{}")
    except (orjson.JSONDecodeError, TypeError):
        return {}
    return details if isinstance(details, dict) else {}


@dataclass(frozen=True)
class Known:
    """A finding, with what it is about. Times are µs since the epoch.

    Attributes:
        row: as Finding.row gives it.
        details: of the row.
        parts: the kinds of names that its subject consists of (see Rule.subject).
    """

    row: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[str | None, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any], parts: tuple[str | None, ...] = ()) -> Known:
        """Read the details."""
        return cls(row, details_of(row), parts)

    @property
    def finding_id(self) -> str:
        """See Finding."""
        return str(self.row["finding_id"])

    @property
    def rule(self) -> str:
        """Name of the rule."""
        return str(self.row["rule"])

    @property
    def first_us(self) -> int:
        """When it began."""
        return int(self.row["first_us"])

    @property
    def since_us(self) -> int:
        """When the last request showed none of it yet (``before_us`` of the details): it may have begun since."""
        stated = self.details.get("before_us")
        return min(stated, self.first_us) if isinstance(stated, int) else self.first_us

    @property
    def came_us(self) -> int:
        """When it began for the first time (``first_of_all_us`` of the details): it may have come again since."""
        stated = self.details.get("first_of_all_us")
        return min(stated, self.first_us) if isinstance(stated, int) else self.first_us

    @property
    def last_us(self) -> int:
        """When it was seen last."""
        return int(self.row["last_us"])

    @property
    def shown_us(self) -> int:
        """When enough had been seen to judge: until then something else can have become its cause."""
        stated = self.details.get("enough_us")
        return max(stated, self.first_us) if isinstance(stated, int) else self.first_us

    @property
    def group(self) -> str | None:
        """Its consumer group."""
        return self.row.get("group_id") or None

    @cached_property
    def entities(self) -> frozenset[Entity]:
        """All that it names."""
        return frozenset((kind, *name) for kind, name in self._named() if name != ("",))

    @cached_property
    def callers(self) -> tuple[Caller, ...]:
        """Clients that it names, those that it names first before the others, each once."""
        found: dict[str | None, Caller] = {}
        for one in callers_in(self.details):
            if one.client_id not in found or found[one.client_id].host is None:
                found[one.client_id] = one
        subject = [name for kind, name in self._of_subject() if kind == CLIENT]
        for name in subject:
            if name not in found and not found.keys() - {None}:
                hosts = self.details.get("hosts")
                found[name] = Caller(name, hosts[0] if isinstance(hosts, list) and hosts else None)
        if len(found) > 1:
            found.pop(None, None)
        return tuple(found.values())

    def _named(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        row = self.row
        if self.group:
            yield GROUP, (self.group,)
        if row.get("topic"):
            yield TOPIC, (row["topic"],)
            if row.get("partition") is not None:
                yield PARTITION, (row["topic"], str(row["partition"]))
        for topic, partition in _places_in(self.details, row.get("topic")):
            yield PARTITION, (topic, partition)
            yield TOPIC, (topic,)
        for kind, name in self._of_subject():
            yield kind, (name,)
        yield from ((kind, (name,)) for kind, name in _names_in(self.details))
        for one in callers_in(self.details):
            if one.client_id:
                yield CLIENT, (one.client_id,)
            if one.host:
                yield HOST, (one.host,)

    def _of_subject(self) -> Iterator[tuple[str, str]]:
        subject = str(self.row["subject"])
        if len(self.parts) == 1 and self.parts[0]:
            yield self.parts[0], subject.partition("/")[0] if self.parts[0] == SERVER else subject
        elif self.parts and "/" in subject:
            before, _, behind = subject.rpartition("/")
            yield from ((kind, name) for kind, name in zip(self.parts, (before, behind), strict=True) if kind)


def _names_in(value: object) -> Iterator[tuple[str, str]]:
    """Kind and name of all that ``details`` names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            kind = _NAMES.get(key)
            if kind is not None:
                yield from ((kind, text) for text in texts_of(inner))
            yield from _names_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names_in(inner)


def _places_in(details: Mapping[str, Any], topic: str | None) -> Iterator[tuple[str, str]]:
    """Topics and partitions in ``partitions``, ``places`` and ``in_hand``: numbers, objects, or ``topic-number``."""
    for key in ("partitions", "places", "in_hand"):
        found = details.get(key)
        for one in found if isinstance(found, list) else ():
            of, number = (one.get("topic", topic), one.get("partition")) if isinstance(one, dict) else (topic, one)
            if isinstance(one, str):
                of, _, number = one.rpartition("-")
            if isinstance(of, str) and of and str(number).isdigit():
                yield of, str(number)
