"""What hints at trouble in single commands of MongoDB: slow and failing ones, and retries.

Whether it is trouble, the rules decide: ``mongo_slow_command``, ``mongo_command_failed``, ``mongo_retry_storm``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.analysis.codes.model import HEALTH
from pipeline.analysis.codes.mongodb.table import MONGODB
from pipeline.analysis.rules.episode import Shown
from pipeline.analysis.tables import Tables

if TYPE_CHECKING:
    from pipeline.analysis.rules.mongodb.mongo_slow_command import MongoSlowCommand

SLOW, FAILED, RETRIES, LEAK = "mongo_slow_command", "mongo_command_failed", "mongo_retry_storm", "mongo_cursor_leak"

REPEATED: Final = "the same write again"
"""Names a write that came again under its number."""
ORDINARY: Final = MONGODB.of_area("data state")
"""Errors by which applications learn of the state of their data: whether something is there already."""
STREAM_LOST: Final = MONGODB.of_area("stream lost")
"""Errors after which no driver resumes a change stream."""
READS_STREAMS: Final = ("aggregate", "getMore")
"""Commands that open a change stream and read on: the rule change_stream_lost judges their errors of lost streams."""
RETRIED: Final = MONGODB.retried()
"""Errors after which a driver or its transaction begins again (mongodb/specifications, retryable reads and writes)."""
_IS_HEALTH: Final = " OR ".join(
    f"(coalesce(command, '') = '{one.api}' AND coalesce(error_code, 0) = {one.code})"
    for one in MONGODB.rows
    if one.kind == HEALTH and one.api is not None
)
"""Whether the reply is a part of normal operation, as SQL: a transaction that has ended need not be aborted."""
_UNHEEDED: Final = ("endSessions",)
"""Drivers send it when they close, and do not look at the reply; not every server has it."""
_COMMAND_NOT_FOUND: Final = 59
"""Where the request was not captured it may be one of :data:`_UNHEEDED`."""
LOGINS: Final = ("saslStart", "saslContinue", "authenticate")
"""Commands by which a client logs in."""
NAMESPACE: Final = 'CASE WHEN "database" IS NOT NULL THEN concat_ws(\'.\', "database", "collection") END'
"""``database.collection`` of a command, or the database alone, as SQL."""
LOGIN_OF: Final = "login of "
"""Begins what stands for the command in the subject of a login: each application, or host without one, has its own."""
SUBJECT: Final = f"""
    coalesce({NAMESPACE}, '?') || '/' || CASE WHEN coalesce(command, '') IN {LOGINS}
        THEN '{LOGIN_OF}' || replace(coalesce(application, client_ip), '/', ' ') ELSE coalesce(command, '?') END
"""
"""``namespace/command``, as SQL."""
APPLICATION: Final = "coalesce(application, 'an application without name')"
"""Whose command it is, for people, as SQL."""
HAS_FAILED: Final = "coalesce(NOT ok OR error_code IS NOT NULL OR write_errors > 0, false)"
"""Whether the command, a write in it or its write concern failed, as SQL."""
_SYMPTOMS: Final = f"""
    WITH placed AS (
        SELECT *, {SUBJECT} AS subject FROM commands
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
        WHERE {HAS_FAILED} AND coalesce(error_code, 0) NOT IN {ORDINARY}
            AND NOT (coalesce(error_code, 0) IN {STREAM_LOST} AND coalesce(command, '') IN {READS_STREAMS})
            AND NOT list_contains({list(_UNHEEDED)}, coalesce(command, '')) AND NOT ({_IS_HEALTH})
            AND NOT (command IS NULL AND coalesce(error_code, 0) = {_COMMAND_NOT_FOUND})
    ), repeated AS (
        SELECT *, '{RETRIES}' AS rule, '{REPEATED}' AS what, 0::DOUBLE AS value FROM placed
        WHERE txn_number IS NOT NULL AND NOT coalesce(is_transaction, false)
        QUALIFY row_number() OVER (
            PARTITION BY server, session_id, txn_number, command ORDER BY ts, exchange_id
        ) > 1 AND NOT ({HAS_FAILED} AND coalesce(error_code, 0) IN {RETRIED})
    ), found AS (
        SELECT * FROM slow ANTI JOIN tailed USING (server, cursor_id)
        UNION ALL SELECT * FROM failed UNION ALL SELECT * FROM repeated
    )
    SELECT server, {APPLICATION} AS client_id, client_ip, epoch_us(ts) AS us,
        exchange_id, rule, subject, what, NULL AS topic,
        NULL AS partition, NULL AS group_id, value
    FROM found
"""


def command_symptoms(tables: Tables, settings: MongoSlowCommand.Thresholds) -> list[Shown]:
    """The symptoms of commands: slow ones, failed ones, writes that a driver sent again.

    Cursors that await data are not slow: only these give an empty batch and stay open. A write is sent again if it has
    the same transaction number in the same session; where that fails with an error of retries it counts once, by the
    error.

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
