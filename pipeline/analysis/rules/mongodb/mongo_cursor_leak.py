"""Rule ``mongo_cursor_leak``: an application opens cursors, and neither reads them to their end nor closes them.

Evidence: what used each cursor last. One that was not used for long before it was closed, or before the end of the
data, lay idle from then on; a leak is when many of one application and host lie idle at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

from pydantic import Field

from pipeline.analysis.claims.mongodb import MONGO_CURSOR_LEAK
from pipeline.analysis.codes.mongodb.drivers import closes_cursors
from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import CLIENT, HOST
from pipeline.analysis.rules.case.texts import SEEN, WASTES, Texts, advised, nobody
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.mongodb.commands import LEAK, NAMESPACE
from pipeline.analysis.rules.recurrence import earlier
from pipeline.analysis.rules.rule import OF_CLIENT, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.analysis.tables import IS_LOSS, Row, Tables
from pipeline.humanize import clock, listed, pluralize, seconds

ADVICE = (
    "Now: restart the application if the server is short of memory. Fix: close cursors in the code that opens them "
    "({closes}), also where it stops reading early or fails, or ask "
    "for no more than is read (`limit`). Each open cursor holds memory and a snapshot on the server, until it has "
    "been idle for ten minutes (cursorTimeoutMillis)."
)


def _cursors(case: Case) -> str:
    left = sum(int(one.details.get("cursors") or 0) for one in case.bundle.findings)
    names = sorted({name for one in case.bundle.findings for name in one.details.get("namespaces", [])})
    return f"{_leaker(case)} leaves {pluralize(left, 'cursor')} on {listed(names)} open at {case.lead.row['cluster']}"


def _leaker(case: Case) -> str:
    application, _, host = str(case.lead.row["subject"]).rpartition("/")
    return f"{application} ({host})"


class MongoCursorLeak(Rule):
    """An application opens cursors, and neither reads them to their end nor closes them."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        mongo_open_cursors: Count = Field(default=10, description="Cursors that one application leaves open")
        mongo_cursor_idle_seconds: Seconds = Field(default=30.0, description="Without a use of them for so long")

    name = "mongo_cursor_leak"
    title = "MongoDB cursors left open"
    protocol = "mongodb"
    severities = ("warning",)
    reads = ("commands", "gaps")
    advice = (ADVICE,)
    urgency = WASTES
    texts = Texts(
        headline=_cursors,
        now=lambda case: (
            f"Restart {_leaker(case)} if the server runs short of memory; else cursors end after ten idle minutes."
        ),
        fix=lambda case: begun(advised(case, "fix")),
        reasoning=f"{SEEN}the cursors were opened, and neither read to their end nor killed.",
        source=_leaker,
        affected=nobody,
    )
    gathered = OF_CLIENT
    subject = (CLIENT, HOST)
    claims = MONGO_CURSOR_LEAK

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Apply the rule: of each application and host the last leak."""
        for some in left_open(sources.tables, sources.ends, settings):
            yield leak(some, sources.ends[some[-1].server], settings)


_SERVER_FORGETS_US = 600_000_000
"""A server closes a cursor that was idle for so long (cursorTimeoutMillis)."""


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """Cursors of one application and host that lay idle at one time. Times are µs since the epoch.

    Attributes:
        cursors: how many.
        first_us, last_us: when the first and the last of them was last used.
        namespaces: what they read, at most fifty.
        evidence: exchanges that used them last.
        used_us: times of these exchanges.
        closed_us: when so many were closed that it was no leak any more; None: they were not.
        driver: of the application; None: it is not known.
    """

    server: str
    client_ip: str
    application: str | None
    cursors: int
    first_us: int
    last_us: int
    namespaces: tuple[str, ...]
    evidence: tuple[str, ...]
    used_us: tuple[int, ...]
    closed_us: int | None = None
    driver: str | None = None


_IDLE: Final = f"""
    WITH used AS (
        SELECT server, client_ip, application, exchange_id, epoch_us(ts) AS us, cursor_id,
            coalesce({NAMESPACE}, '?') AS namespace, driver,
            coalesce(cursor_left <> 0 AND NOT coalesce(is_answered_later, false), false) AS is_open
        FROM commands WHERE cursor_id <> 0 AND cursors_killed IS NULL
        UNION ALL
        SELECT server, client_ip, application, exchange_id, epoch_us(ts), unnest(cursors_killed), '?', driver,
            false
        FROM commands WHERE cursors_killed IS NOT NULL
    ), next AS (
        SELECT *, lead(us) OVER same AS until_us, lead(is_open) OVER same AS goes_on FROM used
        WINDOW same AS (PARTITION BY server, cursor_id ORDER BY us, is_open DESC, exchange_id)
    ), lossy AS (
        SELECT DISTINCT server, client_ip FROM commands SEMI JOIN (FROM gaps WHERE {IS_LOSS}) USING (connection_id)
    )
    SELECT server, client_ip, application, us, exchange_id, namespace, driver, until_us FROM next
    ANTI JOIN lossy USING (server, client_ip)
    WHERE is_open AND NOT coalesce(goes_on, false) AND (until_us IS NULL OR until_us - us >= $idle_us)
    ORDER BY server, client_ip, application, us, exchange_id
