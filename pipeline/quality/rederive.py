"""Derives sampled hours again and compares: what exchanges state, and how a minute was answered.

Rows that all tables have lost together are missed by no count of :mod:`pipeline.quality.relations`. Here bodies are
read again, by the functions that the job uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.bodies import with_bodies_sql
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.fit import fit
from pipeline.analysis.hours import HOUR_US
from pipeline.analysis.minutes import api_latency
from pipeline.analysis.statements.exchanges import TABLES, KafkaStatements, mongodb_statements
from pipeline.quality.model import Ask
from pipeline.quality.relations import once, view_of
from pipeline.tables import API_LATENCY, EXCHANGES, EXCHANGES_WITH_BODIES, FRAMES, MONGO_COMMANDS, Table

SAMPLED = 20_000
"""Exchanges of an hour whose bodies are read again; hours that are as small are read as a whole."""
READS = (EXCHANGES, FRAMES, MONGO_COMMANDS, API_LATENCY, *TABLES.values())
"""Tables that are compared, and those that they are derived from."""

_HOUR_OF = f"floor(unix_micros(ts) / {HOUR_US})"
_SAMPLE = f"""
    FROM silver_exchanges WHERE {_HOUR_OF} = {{hour}} AND status <> 'pending'
    ORDER BY exchange_id LIMIT {SAMPLED}
"""
_HAS_FRAMES = " AND ".join(
    f"NOT coalesce({half}_status = 'ok' AND {half}_body IS NULL, false)" for half in ("request", "response")
)
"""Whether the frames of an exchange are there: that frames were lost is for other checks to say."""


@dataclass(frozen=True, slots=True)
class Again:
    """What a table should hold of an hour, and what it holds.

    Attributes:
        expected: rows.
        found: the same less those that are missing, too many or different.
    """

    table: Table
    hour_us: int
    expected: int
    found: int


def sampled_hours(ask: Ask, seed: str, since: date | None = None) -> list[int]:
    """Hours since the epoch: the last one, which the stream may have left undone, and any other one.

    Args:
        ask: answers queries over the tables of READS.
        seed: chooses the other one.
        since: the first UTC day; None: any.
    """
    days = f"WHERE \"date\" >= DATE '{since.isoformat()}'" if since is not None else ""
    hours = ask(f"SELECT DISTINCT CAST({_HOUR_OF} AS BIGINT) AS hour FROM silver_exchanges {days}")
    known = sorted(hour for hour in hours.column("hour").to_pylist() if hour is not None)
    if not known:
        return []
    return sorted({known[-1], Random(seed).choice(known)})  # noqa: S311 - a sample, no secret


def derived_again(ask: Ask, hour: int) -> Iterator[Again]:
    """Compare the tables with what follows from the exchanges of an hour.

    Args:
        ask: answers queries over the tables of READS.
        hour: since the epoch, by the ``ts`` of exchanges.
    """
    sample = _SAMPLE.format(hour=hour)
    found = with_bodies_sql(f"(SELECT * {sample})", view_of(FRAMES))
    exchanges = fit(ask(f"SELECT * FROM ({found}) AS found WHERE {_HAS_FRAMES}"), EXCHANGES_WITH_BODIES)
    kafka = KafkaStatements.of(exchanges)
    commands, _ = mongodb_statements(exchanges)
    stated = [(table, kafka.table(part, ClusterCatalog())) for part, table in TABLES.items()]
    for table, rows in (*stated, (MONGO_COMMANDS, commands)):
        held = ask(
            f"SELECT exchange_id FROM {view_of(table)} WHERE exchange_id IN (SELECT exchange_id FROM "
            f"(SELECT exchange_id {sample}) AS sample)"
        )
        known = held.filter(pc.is_in(held.column("exchange_id"), exchanges.column("exchange_id").combine_chunks()))
        yield _compared(table, hour, _ids(rows), _ids(known))
    if exchanges.num_rows < SAMPLED:
        own = ask(f"SELECT rows_of.* {_once_of(hour)} AND {_HOUR_OF.replace('ts', 'rows_of.ts')} = {hour}")
        minutes = ask(f"SELECT * FROM {view_of(API_LATENCY)} WHERE {_HOUR_OF.replace('ts', 'minute')} = {hour}")
        yield _compared(API_LATENCY, hour, _rows(api_latency(fit(own, EXCHANGES))), _rows(fit(minutes, API_LATENCY)))


def _once_of(hour: int) -> str:
    return once("silver_exchanges").format(before=f"DATE '{_day_of(hour) - timedelta(days=1)}'")


def _day_of(hour: int) -> date:
    return date(1970, 1, 1) + timedelta(hours=hour)


def _compared(table: Table, hour: int, expected: Counter[object], held: Counter[object]) -> Again:
    differ = sum(((expected - held) + (held - expected)).values())
    return Again(table, hour * HOUR_US, expected.total(), expected.total() - differ)


def _ids(rows: pa.Table) -> Counter[object]:
    return Counter(rows.column("exchange_id").to_pylist())


def _rows(rows: pa.Table) -> Counter[object]:
    return Counter(map(repr, rows.to_pylist()))
