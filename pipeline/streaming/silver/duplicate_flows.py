"""Writes ``silver.duplicate_flows``, which lists copies of connections (:mod:`pipeline.analysis.duplicates`).

Silver keeps all that landed; what is derived from silver takes of each hour one copy. Two agents that saw a connection
begin know it by its ``flow_id``. Whether connections with other addresses carry the same packets is looked at in two
steps: what is new is compared by few columns, and hardly ever shows more than that there is nothing to look for; only
then the whole hours of what looks alike are read. So news cost the same however much of the hour is there already.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.duplicates.alike import ALIKE, OF_ALIKE, SKEW_US, alike, candidates, empty
from pipeline.analysis.duplicates.duplicate_flows import OF_EXCHANGES, copies
from pipeline.analysis.duplicates.numbers import NUMBERS_SQL, OF_NUMBERS, SAME_NUMBERS, same_numbers
from pipeline.analysis.duplicates.translated import OF_SAME, SAME, Statements, is_any_same, of_connections, same_flows
from pipeline.analysis.fit import fit
from pipeline.analysis.hours import HOUR_US, hour_of
from pipeline.streaming.storage.lake_io import LakeIO, same_rows
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import DUPLICATE_FLOWS, EXCHANGES, GAPS, MONGO_COMMANDS, OFFSET_EVENTS, STATE_EVENTS, quoted


def refresh_copies(rows: LakeIO, since_us: int) -> int | None:
    """Note the copies of the hours from that of ``since_us`` (µs since the epoch) on.

    Returns:
        That hour, from which on everything has to be rebuilt, as news may change which copy counts; None if no
        connection was seen several times.
    """
    hour = hour_of(since_us)
    held = rows.read(TableScan.since(DUPLICATE_FLOWS, hour - HOUR_US, time="hour"))
    same = _same_flows(rows, since_us, is_any_known=pc.any(held.column("is_translated")).as_py() is True)
    agents = rows.read(TableScan.since(EXCHANGES, hour, columns=("agent_id",), distinct=True))
    if len(pc.unique(agents.column("agent_id"))) < 2 and not same.num_rows and not held.num_rows:
        return None
    exchanges = TableScan.since(EXCHANGES, hour, columns=OF_EXCHANGES)
    made = rows.derive(
        lambda tables: copies(tables["exchanges"], tables["same"]),
        {"exchanges": exchanges},
        (_label_sql(same),),
        DUPLICATE_FLOWS,
        {"same": same},
        streams=True,
    )
    found = rows.as_arrow(made, DUPLICATE_FLOWS.columns)
    held = _since(held, hour)
    if not found.num_rows and not held.num_rows:
        return None
    if not same_rows(found, held, DUPLICATE_FLOWS):
        rows.replace_since(found, DUPLICATE_FLOWS, "hour", hour)
        rows.forget_copies()
    return hour


def _label_sql(same: pa.Table) -> str:
    """What flows that are one have in common, as SQL over exchanges."""
    pairs = set(zip(same.column("flow_id").to_pylist(), same.column("label").to_pylist(), strict=True))
    flows = sorted((flow, label) for flow, label in pairs if flow != label)
    if not flows:
        return "flow_id"
    cases = (f"WHEN flow_id = {quoted(flow)} THEN {quoted(label)}" for flow, label in flows)
    return f"CASE {' '.join(cases)} ELSE flow_id END"


def _since(held: pa.Table, hour: int) -> pa.Table:
    return held.filter(pc.greater_equal(held.column("hour").cast(pa.int64()), hour))


def _same_flows(rows: LakeIO, since_us: int, *, is_any_known: bool) -> pa.Table:
    """Flows that are one, of the hours from that of ``since_us`` on."""
    if not is_any_known and not _numbers(rows, since_us - SKEW_US).num_rows:
        new = candidates(_alike(rows, since_us - SKEW_US), 1)
        if not is_any_same(*_of(rows, since_us - SKEW_US, new), new):
            return empty(SAME)
    # What an hour shows holds in the next one as well.
    hour = hour_of(since_us) - HOUR_US
    those = candidates(_alike(rows, hour))
    return same_flows(*_of(rows, hour, those), those, _numbers(rows, hour))


def _numbers(rows: LakeIO, since_us: int) -> pa.Table:
    gaps = TableScan.since(GAPS, since_us, columns=OF_NUMBERS, present=("life",))
    made = rows.derive(lambda tables: same_numbers(tables["gaps"]), {"gaps": gaps}, (NUMBERS_SQL,), SAME_NUMBERS)
    return rows.as_arrow(made, SAME_NUMBERS)


def _alike(rows: LakeIO, since_us: int) -> pa.Table:
    exchanges = TableScan.since(EXCHANGES, since_us, columns=OF_ALIKE)
    made = rows.derive(
        lambda tables: alike(tables["exchanges"]), {"exchanges": exchanges}, ("correlation_id",), ALIKE, streams=True
    )
    return rows.as_arrow(made, ALIKE)


def _of(rows: LakeIO, since_us: int, those: pa.Table) -> tuple[pa.Table, Statements]:
    """Exchanges of some connections, and what they state."""
    exchanges, events, states, commands = (
        _read(rows, TableScan.since(table, since_us, columns=OF_SAME[table.full_name]), those)
        for table in (EXCHANGES, OFFSET_EVENTS, STATE_EVENTS, MONGO_COMMANDS)
    )
    return exchanges, Statements(events, states, commands)


def _read(rows: LakeIO, wanted: TableScan, those: pa.Table) -> pa.Table:
    if not those.num_rows:
        return fit(pa.table({}), wanted.table).select(wanted.columns)
    if not rows.lake.is_local:
        its = F.regexp_extract("exchange_id", "^[^-/]*", 0).isin(those.column("connection_id").to_pylist())
        found: pa.Table = rows.frame(wanted).where(its).toArrow()
        return found
    return of_connections(rows.scan(wanted), those, wanted.columns)
