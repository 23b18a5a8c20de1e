"""What must hold in bronze, silver and gold: one Great Expectations suite for each table.

What the registry knows (columns, not null, keys, CHECK constraints) is derived from it, so a new table is checked as
soon as it is declared; what needs knowledge of a protocol is here, by table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # read at import: nothing is reported to anybody

import great_expectations as gx
from great_expectations import expectations as gxe

from decoder.errors import ErrorCode
from decoder.kafka.records.batches import UNKNOWN_ATTRIBUTES
from decoder.model import FrameFlags, PayloadPolicy, Status
from decoder.mongodb.codec.wire import OP_COMPRESSED
from decoder.protocols import protocols
from pipeline.analysis.rules.rule import all_rules
from pipeline.quality.model import Severity
from pipeline.tables import TABLES, Table

Layer = Literal["bronze", "silver", "gold"]
LAYERS: tuple[Layer, ...] = ("bronze", "silver", "gold")

_DIRECTIONS = ("request", "response")
_KINDS = (
    "produced",
    "produce_rejected",
    "fetched",
    "fetch_rejected",
    "fetch_forgotten",
    "committed",
    "commit_rejected",
    "fetched_commit",
    "listed",
    "txn_committed",
    "txn_commit_rejected",
)


_SHOWN_ELSEWHERE = ("topic_recreated", *(rule.name for rule in all_rules() if rule.protocol == "capture"))
"""Rules whose findings may have no exchange as evidence: who made a topic again may have done it elsewhere; what shows
a loss, or a connection that never came to speak, is a row of ``bronze.gaps``."""


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation of one table.

    Attributes:
        name: stable; column ``name`` of ``ops.quality_results``.
        column: the column it is about, if it is about one.
        text: what is expected, in words.
        expectation: as Great Expectations runs it.
        condition: SQL over a row whose value the expectation finds in the column :attr:`condition_column`. Great
            Expectations gathers what it asks of columns into one Spark job; SQL of its own would cost two jobs a check.
        is_written: whether it is written here, by hand, and does not follow from the registry.
        violated: SQL over a row that is true where the row violates it; None: it is not about single rows.
    """

    table: Table
    name: str
    column: str | None
    severity: Severity
    text: str
    expectation: Any
    condition: str | None = None
    is_written: bool = False
    violated: str | None = None

    @property
    def condition_column(self) -> str:
        """Name of the column that holds the value of :attr:`condition`."""
        return f"holds_{self.name}"

    @property
    def key(self) -> str:
        """Identifies the check within a suite."""
        return f"{self.name}:{self.column or ''}"


