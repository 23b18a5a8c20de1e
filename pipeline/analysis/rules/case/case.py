"""What the words of an incident speak of: its root's figures, and names as a person knows them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.analysis.rules.callers import Caller, host_of_address
from pipeline.analysis.rules.case.bundle import Bundle
from pipeline.analysis.rules.case.entities import PARTITION, Known
from pipeline.analysis.rules.case.tree import Tree
from pipeline.analysis.rules.format import wait_or_waits
from pipeline.analysis.rules.kafka.positions.unread_texts import SILENT, UNCOMMITTED
from pipeline.analysis.rules.kafka.records_behind import MARKERS
from pipeline.analysis.rules.kafka.speaking import LIBRARY
from pipeline.analysis.rules.kafka.twins import PROCESS, in_full, is_of
from pipeline.analysis.rules.model import NAMELESS, SEVERITIES
from pipeline.humanize import listed, pluralize

_SHOWN = 3
_NAME = re.compile(r"[a-z0-9]+[._=][a-z]|\w+\(\)|[A-Z]{2}|`")
ADVICE = re.compile(r"^\s*\*?Now:\*?\s*(?P<now>.*?)\s*\*?\bFix:\*?\s*(?P<fix>.*)$", re.DOTALL)
"""Parts the advice of a finding."""
_WAIT, AGAIN, IN_HAND = "waiting", "to be read again", "read but not committed"
_FATES = {
    "records_behind": _WAIT, "lag_after": _WAIT, "lag": _WAIT, "records_lost": "not written", "lost": "lost",
    "skipped": "skipped", "read_again": AGAIN,
}  # fmt: skip
"""What becomes of records that are counted under these names in ``details``; the first that is not 0 is reported."""


@dataclass(frozen=True)
class Case:
    """A tree, as words look at it."""

    tree: Tree

    @property
    def bundle(self) -> Bundle:
        """The root's findings."""
        return self.tree.root

    @cached_property
    def lead(self) -> Known:
        """The root's worst finding: the most severe one, of these one that names why, most records, the first."""
        return min(
            self.bundle.findings,
            key=lambda one: (SEVERITIES.index(one.row["severity"]), one.details.get("shape") not in SILENT,
                             -(records_of(one)[0] or 0), one.first_us, one.finding_id),
        )  # fmt: skip

    @property
    def details(self) -> Mapping[str, Any]:
        """Of the lead."""
        return self.lead.details

    @property
    def group(self) -> str:
        """The lead's consumer group."""
        return self.lead.group or "?"

    @property
    def topic(self) -> str:
        """The lead's topic."""
        return str(self.lead.row.get("topic") or "?")

    @cached_property
    def callers(self) -> tuple[Caller, ...]:
        """Clients that the root names, the lead's first."""
        found: dict[str | None, Caller] = {}
        for one in (self.lead, *self.bundle.findings):
            for caller in one.callers:
                found.setdefault(caller.client_id, caller)
        if len(found) > 1:
            found.pop(None, None)
        return tuple(self._as_process(one) for one in found.values())

    @cached_property
    def processes(self) -> tuple[Mapping[str, Any], ...]:
        """Processes of the root's findings that share client id and host with others, each once."""
        stated = [one.details.get(PROCESS) for one in self.bundle.findings]
        found = {one["address"]: one for one in stated if isinstance(one, dict) and one.get("address")}
        return tuple(found.values())

    def _as_process(self, caller: Caller) -> Caller:
        """With its port where it has twins, and all findings mean the same one."""
        own = [one for one in self.processes if is_of(one, caller.client_id, caller.host)]
        if len(own) != 1:
            return caller
        return Caller(caller.client_id, host_of_address(own[0]["address"]), own[0]["address"])

    @property
    def who(self) -> str:
        """Clients that the root names."""
        return listed(map(str, self.callers)) or "a client"

    @property
    def at(self) -> str:
        """The same as a sentence names them: ``client at host``; empty if the root names none."""
        return listed(
            f"{one.client_id or NAMELESS} at {one.address or one.host}" if one.host else str(one)
            for one in self.callers
        )

    @property
    def members(self) -> str:
        """The group, and those of its clients that the root names."""
        return f"Group {self.group} ({self.at})" if self.callers else f"Group {self.group}"

    @property
    def first_caller(self) -> Caller:
        """The one to look at first."""
        return self.callers[0] if self.callers else Caller(None, None)

    @property
    def clients(self) -> str:
        """The same by client id alone, but for a process that shares it with others of its host."""
        return listed(self._in_full(one) for one in self.callers) or "a client"

    def _in_full(self, caller: Caller) -> str:
        own = [one for one in self.processes if one["address"] == caller.address]
        return in_full(own[0]) if own else caller.client_id or NAMELESS

    @property
    def places(self) -> str:
        """Partitions that the root is about."""
        of_rows = {(one.row["topic"], one.row.get("partition")) for one in self.bundle.findings if one.row.get("topic")}
        of_rows -= {place for place in of_rows if place[1] is not None and (place[0], None) in of_rows}
        in_order = sorted(of_rows, key=lambda place: (place[0], -1 if place[1] is None else place[1]))
        found = [topic if partition is None else f"{topic}-{partition}" for topic, partition in in_order]
        topics = {one.row.get("topic") for one in self.bundle.findings if one.row.get("topic")}
        if len(found) <= _SHOWN:
            return listed(found) or "?"
        if len(topics) == 1:
            return f"{len(found)} partitions of {topics.pop()}"
        return f"{len(found)} partitions of {len(topics)} topics"

    @cached_property
    def library(self) -> str | None:
        """The client library of all findings of the root; None: it is not known, or not one."""
        libraries = {one.details.get(LIBRARY) for one in self.bundle.findings}
        (library,) = libraries if len(libraries) == 1 else (None,)
        return library if isinstance(library, str) else None

    @property
    def kinds(self) -> str:
        """What was answered, or used: errors, apis."""
        found = [kind for one in self.bundle.findings for kind in one.details.get("kinds", []) if isinstance(kind, str)]
        return listed(dict.fromkeys(found))

    @property
    def times(self) -> int:
        """How often it was seen."""
        return sum(int(one.details.get("times") or 0) for one in self.bundle.findings)

    @property
    def recurrences(self) -> int:
        """How often it had come and gone before."""
        stated = [one.details.get("recurrences") for one in self.bundle.findings]
        return max((n for n in stated if isinstance(n, int)), default=0)

    @property
    def server(self) -> str:
        """The server that it is about."""
        servers = sorted(entity[-1] for entity in self.bundle.named.get("server", ()))
        return str(self.details.get("server") or listed(servers) or "?")

    @property
    def seconds(self) -> float:
        """From the beginning of the incident to its last sign."""
        return (self.last_us - self.first_us) / 1_000_000

    @cached_property
    def first_us(self) -> int:
        """When the earliest finding began, µs since the epoch."""
        return min(one.first_us for one in self.tree.findings)

    @cached_property
    def last_us(self) -> int:
        """When one was seen last."""
        return max(one.last_us for one in self.tree.findings)

    @cached_property
    def state(self) -> str:
        """``open`` while one of its findings is, else ``unknown`` if one is, else ``closed``."""
        states = {one.row.get("state") or "ongoing" for one in self.tree.findings}
        return next((state for state in ("ongoing", "unknown") if state in states), "resolved")

    @cached_property
    def severity(self) -> str:
        """The most severe of all findings'."""
        return min((str(one.row["severity"]) for one in self.tree.findings), key=SEVERITIES.index)

    @property
    def records(self) -> int | None:
        """Records that wait, are lost or come again: of the root, or else of the effect with most of them."""
        return self._records[0]

    @property
    def fate(self) -> str:
        """What becomes of them."""
        return self._records[1]

    @property
    def markers(self) -> int:
        """Transaction markers that are between these records, as far as they are known."""
        findings = self._counted.findings if self._counted else ()
        stated = (one.details.get(MARKERS) for one in findings if "records_behind" in one.details)
        return sum(number for number in stated if isinstance(number, int))

    @cached_property
    def _counted(self) -> Bundle | None:
        """Whose records are reported; None: none are known."""
        if _sum(self.bundle.findings)[0] is not None:
            return self.bundle
        known = [node.bundle for node in self.tree.nodes if _sum(node.bundle.findings)[0] is not None]
        return max(known, key=lambda bundle: _sum(bundle.findings)[0] or 0, default=None)

    @cached_property
    def _records(self) -> tuple[int | None, str]:
        return _sum(self._counted.findings) if self._counted else (None, _WAIT)

    @cached_property
    def partitions(self) -> int:
        """Distinct partitions that its findings name."""
        stated = sum(
            int(one.details.get("partitions") or 0)
            for one in self.bundle.findings
            if isinstance(one.details.get("partitions"), int)
        )
        named = {
            (one.row["cluster"], *entity)
            for one in self.tree.findings
            for entity in one.entities
            if entity[0] == PARTITION
        }
        return max(stated, len(named))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Consumer groups that it is about, those of the root first."""
        found: dict[str, None] = {}
        for node in self.tree.nodes:
            of_rows = [one.group for one in node.bundle.findings if one.group]
            for name in (*of_rows, *sorted(entity[-1] for entity in node.bundle.named.get("group", ()))):
                found.setdefault(name)
        return tuple(found)


def naming(headline: str, case: Case) -> str:
    """A headline, with the clients that the root names where it names none of them by client id and host."""
    if not case.callers or any(_names(headline, one) for one in case.callers):
        return headline
    return f"{headline} (client{'' if len(case.callers) == 1 else 's'}: {case.at})"


def _names(headline: str, caller: Caller) -> bool:
    if caller.host is None:
        return re.search(rf"(?<![\w.-]){re.escape(str(caller.client_id))}(?![\w.-])", headline) is not None
    host = re.escape(caller.host)
    if caller.client_id is None:
        return re.search(rf"(?<![\w.]){host}(?!\w|\.\d)", headline) is not None
    return re.search(rf"(?<![\w.-]){re.escape(caller.client_id)}(?: at | \(|, .*? at ){host}", headline) is not None


def is_read_on(one: Known) -> bool:
    """Whether the records behind the commit of a finding have been fetched."""
    return bool(one.details.get("fetched_beyond")) or one.details.get("shape") == UNCOMMITTED


def records_of(one: Known) -> tuple[int | None, str]:
    """Records that wait, are lost, are skipped or are read again, as a finding states it, and which of these it is."""
    details = one.details
    stated = [(details[name], fate) for name, fate in _FATES.items() if isinstance(details.get(name), int)]
    if stated:
        number, fate = next((both for both in stated if both[0]), stated[0])
        return number, IN_HAND if fate == _WAIT and is_read_on(one) else fate
    high, stable = details.get("high_watermark"), details.get("last_stable_offset")
    if isinstance(high, int) and isinstance(stable, int):
        return max(high - stable, 0), _WAIT
    before, after = details.get("before"), details.get("after")
    if isinstance(before, int) and isinstance(after, int):
        return max(before - after, 0), AGAIN
    return None, _WAIT


def _sum(findings: Iterable[Known]) -> tuple[int | None, str]:
    """Of a group's topic as a whole and of partitions of it only the former counts."""
    stated = [(one, *records_of(one)) for one in findings]
    whole = {_topic(one) for one, count, _ in stated if count and one.row.get("partition") is None}
    counts = [
        (count, fate)
        for one, count, fate in stated
        if count is not None and (one.row.get("partition") is None or _topic(one) not in whole)
    ]
    return (sum(count for count, _ in counts), max(counts)[1]) if counts else (None, _WAIT)


def _topic(one: Known) -> tuple[object, ...]:
    return one.row["cluster"], one.group, one.row.get("topic")


def not_committed(records: int | None) -> str:
    """``1 record is not committed``, ``2,000 records are not committed``; without a number where none is known."""
    if not records:
        return "records are not committed"
    return f"{pluralize(records, 'record')} {'is' if records == 1 else 'are'} not committed"


def waiting(records: int) -> str:
    """``1 record waits``, ``2,000 records wait``."""
    return f"{pluralize(records, 'record')} {wait_or_waits(records)}"


def begun(text: str) -> str:
    """As a sentence begins, but for the names of properties and commands, which are copied unchanged."""
    return text if _NAME.match(text) else f"{text[:1].upper()}{text[1:]}"


def arg(name: object) -> str:
    """A name as a shell takes it."""
    return shlex.quote(str(name))


def literal(value: object) -> str:
    """A string literal of SQL."""
    return "'" + str(value).replace("'", "''") + "'"
