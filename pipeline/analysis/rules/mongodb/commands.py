"""Rules about MongoDB: slow and failing commands, retries, and cursors that nobody reads or closes.

The first three count symptoms, as :mod:`pipeline.analysis.rules.counted` does; cursors are followed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

from pipeline.analysis.rules.episodes import Shown
from pipeline.analysis.rules.model import Finding, Sources, clock, seconds
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.analysis.tables import Tables
from pipeline.finding_settings import FindingSettings

SLOW, FAILED, RETRIES, LEAK = "mongo_slow_command", "mongo_command_failed", "mongo_retry_storm", "mongo_cursor_leak"

_DUPLICATE_KEY, _NAMESPACE_NOT_FOUND, _NAMESPACE_EXISTS = 11000, 26, 48
ORDINARY: Final = (_DUPLICATE_KEY, _NAMESPACE_NOT_FOUND, _NAMESPACE_EXISTS)
"""Errors by which applications learn of the state of their data: whether something is there already."""
STREAM_LOST: Final = (136, 260, 280, 286)
"""CappedPositionLost, InvalidResumeToken, ChangeStreamFatalError, ChangeStreamHistoryLost: no driver resumes then."""
RETRIED: Final = (6, 7, 89, 91, 112, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436)
"""Errors after which a driver or its transaction begins again (mongodb/specifications, retryable writes; 112)."""
_UNHEEDED: Final = ("endSessions",)
"""Drivers send it when they close, and do not look at the reply; not every server has it."""
_SERVER_FORGETS_US = 600_000_000
"""A server closes a cursor that was idle for so long (cursorTimeoutMillis)."""
_ADVICE = (
    "Now: restart the application if the server is short of memory. Fix: close cursors in the code that opens them "
    "(`with collection.find(…) as cursor`, try-with-resources), also where it stops reading early or fails, or ask "
    "for no more than is read (`limit`). Each open cursor holds memory and a snapshot on the server, until it has "
    "been idle for ten minutes (cursorTimeoutMillis)."
)


NAMESPACE: Final = 'CASE WHEN "database" IS NOT NULL THEN concat_ws(\'.\', "database", "collection") END'
"""``database.collection`` of a command, or the database alone, as SQL."""
HAS_FAILED: Final = "coalesce(NOT ok OR error_code IS NOT NULL OR write_errors > 0, false)"
"""Whether the command, a write in it or its write concern failed, as SQL."""
_SYMPTOMS: Final = f"""
    WITH placed AS (
        SELECT *, coalesce({NAMESPACE}, '?') AS namespace FROM commands
    ), tailed AS (
        SELECT DISTINCT server, cursor_id FROM commands
        WHERE command = 'getMore' AND documents_out = 0 AND cursor_left <> 0 AND cursor_id IS NOT NULL
    ), slow AS (
        SELECT *, '{SLOW}' AS rule, command AS what, latency_us::DOUBLE AS value FROM placed
        WHERE latency_us >= $slow_us AND NOT coalesce(is_awaiting, false) AND command IS NOT NULL
    ), failed AS (
        SELECT *, CASE WHEN coalesce(error_code, 0) IN {RETRIED} THEN '{RETRIES}' ELSE '{FAILED}' END AS rule,
            coalesce(error_name, 'error ' || error_code, 'error') AS what, 0::DOUBLE AS value
        FROM placed
        WHERE {HAS_FAILED} AND coalesce(error_code, 0) NOT IN {(*ORDINARY, *STREAM_LOST)}
            AND NOT list_contains({list(_UNHEEDED)}, coalesce(command, ''))
    ), repeated AS (
        SELECT *, '{RETRIES}' AS rule, 'the same write again' AS what, 0::DOUBLE AS value FROM placed
        WHERE txn_number IS NOT NULL AND NOT coalesce(is_transaction, false)
        QUALIFY row_number() OVER (
            PARTITION BY server, session_id, txn_number, command ORDER BY ts, exchange_id
        ) > 1
    ), found AS (
        SELECT * FROM slow ANTI JOIN tailed USING (server, cursor_id)
        UNION ALL SELECT * FROM failed UNION ALL SELECT * FROM repeated
    )
    SELECT server, coalesce(application, 'an application without name') AS client_id, client_ip, epoch_us(ts) AS us,
        exchange_id, rule, namespace || '/' || coalesce(command, '?') AS subject, what, NULL AS topic,
        NULL AS partition, NULL AS group_id, value
    FROM found