class _Suite:
    """Builds the checks of one table; one method per form of expectation."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def _check(
        self,
        name: str,
        about: str | None,
        severity: Severity,
        text: str,
        kind: Any,
        *,
        violated: str | None = None,
        condition: str | None = None,
        **args: Any,
    ) -> Check:
        expectation = kind(**args, severity=severity, meta={"key": f"{name}:{about or ''}"})
        return Check(self.table, name, about, severity, text, expectation, condition, violated=violated)

    def has_columns(self) -> Check:
        return self._check(
            "has_columns",
            None,
            "critical",
            "the table has every column of the registry",
            gxe.ExpectTableColumnsToMatchSet,
            column_set=list(self.table.column_names),
            exact_match=False,
        )

    def not_null(self, column: str) -> Check:
        return self._check(
            "not_null",
            column,
            "critical",
            f"{column} is never null",
            gxe.ExpectColumnValuesToNotBeNull,
            violated=f"`{column}` IS NULL",
            column=column,
        )

    def in_set(self, column: str, allowed: Sequence[str], *, name: str = "allowed_values") -> Check:
        return self._check(
            name,
            column,
            "critical",
            f"{column} is one of {', '.join(allowed)}",
            gxe.ExpectColumnValuesToBeInSet,
            column=column,
            value_set=list(allowed),
            violated=_outside(column, allowed),
        )

    def at_least(self, column: str, minimum: int, severity: Severity = "critical") -> Check:
        return self._check(
            "at_least",
            column,
            severity,
            f"{column} is at least {minimum}",
            gxe.ExpectColumnValuesToBeBetween,
            column=column,
            min_value=minimum,
            violated=f"`{column}` < {minimum}",
        )

    def mostly(self, name: str, column: str, allowed: Sequence[str], share: float) -> Check:
        return self._check(
            name,
            column,
            "warning",
            f"{column} is {' or '.join(allowed)} in at least {share:.0%} of the rows",
            gxe.ExpectColumnValuesToBeInSet,
            column=column,
            value_set=list(allowed),
            mostly=share,
            violated=_outside(column, allowed),
        )

    def ordered(self, smaller: str, larger: str, severity: Severity = "critical") -> Check:
        return self.holds(
            f"{smaller}_not_above_{larger}",
            f"{smaller} <= {larger}",
            f"{smaller} is at most {larger} where both are known",
            severity,
        )

    def unique_key(self) -> Check:
        columns = ", ".join(f"`{column}`" for column in self.table.key)
        return self._check(
            "unique_key",
            None,
            "critical",
            f"no two rows share {', '.join(self.table.key)}",
            gxe.UnexpectedRowsExpectation,
            unexpected_rows_query=f"SELECT {columns} FROM {{batch}} GROUP BY {columns} HAVING count(*) > 1",  # noqa: S608 - names of our registry
        )

    def holds(self, name: str, condition: str, text: str, severity: Severity = "critical") -> Check:
        """``condition`` is SQL over the row; null counts as held, as in a CHECK constraint."""
        return self._check(
            name,
            None,
            severity,
            text,
            gxe.ExpectColumnValuesToBeInSet,
            column=f"holds_{name}",
            value_set=[True],
            condition=condition,
            violated=f"NOT ({condition})",
        )

    def of_registry(self) -> Iterator[Check]:
        yield self.has_columns()
        for column in self.table.columns:
            if not column.nullable:
                yield self.not_null(column.name)
        yield self.unique_key()
        for name, condition in self.table.checks.items():
            yield self.holds(name, condition, f"constraint {name}: {condition}")


def _outside(column: str, allowed: Sequence[str]) -> str:
    return f"`{column}` NOT IN ({', '.join(map(repr, allowed))})"


def _frames(s: _Suite) -> Iterator[Check]:
    yield s.in_set("direction", _DIRECTIONS)
    yield s.in_set("decode_status", get_args(Status))
    yield s.in_set("protocol", tuple(protocols()))
    yield s.in_set("payload_policy", get_args(PayloadPolicy))
    yield s.ordered("ts", "ts_end")
    yield s.at_least("seq", 0)
    # of a compressed MongoDB message the agent stores what it had to change uncompressed
    yield s.holds(
        "frame_not_above_size",
        f"octet_length(frame) <= size OR (protocol = 'mongodb' AND api_key = {OP_COMPRESSED})",
        "no frame is longer than its size on the wire",
    )
    yield s.holds(
        "no_internal_error",
        f"error_code IS NULL OR error_code <> '{ErrorCode.INTERNAL.value}'",
        "the decoder itself never failed",
    )
    yield s.holds("date_is_day_of_ts", "`date` = to_date(ts)", "date is the UTC day of ts")
    yield s.holds(
        "attributes_known",
        f"record_batches IS NULL OR NOT contains(record_batches, '{UNKNOWN_ATTRIBUTES}')",
        "no record batch has an attribute bit that its format does not use",
        "warning",
    )
    yield s.mostly("mostly_decoded", "decode_status", ("ok", "redacted"), 0.95)


def _gaps(s: _Suite) -> Iterator[Check]:
    yield s.in_set("direction", _DIRECTIONS)
    yield s.at_least("bytes_lost", 0)
    yield s.holds("confidence_is_share", "confidence BETWEEN 0 AND 1", "confidence is between 0 and 1")


def _connections(s: _Suite) -> Iterator[Check]:
    for side in ("closed_by", "reset_by"):
        known = f"{side} IS NULL OR {side} IN ('client', 'server')"
        yield s.holds(f"{side}_known", known, f"{side} is client or server")
    yield s.at_least("round_trip_us", 0)
    for side in ("client", "server"):
        for counted in ("packets", "bytes", "sent_again", "unacknowledged"):
            yield s.at_least(f"{side}_{counted}", 0)
    yield s.holds(
        "many_have_no_client",
        "connections = 1 OR client_ip IS NULL",
        "of connections that are only counted no client is stated",
    )
    yield s.holds("failed_has_end", "NOT is_failed OR ended <> 'unknown'", "of what failed it is stated how")


def _exchanges(s: _Suite) -> Iterator[Check]:
    yield s.holds(
        "paired_has_both_sides",
        "status <> 'paired' OR (request_ts IS NOT NULL AND response_ts IS NOT NULL "
        "AND (latency_us IS NOT NULL OR (coalesce(request_flags, 0) | coalesce(response_flags, 0)) "
        f"& {int(FrameFlags.TIME_CLAMPED)} <> 0))",
        "a paired exchange has request, response and, where both times are known, latency",
    )
    yield s.holds(
        "unpaired_has_one_side",
        "status NOT IN ('no_response_expected', 'unanswered') OR (request_ts IS NOT NULL AND response_ts IS NULL)",
        "an exchange without an answer has a request only",
    )
    yield s.holds(
        "orphan_has_no_request",
        "status NOT IN ('orphan_response', 'following_response') OR (request_ts IS NULL AND response_ts IS NOT NULL)",
        "a response that is an orphan, or follows another one by itself, has no request",
    )
    yield s.holds(
        "errors_have_names",
        "coalesce(size(error_codes), 0) = coalesce(size(error_names), 0)",
        "each error code has its name",
    )
    yield s.mostly("mostly_paired", "status", ("paired", "no_response_expected", "following_response"), 0.95)


def _offset_events(s: _Suite) -> Iterator[Check]:
    yield s.in_set("kind", _KINDS)
    yield s.at_least("partition", 0)
    # Both from one response: the broker itself keeps this order.
    yield s.ordered("last_stable_offset", "high_watermark")
    yield s.ordered("log_start_offset", "high_watermark")
    yield s.holds("topic_known", "topic IS NOT NULL OR topic_id IS NOT NULL", "a topic has a name or an id")
    yield s.holds(
        "commit_has_group",
        "kind NOT IN ('committed', 'commit_rejected', 'fetched_commit') OR group_id IS NOT NULL",
        "a commit names its group",
    )
    yield s.holds(
        "isolation_level_known",
        "isolation_level IS NULL OR isolation_level IN ('read_uncommitted', 'read_committed')",
        "isolation_level is read_uncommitted or read_committed",
    )
    # OffsetFetch says -1 where a group has committed nothing: then the offset is null.
    yield s.holds(
        "commit_is_offset",
        "kind NOT IN ('committed', 'fetched_commit', 'txn_committed') OR `offset` >= 0",
        "what is committed is an offset, or none",
        "warning",
    )
    # -1: ListOffsets that found nothing.
    yield s.holds("offset_is_one", "`offset` >= -1", "an offset is at least 0, or -1 for none", "warning")


def _record_batches(s: _Suite) -> Iterator[Check]:
    yield s.in_set("source", ("produce", "fetch"))
    yield s.ordered("base_offset", "last_offset")
    # Fewer: a compacted log has gaps. A producer may state what it likes.
    yield s.holds(
        "records_fit_offsets",
        "records <= last_offset - base_offset + 1",
        "a batch has no more records than offsets",
        "warning",
    )
    yield s.holds("crc_valid", "crc_valid", "the checksum of every batch is right", "warning")


def _mongo_commands(s: _Suite) -> Iterator[Check]:
    yield s.holds(
        "error_has_code", "ok OR ok IS NULL OR error_code IS NOT NULL", "a failed command has a code", "warning"
    )
    yield s.at_least("documents_in", 0)
    yield s.at_least("documents_out", 0)
    yield s.mostly("mostly_named", "status", ("paired", "no_response_expected", "following_response"), 0.95)


def _timeline(s: _Suite) -> Iterator[Check]:
    yield s.in_set("kind", (*_KINDS, "txn_applied", "txn_discarded"))
    yield s.at_least("lag", 0)
    yield s.at_least("lag_read_committed", 0)
    yield s.at_least("lag_seconds", 0)
    # Carried forward from different exchanges: a commit can be seen before the fetch that has the new end.
    yield s.ordered("committed_offset", "high_watermark", "warning")
    yield s.ordered("last_stable_offset", "last_stable_high_watermark", "warning")
    yield s.holds(
        "retention_is_stated",
        "committed_offset >= log_start_offset OR coalesce(lost_to_retention, 0) > 0 OR group_id = ''",
        "where the log begins behind a committed offset, lost_to_retention states how far",
    )


def _findings(s: _Suite) -> Iterator[Check]:
    yield s.in_set("severity", ("info", "warning", "critical"))
    yield s.ordered("first_ts", "last_ts")
    shown = f"size(evidence) > 0 OR rule IN ({', '.join(map(repr, _SHOWN_ELSEWHERE))})"
    yield s.holds("has_evidence", shown, "a finding names the exchanges that show it")


def _incidents(s: _Suite) -> Iterator[Check]:
    yield s.in_set("severity", ("info", "warning", "critical"))
    yield s.in_set("state", ("ongoing", "unknown", "resolved"))
    yield s.ordered("first_ts", "last_ts")
    yield s.holds("root_first", "findings[0] = root_id", "the root is the first of an incident's findings")


WRITTEN = {
    "bronze.frames": _frames,
    "bronze.gaps": _gaps,
    "silver.connections": _connections,
    "silver.exchanges": _exchanges,
    "silver.offset_events": _offset_events,
    "silver.record_batches": _record_batches,
    "silver.mongo_commands": _mongo_commands,
    "gold.offset_timeline": _timeline,
    "gold.findings": _findings,
    "gold.incidents": _incidents,
}
"""What is written by hand, by table."""


def checks_of(table: Table) -> tuple[Check, ...]:
    """Every check of ``table``."""
    suite = _Suite(table)
    written = WRITTEN.get(table.full_name, lambda _: ())
    return (*suite.of_registry(), *(replace(check, is_written=True) for check in written(suite)))


def tables_of(layer: Layer) -> tuple[Table, ...]:
    """The tables of ``layer``, in the registry's order."""
    return tuple(table for table in TABLES.values() if table.schema == layer)


def expectation_suite(table: Table) -> gx.ExpectationSuite:
    """The checks of ``table`` as Great Expectations' own type."""
    return gx.ExpectationSuite(name=table.full_name, expectations=[check.expectation for check in checks_of(table)])
