"""Rule ``change_stream_lost``: a change stream, or a tailable cursor, cannot continue from where it was.

Evidence: ChangeStreamHistoryLost, ChangeStreamFatalError and InvalidResumeToken in the reply to the aggregate that
resumes or to a getMore, CappedPositionLost in that to a getMore. Drivers do not resume after them
(mongodb/specifications, change streams: errors without the label ResumableChangeStreamError), so one is enough: what
happened since the last event is not delivered any more. Errors after which a driver resumes by itself (CursorNotFound,
a change of primary) are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from pydantic import Field

from pipeline.analysis.claims.mongodb import CHANGE_STREAM_LOST
from pipeline.analysis.codes.mongodb.table import MONGODB
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import LOSES
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.mongodb.commands import NAMESPACE, READS_STREAMS, STREAM_LOST
from pipeline.analysis.rules.recurrence import last_of_each
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock, seconds

_HISTORY_LOST, _INVALID_TOKEN, _POSITION_LOST = 286, 260, 136


class ChangeStreamLost(Rule):
    """A change stream cannot continue from where it was: events are not delivered."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        stream_losses: Count = Field(
            default=1, description="Errors after which a change stream of one application cannot continue"
        )

    name = "change_stream_lost"
    title = "Change stream lost"
    protocol = "mongodb"
    severities = ("critical", "warning")
    reads = ("commands",)
    advice = tuple(MONGODB.meaning(None, code).advice for code in STREAM_LOST)
    urgency = LOSES
    effects = (Link(("mongo_command_failed",), (CLIENT,), "a stream that is gone cannot be resumed"),)
    claims = CHANGE_STREAM_LOST

    @classmethod
    def is_lasting(cls, case: Case) -> bool:
        """Events that were not read stay missing."""
        del case
        return True

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule: one finding for each application and namespace."""
        found = []
        for _, some in groupby(_rows(sources.tables), key=_stream):
            rows = list(some)
            found += [_finding(rows, lost, settings) for lost in losses(rows) if len(lost) >= settings.stream_losses]
        return last_of_each(found)


_WHY: Final = {
    _HISTORY_LOST: "the oplog does not reach back to the last event that it has seen",
    _INVALID_TOKEN: "its resume token does not belong to this stream",
    _POSITION_LOST: "what it was about to read was overwritten",
}
_NAMELESS = "?"
"""An application whose handshake was not captured: each of its connections is judged alone, for whose they are is
unknown."""
_ROWS: Final = f"""
    WITH placed AS (
        SELECT server, coalesce({NAMESPACE}, '?') AS namespace,
            coalesce(application, driver, '{_NAMELESS}') AS application,
            CASE WHEN coalesce(application, driver) IS NULL THEN coalesce(client, '') ELSE '' END AS address,
            client_ip, epoch_us(ts) AS us, exchange_id, command, error_code, error_name, cursor_left, is_awaiting, ok
        FROM commands WHERE command IN {READS_STREAMS}
    ), affected AS (
        SELECT DISTINCT server, namespace, application, client_ip, address FROM placed WHERE error_code IN {STREAM_LOST}
    )
    SELECT * FROM placed SEMI JOIN affected USING (server, namespace, application, client_ip, address)
    ORDER BY server, namespace, application, client_ip, address, us, exchange_id
"""


def _stream(row: Row) -> tuple[str, ...]:
    return row.server, row.namespace, row.application, row.client_ip, row.address


def losses(rows: Sequence[Row]) -> list[list[Row]]:
    """The errors of one application, in order of time, cut where it began a stream again and read from it."""
    found: list[list[Row]] = []
    is_anew, reads = True, False
    for row in rows:
        if row.error_code in STREAM_LOST:
            if (is_anew and reads) or not found:
                found.append([])
            found[-1].append(row)
            is_anew = reads = False
        else:
            is_anew = is_anew or _opens(row)
            reads = reads or (is_anew and row.command == "getMore")
    return found


def _rows(tables: Tables) -> list[Row]:
    """The aggregates and getMores of applications that lost a stream, application by application in order of time."""
    return tables.rows(_ROWS)


def _finding(rows: Sequence[Row], lost: Sequence[Row], settings: ChangeStreamLost.Thresholds) -> Finding:
    first, last = lost[0], lost[-1]
    before = [row.us for row in rows if row.us < first.us and row.command == "getMore" and row.error_code is None]
    anew = next((row for row in rows if row.us > last.us and _opens(row)), None)
    errors = sorted({row.error_name or f"error {row.error_code}" for row in lost})
    is_known = first.application != _NAMELESS
    name = first.application if is_known else f"an application without name{_port(first)}"
    is_lasting = is_known and anew is None
    times = "once" if len(lost) == 1 else f"{len(lost)} times until {clock(last.us)} UTC"
    parts = [
        f"The change stream of {name} at {first.client_ip} on {first.namespace} was lost at {clock(first.us)} UTC "
        f"({', '.join(errors)}, {times}): {_WHY.get(first.error_code, 'the server cannot go on with it')}",
        f"Its last read was at {clock(before[-1])} UTC, {seconds(first.us - before[-1])} before" if before else "",
        f"It opened a new stream at {clock(anew.us)} UTC: what happened between is not in it"
        if anew
        else "No new stream was seen: later events are not delivered"
        if is_known
        else "Whether it started over on another connection is unknown: its handshake was not captured",
    ]
    return Finding(
        rule=ChangeStreamLost.name, severity="critical" if is_lasting else "warning",
        subject=f"{first.namespace}/{first.application if is_known else first.client_ip}",
        state="resolved" if anew else "ongoing" if is_known else "unknown",
        cluster=first.server, topic=None, partition=None, group_id=None,
        first_us=first.us, last_us=last.us, summary=". ".join(part for part in parts if part) + ".",
        advice=MONGODB.meaning(None, first.error_code).advice,
        evidence=[row.exchange_id for row in lost][: settings.max_evidence],
        details={
            "times": len(lost), "kinds": errors, "application": first.application, "host": first.client_ip,
            "address": first.address, "namespace": first.namespace, "last_read_us": before[-1] if before else None,
            "anew_us": anew.us if anew else None, "enough_us": lost[min(settings.stream_losses, len(lost)) - 1].us,
        },
    )  # fmt: skip


def _port(row: Row) -> str:
    """The port of a connection without application: it distinguishes connections, and the next one has another."""
    _, colon, port = row.address.rpartition(":")
    return f" (port {port})" if colon else ""


def _opens(row: Row) -> bool:
    """Whether it opens a cursor that waits for more: any other aggregate may be read to its end at once."""
    return bool(row.command == "aggregate" and row.error_code is None and row.ok and row.cursor_left)
