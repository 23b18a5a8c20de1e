"""How quickly and how well apis and commands were answered: ``silver.exchanges``, each exchange counted once.

Latencies are service times: without what a request waited behind earlier ones of its connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import duckdb
import pyarrow as pa

from pipeline.analysis.tables import ADDRESS, SERVICE_US
from pipeline.dashboard.queries.active import Active, in_points, runs_of, seconds_shown
from pipeline.dashboard.queries.progress.members import MEMBERS, OTHERS
from pipeline.dashboard.queries.scope import APPLICATIONS, BUCKETS, SEEN_ONCE, Scope, ask, ask_rows
from pipeline.errors import UserError

MOST_EXCHANGES = 30_000_000
"""Exchanges whose percentiles are computed while somebody waits; of more a shorter span has to be chosen."""
MOST_ROWS = 500
BANDS = 5
"""Bands of latency in a power of ten."""
HEAT_BUCKETS = 120
MOST_NAMES = 30
"""Apis, brokers or clients in one picture: those with most exchanges."""
DAY = timedelta(days=1)
_FINE = 2000
"""Points in which it is looked for silences."""
Row = Literal["api", "broker", "client"]

# Percentiles do not add up, so they come from the exchanges and not from gold's minutes.
_COUNTED = f"""
  SELECT x.* REPLACE (coalesce(nullif(x.client_id, ''), h.application) AS client_id), {SERVICE_US} AS took_us
  FROM silver.exchanges AS x
  LEFT JOIN {APPLICATIONS} AS h ON h.connection_id = x.connection_id
  WHERE x.date BETWEEN $first_day AND $last_day AND x.ts BETWEEN $start AND $end
    AND ($protocol IS NULL OR x.protocol = $protocol)
    AND {SEEN_ONCE}
"""  # noqa: S608 - our own text

_SUMS = """
SELECT coalesce(sum(n), 0)::BIGINT AS exchanges FROM (
  SELECT exchanges AS n FROM gold.api_latency
  WHERE date BETWEEN $first_day AND $last_day AND minute BETWEEN $start AND $end
  UNION ALL
  SELECT commands FROM gold.mongo_commands
  WHERE date BETWEEN $first_day AND $last_day AND minute BETWEEN $start AND $end
)
"""

_APIS = f"""
SELECT protocol, coalesce(api_name, 'not known') AS api_name, count(*) AS exchanges,
  count(*) FILTER (len(coalesce(error_codes, [])) > 0) AS errors,
  count(*) FILTER (status = 'unanswered') AS unanswered,
  quantile_disc(took_us, 0.5) AS p50_us, quantile_disc(took_us, 0.95) AS p95_us,
  quantile_disc(took_us, 0.99) AS p99_us, max(took_us) AS max_us,
  max(try_subtract(latency_us, took_us)) AS longest_wait_us,
  sum(coalesce(request_size, 0)::BIGINT + coalesce(response_size, 0))::BIGINT AS bytes
FROM ({_COUNTED})
GROUP BY ALL
ORDER BY exchanges DESC, api_name
LIMIT $most
"""  # noqa: S608 - our own text

_SERVER = ADDRESS["server"]
_CLIENT = "coalesce(nullif(client_id, ''), client_ip)"

_SPAN = f"SELECT min(ts) AS first_ts, max(ts) AS last_ts FROM ({_COUNTED}) WHERE {{asked}}"  # noqa: S608 - our own text

_ACTIVE = f"""
SELECT DISTINCT time_bucket(to_seconds($step), ts) AS ts FROM ({_COUNTED}) WHERE {{asked}} ORDER BY ts
"""  # noqa: S608 - our own text

_OVER_TIME = f"""
WITH answered AS (
  SELECT time_bucket(to_seconds($step), ts) AS ts, took_us, len(coalesce(error_codes, [])) > 0 AS is_error
  FROM ({_COUNTED}) WHERE {{asked}}
)
SELECT ts, count(*) AS exchanges, count(*) FILTER (is_error) AS errors,
  quantile_disc(took_us, 0.5) AS p50, quantile_disc(took_us, 0.95) AS p95, quantile_disc(took_us, 0.99) AS p99
FROM answered
GROUP BY ts
ORDER BY ts
"""  # noqa: S608 - our own text

_HEAT = f"""
SELECT time_bucket(to_seconds($step), ts) AS ts, floor({BANDS} * log10(greatest(took_us, 1)))::INT AS band,
       count(*) AS exchanges
