"""From landed rows to tables and findings, in one process."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from decoder import Codec
from pipeline.analysis.connection_ends import UNSPOKEN, lives
from pipeline.analysis.derive import Derived, Wanted, derive, findings_of
from pipeline.analysis.duplicates.duplicate_flows import counted_sql
from pipeline.analysis.fit import fit
from pipeline.analysis.frames.decode import decode_batch
from pipeline.analysis.frames.effort import pays_for_kernel
from pipeline.analysis.frames.order import by_connection
from pipeline.analysis.incidents.incidents import incidents_table, judged
from pipeline.analysis.rules.run import findings_table
from pipeline.analysis.safety.guard import InternalError, attempt, errors_table, noting
from pipeline.analysis.tables import IS_LOSS, Tables
from pipeline.config.settings import StreamSettings
from pipeline.embedded.inputs import Landed
from pipeline.tables import EXCHANGES, FINDINGS, FRAMES, INCIDENTS, INTERNAL_ERRORS

_DECODED_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Looked:
    """How much was looked at, so that silence means something. What was seen several times counts once.

    Attributes:
        copies: connections that are left out, for they carry the packets of others.
        translated: those of them with other addresses or ports.
        judged: exchanges with a decoded half that says something about both: paired ones, requests without an answer by
            design, and unanswered ones of connections that were captured without loss.
        cut: exchanges with no decodable half, since it was cut off or is damaged.
        first_us, last_us: of the first and the last frame, µs since the epoch; None without any.
        unspoken: connections that carried no message of Kafka or MongoDB: refused, not answered, silent, of others.
    """

    connections: int
    copies: int
    translated: int
    exchanges: int
    pending: int
    groups: int
    partitions: int
    clients: int
    servers: int
    bytes_lost: int
    judged: int
    cut: int
    first_us: int | None
    last_us: int | None
    unspoken: int = 0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong, and all that it was judged by.

    Attributes:
        derived: rows of bronze, silver and gold, and requests that still wait for their response.
        findings, incidents: rows of ``gold.findings`` and ``gold.incidents``.
        looked: how much was judged.
        errors: steps that failed, with nothing known; the rest was judged all the same.
        places: of all frames the columns by which :mod:`pipeline.embedded.frame_numbers` finds them in their capture;
            None: they are too many.
    """

    derived: Derived
    findings: pa.Table
    incidents: pa.Table
    looked: Looked
    places: pa.Table | None
    errors: tuple[InternalError, ...] = ()

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """All tables, by their full name."""
        judged = {FINDINGS.full_name: self.findings, INCIDENTS.full_name: self.incidents}
        failed = errors_table(self.errors, "diagnose", time.time_ns() // 1000)
        return {**self.derived.tables, **judged, INTERNAL_ERRORS.full_name: failed}


def diagnose(landed: Landed, settings: StreamSettings, wanted: Wanted = "all") -> Diagnosis:
    """Decode, derive and judge. A step that fails is noted in the diagnosis, and costs itself alone.

    Args:
        landed: frames and gaps.
        settings: of derivations and rules.
        wanted: which tables.
    """
    with noting() as noted:
        derived = derive(decoded(landed.frames, in_order=wanted == "all"), landed.gaps, settings, wanted)
        if noted.errors and landed.frames.num_rows and not derived.of(EXCHANGES).num_rows + derived.pending.num_rows:
            _demand_exchanges(noted.errors)
        found = findings_of(derived, settings.findings)
        judgement = judged(found, (), None, settings.findings)
        looked = attempt("what was looked at", lambda: looked_at(derived), lambda: looked_roughly(derived))
    return Diagnosis(
        derived, findings_table(judgement.findings), incidents_table(judgement.incidents), looked,
        places=derived.tables[FRAMES.full_name], errors=noted.errors,
    )  # fmt: skip


def _demand_exchanges(errors: Iterable[InternalError]) -> None:
    """Raise MemoryError if there are no exchanges because memory ran out: nothing else could be judged."""
    if any(error.step == f"table {EXCHANGES.full_name}" and error.is_excess for error in errors):
        raise MemoryError


def decoded(landed: pa.Table, *, by_kernel: bool | None = None, in_order: bool = False) -> pa.Table:
    """Rows of ``bronze.frames`` from landed ones.

    Args:
        landed: rows of the landing zone.
        by_kernel: whether compiled code decodes them; None: if that pays.
        in_order: frames of a connection beside each other, for tables that are written.
    """
    codec = Codec()
    by_kernel = pays_for_kernel(landed) if by_kernel is None else by_kernel
    pieces = landed.combine_chunks().to_batches(_DECODED_AT_ONCE)
    batches = [
        one
        for batch in (by_connection(pieces) if in_order else pieces)
        for one in decode_batch(codec, batch, by_kernel=by_kernel)
    ]
    rows = pa.Table.from_batches(batches) if batches else landed
    dates = rows.column("ts").cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    return fit(rows.append_column("date", dates), FRAMES)


def looked_roughly(derived: Derived) -> Looked:
    """The same without a query, for when that fails: of names nothing is counted."""
    exchanges, pending = derived.of(EXCHANGES), derived.pending
    connections = pc.count_distinct(exchanges.column("connection_id")).as_py()
    times = pc.min_max(exchanges.column("ts").cast(pa.int64())).as_py()
    count = exchanges.num_rows
    return Looked(
        connections, 0, 0, count, pending.num_rows, 0, 0, 0, 0, 0, count, 0, first_us=times["min"], last_us=times["max"]
    )


def looked_at(derived: Derived) -> Looked:
    """How much there was to look at."""
    names = {name.replace(".", "_"): rows for name, rows in derived.tables.items()}
    tables = Tables({**names, "pending": derived.pending})
    try:
        (row,) = tables.rows(f"""
            WITH counted AS ({counted_sql("silver_exchanges", "silver_duplicate_flows")}), copies AS (
                SELECT connection_id, bool_or(is_translated) AS is_translated
                FROM silver_duplicate_flows GROUP BY connection_id
            ), halves AS (
                SELECT connection_id, server_ip, server_port, request_ts, response_ts FROM counted
                UNION ALL SELECT connection_id, server_ip, server_port, request_ts, response_ts FROM pending
            )
            SELECT
                (SELECT count(DISTINCT connection_id) FROM halves) AS connections,
                (SELECT count(*) FROM copies) AS copies,
                (SELECT count(*) FROM copies WHERE is_translated) AS translated,
                (SELECT count(*) FROM counted) AS exchanges,
                (SELECT count(*) FROM pending) AS pending,
                (SELECT count(DISTINCT (cluster, group_id)) FROM silver_state_events WHERE group_id <> '') AS groups,
                (SELECT count(DISTINCT (cluster, topic, partition)) FROM gold_offset_timeline) AS partitions,
                (SELECT count(*) FROM gold_clients) AS clients,
                (SELECT count(DISTINCT (server_ip, server_port)) FROM halves) AS servers,
                (SELECT coalesce(sum(bytes_lost), 0)::BIGINT FROM bronze_gaps WHERE {IS_LOSS}) AS bytes_lost,
                (SELECT count(*) FROM counted WHERE (
                    status IN ('paired', 'no_response_expected')
                    OR status = 'unanswered' AND connection_id NOT IN (
                        SELECT connection_id FROM bronze_gaps WHERE {IS_LOSS}
                    )
                ) AND (
                    coalesce(request_status, '') IN ('ok', 'partial', 'redacted')
                    OR coalesce(response_status, '') IN ('ok', 'partial', 'redacted')
                )) AS judged,
                (SELECT count(*) FROM counted
                    WHERE coalesce(request_status, 'truncated') IN ('truncated', 'malformed')
                    AND coalesce(response_status, 'truncated') IN ('truncated', 'malformed')) AS cut,
                (SELECT min(least(epoch_us(request_ts), epoch_us(response_ts))) FROM halves) AS first_us,
                (SELECT max(greatest(epoch_us(request_ts), epoch_us(response_ts))) FROM halves) AS last_us
        """)
        unspoken = sum(one.connections for one in lives(tables, "silver_connections") if one.how in UNSPOKEN)
    finally:
        tables.close()
    return Looked(**row._asdict(), unspoken=unspoken)