"""
"""The last use of each cursor, if it lay idle after it, and when it was closed or read to its end."""


def left_open(
    tables: Tables, last: Mapping[str, int], settings: MongoCursorLeak.Thresholds
) -> Iterator[list[LeftOpen]]:
    """Of each application and host that ever had ``mongo_open_cursors`` idle cursors, the times when it had.

    A cursor is idle from ``mongo_cursor_idle_seconds`` after its last use on, until it is closed. One that a server
    pushes (exhaust) does not count: its last reply does not name it.

    Args:
        tables: ``commands``, and ``gaps``: where frames were lost, a cursor may have been closed unseen.
        last: by server the time of the last command, µs since the epoch.
        settings: thresholds.
    """
    idle_us = int(settings.mongo_cursor_idle_seconds * 1_000_000)
    rows = [row for row in tables.rows(_IDLE, idle_us=idle_us) if row.us <= last[row.server] - idle_us]
    for _, some in groupby(rows, key=attrgetter("server", "client_ip", "application")):
        cursors = list(some)
        if len(cursors) >= settings.mongo_open_cursors:
            found = [_left(few, closed_us, settings) for few, closed_us in _times(cursors, idle_us, settings)]
            if found:
                yield found


def _times(
    cursors: Sequence[Row], idle_us: int, settings: MongoCursorLeak.Thresholds
) -> Iterator[tuple[list[Row], int | None]]:
    """The times when too many were idle: which were, and when that ended."""
    changes = sorted(
        [(row.us + idle_us, 1, number) for number, row in enumerate(cursors)]
        + [(row.until_us, 0, number) for number, row in enumerate(cursors) if row.until_us is not None]
    )
    idle: set[int] = set()
    leaked: set[int] = set()
    for us, begins, number in changes:
        if begins:
            idle.add(number)
        else:
            idle.discard(number)
        if len(idle) >= settings.mongo_open_cursors:
            leaked |= idle
        elif leaked:
            yield [cursors[one] for one in sorted(leaked)], us
            leaked = set()
    if leaked:
        yield [cursors[one] for one in sorted(leaked)], None


def _left(cursors: Sequence[Row], closed_us: int | None, settings: MongoCursorLeak.Thresholds) -> LeftOpen:
    uses = sorted((one.us, one.exchange_id) for one in cursors)
    kept = uses[: settings.max_evidence]
    return LeftOpen(
        cursors[0].server, cursors[0].client_ip, cursors[0].application, len(cursors), uses[0][0], uses[-1][0],
        tuple(sorted({one.namespace for one in cursors})[:50]),
        tuple(exchange_id for _, exchange_id in kept), tuple(us for us, _ in kept), closed_us,
        next((one.driver for one in cursors if one.driver), None),
    )  # fmt: skip


def leak(some: Sequence[LeftOpen], end_us: int, settings: MongoCursorLeak.Thresholds) -> Finding:
    """The finding about the last time; ``end_us`` is when the server was seen last, µs since the epoch."""
    found = some[-1]
    name = found.application or "an application without name"
    until_us = end_us if found.closed_us is None else found.closed_us
    idle_us = until_us - found.last_us
    what = ", ".join(found.namespaces[:3]) + (" and more" if len(found.namespaces) > 3 else "")
    is_one = found.cursors == 1
    was, it = ("was", "it") if is_one else ("were", "they")
    fate = (
        f"{was} neither read to their end nor closed for {seconds(idle_us)} and longer."
        if found.closed_us is None
        else f"lay idle until {clock(found.closed_us)} UTC, when {it} {was} closed."
    )
    summary = (
        f"{name} at {found.client_ip} left {pluralize(found.cursors, 'cursor')} open on {found.server}, used last from "
        f"{clock(found.first_us)} to {clock(found.last_us)} UTC: {it} read {what}, and {fate}"
    )
    enough_us = found.used_us[min(settings.mongo_open_cursors, len(found.used_us)) - 1]
    is_over = found.closed_us is not None or idle_us >= _SERVER_FORGETS_US
    return Finding(
        rule=LEAK, severity="warning", subject=f"{found.application or '?'}/{found.client_ip}",
        state="resolved" if is_over else "ongoing", cluster=found.server, topic=None,
        partition=None, group_id=None, first_us=found.first_us, last_us=found.last_us, summary=summary,
        advice=ADVICE.format(closes=closes_cursors(found.driver)), evidence=found.evidence,
        details={
            "cursors": found.cursors, "namespaces": list(found.namespaces), "idle_us": idle_us,
            "enough_us": enough_us + int(settings.mongo_cursor_idle_seconds * 1_000_000),
            **earlier((one.first_us, one.last_us) for one in some),
        },
    )  # fmt: skip