FROM ({_COUNTED}) WHERE {{asked}} AND took_us IS NOT NULL
GROUP BY ALL ORDER BY ts, band
"""  # noqa: S608 - our own text

_ROWS: dict[Row, str] = {"api": "coalesce(api_name, 'not known')", "broker": _SERVER, "client": _CLIENT}
_HEAT_BY = f"""
WITH answered AS (
  SELECT {{row}} AS name, time_bucket(to_seconds($step), ts) AS ts, took_us FROM ({_COUNTED}) WHERE {{asked}}
    AND took_us IS NOT NULL
)
SELECT name, ts, count(*) AS exchanges, quantile_disc(took_us, 0.5) AS p50, quantile_disc(took_us, 0.99) AS p99,
       max(took_us) AS longest
FROM answered
WHERE name IN (SELECT name FROM answered GROUP BY name ORDER BY count(*) DESC, name LIMIT $most)
GROUP BY ALL ORDER BY name, ts
"""  # noqa: S608 - our own text

_TRAFFIC_BY = f"""
WITH carried AS (
  SELECT {{row}} AS name, time_bucket(to_seconds($step), ts) AS ts,
    coalesce(request_size, 0)::BIGINT + coalesce(response_size, 0) AS size
  FROM ({_COUNTED}) WHERE {{asked}}
)
SELECT CASE WHEN name IN (SELECT name FROM carried GROUP BY name ORDER BY sum(size) DESC, name LIMIT $most)
         THEN name ELSE '{OTHERS}' END AS name,
  ts, count(*) AS exchanges, sum(size)::BIGINT AS bytes
FROM carried
GROUP BY ALL ORDER BY name, ts
"""  # noqa: S608 - our own text

_NAMES = f"""
SELECT {{row}} AS name, count(*) AS n FROM ({_COUNTED}) WHERE {{asked}} GROUP BY ALL ORDER BY n DESC, name LIMIT $most
"""  # noqa: S608 - our own text

_ERRORS = f"""
WITH failed AS (
  SELECT protocol, api_name, coalesce(client_id, client_ip) AS client_id, ts, unnest(error_names) AS error_name
  FROM ({_COUNTED})
  WHERE len(coalesce(error_names, [])) > 0
)
SELECT protocol, api_name, error_name, count(*) AS exchanges, count(DISTINCT client_id) AS clients,
  list_sort(list_distinct(list(client_id)))[:5] AS some_clients, min(ts) AS first_ts, max(ts) AS last_ts
FROM failed
GROUP BY protocol, api_name, error_name
ORDER BY exchanges DESC, api_name, error_name
LIMIT $most
"""  # noqa: S608 - our own text

_STEPS = {
    1: "second", 10: "10 seconds", 60: "minute", 300: "5 minutes", 900: "15 minutes", 3600: "hour", 21_600: "6 hours",
    86_400: "day",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """Which exchanges; None: any.

    Attributes:
        protocol: kafka or mongodb.
        api_name: of Kafka, or command of MongoDB.
        server: ip:port of the broker or server.
        client: client id, of MongoDB the application's name, or address where there is none.
    """

    protocol: str | None = None
    api_name: str | None = None
    server: str | None = None
    client: str | None = None

    def conditions(self) -> str:
        """As SQL, with the names of :meth:`parameters`; a column that nothing is asked of is not read."""
        asked = [
            condition
            for condition, value in (
                ("protocol = $api_protocol", self.protocol),
                ("coalesce(api_name, 'not known') = $api_name", self.api_name),
                (f"{_SERVER} = $server", self.server),
                (f"{_CLIENT} = $client", self.client),
            )
            if value is not None
        ]
        return " AND ".join(asked) or "true"

    def parameters(self) -> dict[str, Any]:
        """Values of ``$api_protocol``, ``$api_name``, ``$server`` and ``$client``."""
        return {
            "api_protocol": self.protocol, "api_name": self.api_name, "server": self.server, "client": self.client,
        }  # fmt: skip


def step(scope: Scope, most: int = BUCKETS) -> tuple[int, str]:
    """Width of a point in :func:`over_time`, in seconds and in words: the least that gives no more than ``most``."""
    seconds = seconds_shown(scope)
    return next(((width, text) for width, text in _STEPS.items() if seconds / width <= most), (86_400, "day"))


def _ask_of(
    connection: duckdb.DuckDBPyConnection, sql: str, scope: Scope, asked: Asked, row: Row = "api", **values: Any
) -> pa.Table:
    """The answer about what is asked: its conditions take the place of ``{asked}``, what a row is that of ``{row}``."""
    filled = sql.format(asked=asked.conditions(), row=_ROWS[row])
    return ask(connection, filled, scope, **asked.parameters(), **values)


def demand_few(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    """Refuse a span with so many exchanges that their percentiles would take minutes.

    Raises:
        UserError: it is too long.
        NotThereYetError: a table is missing.
    """
    count = ask_rows(connection, _SUMS, scope)[0]["exchanges"]
    if count > MOST_EXCHANGES:
        raise UserError(f"Percentiles of {count:,} exchanges take too long: choose a shorter time range.")


def apis(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Each Kafka api and MongoDB command: counts, bytes, and percentiles by nearest rank in microseconds."""
    return ask_rows(connection, _APIS, scope, most=MOST_ROWS)


