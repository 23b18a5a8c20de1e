"""How long does the picture of a partition with a million commits take? From the address to the drawn chart.

The lake is made by rule: a group of three members commits one partition over three days, each commit with its exchange;
fetches, and other partitions, are beside it. What is measured: the query and the specification in this process, by CPU
and by the clock, and the page in Chromium, from asking for the address until the points of the commits are there (CPU:
of the server alone).
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urlencode

import duckdb
import pyarrow as pa
from deltalake import write_deltalake
from rich.table import Table as Grid

from benchmarks.browser import watch
from benchmarks.candidates import CONSOLE
from pipeline.dashboard.queries.progress.offsets import Offsets, offsets
from pipeline.dashboard.queries.progress.partitions import Place
from pipeline.dashboard.queries.scope import Scope, extent
from pipeline.dashboard.sql import connect
from pipeline.lake.arrow import arrow_type
from pipeline.tables import EXCHANGES, OFFSET_TIMELINE, TABLES, Table

COMMITS, TIMES = 1_000_000, 5
PLACE = Place("crowded", "payments", 2, "billing")
_POINT = "[data-testid=stVegaLiteChart] svg .mark-symbol path"
_BEGIN_US = int(datetime(2026, 1, 5, tzinfo=timezone.utc).timestamp()) * 1_000_000
_DAYS_US = 3 * 86_400 * 1_000_000
_EVENTS = """
    SELECT i, $begin + (i * $span) // (($commits * 4) // 3) AS us,
        CASE WHEN i % 4 = 3 THEN 'fetched' ELSE 'committed' END AS kind,
        CASE WHEN i % 7 = 0 THEN 'stale' WHEN i % 2 = 0 THEN 'left' ELSE 'right' END AS who
    FROM range(($commits * 4) // 3) AS r(i)
"""
_TIMELINE = f"""
    SELECT make_timestamptz(us) AS ts, date, 'crowded' AS cluster, 'payments' AS topic, 2::INT AS partition,
        CASE WHEN kind = 'committed' THEN 'billing' ELSE '' END AS group_id, 0::INT AS ordinal, 'x' || i AS exchange_id,
        kind, who AS client_id, CASE WHEN kind = 'committed' THEN who || '-9f2c1b7e' END AS member_id,
        3::INT AS generation, 'NONE' AS error_name, CASE WHEN who = 'stale' THEN 24 ELSE i END AS event_offset,
        0::BIGINT AS log_start_offset, i + 5 AS last_stable_offset, i + 7 AS high_watermark,
        i AS fetch_position, i AS committed_offset, 7::BIGINT AS lag, 0::INT AS incarnation
    FROM (SELECT *, make_timestamptz(us)::DATE AS date FROM ({_EVENTS}))
    UNION ALL BY NAME
    SELECT make_timestamptz($begin + i * 1000000) AS ts, make_timestamptz($begin + i * 1000000)::DATE AS date,
        'crowded' AS cluster, 'other-' || (i % 50) AS topic, (i % 8)::INT AS partition, 'others' AS group_id,
        0::INT AS ordinal, 'o' || i AS exchange_id, 'committed' AS kind, 'app' AS client_id, i AS committed_offset,
        i AS event_offset, i + 3 AS high_watermark, 3::BIGINT AS lag
    FROM range($commits // 5) AS r(i)
"""  # noqa: S608 - our own text
_EXCHANGES = f"""
    SELECT make_timestamptz(us) AS ts, make_timestamptz(us)::DATE AS date, 'x' || i AS exchange_id,
        'c' || who AS connection_id, 'agent' AS agent_id, 'f' || who AS flow_id, 'kafka' AS protocol,
        '10.0.0.1' AS client_ip, 40000::INT AS client_port, '10.0.0.2' AS server_ip, 9092::INT AS server_port,
        CASE WHEN kind = 'committed' THEN 8 ELSE 1 END::INT AS api_key, 8::INT AS api_version,
        CASE WHEN kind = 'committed' THEN 'OffsetCommit' ELSE 'Fetch' END AS api_name, who AS client_id,
        make_timestamptz(us) AS request_ts, make_timestamptz(us + 900) AS response_ts, 900 + i % 300 AS latency_us,
        'paired' AS status
    FROM ({_EVENTS})
"""  # noqa: S608 - our own text


def main(commits: int = COMMITS) -> None:
    """Make the lake, and measure."""
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder) / "lake"
        fill(lake, commits)
        measure(lake)


def fill(lake: Path, commits: int) -> None:
    """Write the lake: ``commits`` commits of one partition, and what goes with them."""
    values = {"begin": _BEGIN_US, "span": _DAYS_US, "commits": commits}
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table, sql in ((OFFSET_TIMELINE, _TIMELINE), (EXCHANGES, _EXCHANGES)):
            order = ", ".join(("date", *table.cluster_by, "ts"))
            rows = connection.sql(f"SELECT * FROM ({sql}) ORDER BY {order}", params=values)  # noqa: S608 - our own text
            _write(lake, table, rows.to_arrow_table())
    for table in TABLES.values():
        if table not in (OFFSET_TIMELINE, EXCHANGES):
            _write(lake, table, pa.table({}))


def _write(lake: Path, table: Table, rows: pa.Table) -> None:
    columns = {
        column.name: rows.column(column.name).cast(arrow_type(column.type))
        if column.name in rows.column_names
        else pa.nulls(rows.num_rows, arrow_type(column.type))
        for column in table.columns
    }
    write_deltalake(str(lake / table.path), pa.table(columns), partition_by=list(table.partition_by) or None)


def measure(lake: Path) -> None:
    """Query and specification here, then the page."""
    grid = Grid("what", "CPU s", "seconds", title=f"Median of {TIMES}")
    with connect(lake) as connection:
        there = extent(connection)
        if there is None:
            raise RuntimeError("the lake is empty")
        scope = Scope(there.first, there.last, "kafka")
        _row(grid, "query", [_timed(lambda: offsets(connection, scope, PLACE)) for _ in range(TIMES)])
        shown = offsets(connection, scope, PLACE)
        if shown is None:
            raise RuntimeError("nothing was seen of the partition")
        _row(grid, "specification", [_timed(lambda: specification(shown)) for _ in range(TIMES)])
    first, *others = _in_browser(lake)
    _row(grid, "page, the first time", [first])
    _row(grid, "page", others)
    CONSOLE.print(grid)


def specification(shown: Offsets) -> None:
    """Make it, as the page does."""
    from pipeline.dashboard.web.pictures.offsets_picture import offsets_picture  # noqa: PLC0415 - not without Altair

    offsets_picture(shown, dark=False)[0].to_dict()


def _row(grid: Grid, name: str, times: list[tuple[float, float]]) -> None:
    cpu, clock = (statistics.median(each) for each in zip(*times, strict=True))
    grid.add_row(name, f"{cpu:.2f}", f"{clock:.2f}")


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    used, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    call()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime, time.perf_counter() - began


def _in_browser(lake: Path) -> Iterator[tuple[float, float]]:
    """CPU seconds of the server, and seconds until the points are drawn."""
    address = {
        "group": PLACE.group_id, "topic": PLACE.topic, "partition": PLACE.partition, "cluster": PLACE.cluster,
        "range": "all",
    }  # fmt: skip
    with watch(lake) as watched:
        for _ in range(TIMES + 1):
            timed = watched.load(f"/partitions?{urlencode(address)}")
            seconds = timed.reached(f"return document.querySelector('{_POINT}')")
            yield timed.cpu(), seconds


if __name__ == "__main__":
    measure(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