"""


def command_symptoms(tables: Tables, settings: FindingSettings) -> list[Shown]:
    """The symptoms of commands: slow ones, failed ones, writes that a driver sent again.

    Cursors that await data are not slow: only these give an empty batch and stay open. A write is sent again if it has
    the same transaction number in the same session.

    Args:
        tables: ``commands``.
        settings: the latency that is a symptom.
    """
    rows = tables.rows(_SYMPTOMS, slow_us=int(settings.mongo_slow_seconds * 1_000_000))
    return [Shown(*row) for row in rows]


def ends(tables: Tables) -> dict[str, int]:
    """By server the time of the last command, µs since the epoch."""
    rows = tables.rows("SELECT server, max(epoch_us(ts)) AS us FROM commands GROUP BY server")
    return {row.server: row.us for row in rows}


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """Cursors of one application and host that are open and idle. Times are µs since the epoch.

    Attributes:
        cursors: how many.
        first_us, last_us: when the first and the last of them was last used.
        namespaces: what they read, at most fifty.
        evidence: exchanges that used them last.
        used_us: times of these exchanges.
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


def left_open(tables: Tables, last: Mapping[str, int], settings: FindingSettings) -> list[LeftOpen]:
    """The cursors that are open and were not used for ``mongo_cursor_idle_seconds`` at the end of the data.

    Of each cursor its last exchange counts. One that a server pushes (exhaust) does not count: its last reply does not
    name it.

    Args:
        tables: ``commands``, and ``gaps``: where frames were lost, a cursor may have been closed unseen.
        last: as :func:`ends` gives it.
        settings: thresholds.
    """
    idle_us = int(settings.mongo_cursor_idle_seconds * 1_000_000)
    opened = [row for row in tables.rows(_OPEN) if row.us <= last[row.server] - idle_us]
    found = []
    for (server, client_ip, application), some in groupby(opened, key=attrgetter("server", "client_ip", "application")):
        cursors = list(some)
        if len(cursors) < settings.mongo_open_cursors:
            continue
        uses = sorted((one.us, one.exchange_id) for one in cursors)
        kept = uses[: settings.max_evidence]
        found.append(
            LeftOpen(
                server, client_ip, application, len(cursors), uses[0][0], uses[-1][0],
                tuple(sorted({one.namespace for one in cursors})[:50]),
                tuple(exchange_id for _, exchange_id in kept), tuple(us for us, _ in kept),
            )
        )  # fmt: skip
    return found


_OPEN: Final = f"""
    WITH used AS (
        SELECT server, client_ip, application, exchange_id, epoch_us(ts) AS us, cursor_id,
            coalesce({NAMESPACE}, '?') AS namespace,
            coalesce(cursor_left <> 0 AND NOT coalesce(is_answered_later, false), false) AS is_open
        FROM commands WHERE cursor_id <> 0 AND cursors_killed IS NULL
        UNION ALL
        SELECT server, client_ip, application, exchange_id, epoch_us(ts), unnest(cursors_killed), '?', false
        FROM commands WHERE cursors_killed IS NOT NULL
    ), latest AS (
        SELECT * FROM used
        QUALIFY row_number() OVER (PARTITION BY server, cursor_id ORDER BY us DESC, is_open, exchange_id) = 1
    ), lossy AS (
        SELECT DISTINCT server, client_ip FROM commands SEMI JOIN gaps USING (connection_id)
    )
    SELECT * FROM latest ANTI JOIN lossy USING (server, client_ip) WHERE is_open
    ORDER BY server, client_ip, application, us, exchange_id
"""


CURSOR_LEAK = Rule(
    "mongo_cursor_leak",
    "mongodb",
    ("warning",),
    "An application opens cursors, and neither reads them to their end nor closes them.",
    ("mongo_open_cursors", "mongo_cursor_idle_seconds"),
    reads=("commands", "gaps"),
)


@finds(CURSOR_LEAK)
def find(sources: Sources, settings: FindingSettings) -> Iterator[Finding]:
    """The findings about cursors."""
    for one in left_open(sources.tables, sources.ends, settings):
        yield leak(one, sources.ends[one.server], settings)


def leak(found: LeftOpen, end_us: int, settings: FindingSettings) -> Finding:
    """The finding about cursors that are open when their server was seen last (µs since the epoch)."""
    name = found.application or "an application without name"
    idle_us = end_us - found.last_us
    what = ", ".join(found.namespaces[:3]) + (" and more" if len(found.namespaces) > 3 else "")
    summary = (
        f"{name} at {found.client_ip} left {found.cursors} cursors open on {found.server}, used last from "
        f"{clock(found.first_us)} to {clock(found.last_us)} UTC: they read {what}, and were neither read to their "
        f"end nor closed for {seconds(idle_us)} and longer."
    )
    enough_us = found.used_us[min(settings.mongo_open_cursors, len(found.used_us)) - 1]
    return Finding(
        rule=LEAK, severity="warning", subject=f"{found.application or '?'}/{found.client_ip}",
        state="open" if idle_us < _SERVER_FORGETS_US else "closed", cluster=found.server, topic=None,
        partition=None, group_id=None, first_us=found.first_us, last_us=found.last_us, summary=summary,
        advice=_ADVICE, evidence=found.evidence,
        details={
            "cursors": found.cursors, "namespaces": list(found.namespaces), "idle_us": idle_us,
            "enough_us": enough_us + int(settings.mongo_cursor_idle_seconds * 1_000_000),
        },
    )  # fmt: skip