def span(connection: duckdb.DuckDBPyConnection, scope: Scope, asked: Asked) -> Scope:
    """The part of the span in which this was asked, in whole points of :func:`over_time`, without long silences."""
    bounds = _ask_of(connection, _SPAN, scope, asked).to_pylist()[0]
    if bounds["first_ts"] is None:
        return scope
    whole = (bounds["last_ts"] - bounds["first_ts"]).total_seconds()
    fine = max(1, int(whole // _FINE))
    active = _ask_of(connection, _ACTIVE, scope, asked, step=fine).column("ts").to_pylist()
    runs = runs_of(active, timedelta(seconds=fine))
    width = step(Active(scope.start, scope.end, runs=tuple(Scope(*run) for run in runs)))[0]
    return in_points(runs, width, scope.protocol)


def over_time(connection: duckdb.DuckDBPyConnection, scope: Scope, asked: Asked) -> pa.Table:
    """Answers over time: ``ts``, ``exchanges``, ``errors``, and ``p50``, ``p95``, ``p99`` in microseconds."""
    return _ask_of(connection, _OVER_TIME, scope, asked, step=step(scope)[0])


def day_before(connection: duckdb.DuckDBPyConnection, scope: Scope, asked: Asked) -> pa.Table:
    """The figures of these hours one day earlier, with the times of today; no rows where there was nothing."""
    before = Scope(scope.start - DAY, scope.end - DAY, scope.protocol)
    found = _ask_of(connection, _OVER_TIME, before, asked, step=step(scope)[0])
    times = pa.array([ts + DAY for ts in found.column("ts").to_pylist()], found.schema.field("ts").type)
    return found.set_column(found.schema.get_field_index("ts"), "ts", times)


def heat(connection: duckdb.DuckDBPyConnection, scope: Scope, asked: Asked) -> pa.Table:
    """How many exchanges took how long when: ``ts``, ``band``, ``exchanges``.

    Band ``n`` are latencies from 10^(n/BANDS) microseconds, inclusive, to those of band ``n`` + 1.
    """
    return _ask_of(connection, _HEAT, scope, asked, step=step(scope, HEAT_BUCKETS)[0])


def heat_by(connection: duckdb.DuckDBPyConnection, scope: Scope, asked: Asked, row: Row) -> pa.Table:
    """Latency by api, broker or client: ``name``, ``ts``, ``exchanges``, ``p50``, ``p99``, ``longest`` (µs)."""
    width = step(scope, HEAT_BUCKETS)[0]
    return _ask_of(connection, _HEAT_BY, scope, asked, row, step=width, most=MOST_NAMES)


def traffic_by(
    connection: duckdb.DuckDBPyConnection, scope: Scope, asked: Asked, row: Row, most: int = MEMBERS
) -> pa.Table:
    """What was carried over time by api, broker or client: ``name``, ``ts``, ``exchanges``, ``bytes`` (both ways).

    The ``most`` names with most bytes have rows of their own, all others share ``OTHERS``.
    """
    return _ask_of(connection, _TRAFFIC_BY, scope, asked, row, step=step(scope, HEAT_BUCKETS)[0], most=most)


def names(connection: duckdb.DuckDBPyConnection, scope: Scope, asked: Asked, row: Row) -> list[str]:
    """Brokers, or clients, of these exchanges to choose from; of very many those with most."""
    found: list[str] = _ask_of(connection, _NAMES, scope, asked, row, most=MOST_ROWS).column("name").to_pylist()
    return found


def errors(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Which errors came how often from which api, to how many clients.

    ``some_clients`` are up to five of them, by client id, or by address where there is none.
    """
    return ask_rows(connection, _ERRORS, scope, most=MOST_ROWS)
