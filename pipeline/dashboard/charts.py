"""The page's pictures as Altair charts, for notebooks and reports; they need no Streamlit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import altair as alt
import duckdb
import pyarrow as pa

from pipeline.dashboard.queries import latency
from pipeline.dashboard.queries.latency import Asked, Row
from pipeline.dashboard.queries.overview.findings import finding
from pipeline.dashboard.queries.overview.proof import proof
from pipeline.dashboard.queries.progress.groups import group_seen, groups
from pipeline.dashboard.queries.progress.offsets import offsets
from pipeline.dashboard.queries.progress.partitions import Place, places
from pipeline.dashboard.queries.scope import Scope, extent
from pipeline.dashboard.sql import connect
from pipeline.dashboard.web.pictures import latency_picture
from pipeline.dashboard.web.pictures.group_picture import one_group_chart
from pipeline.dashboard.web.pictures.offsets_picture import one_chart
from pipeline.dashboard.web.pictures.picture import below_each_other
from pipeline.dashboard.web.pictures.proof_picture import proof_picture
from pipeline.dashboard.web.pictures.traffic_picture import traffic
from pipeline.errors import UserError


def offsets_chart(
    lake: Path | str,
    topic: str,
    partition: int,
    *,
    group: str | None = None,
    cluster: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    dark: bool = False,
    width: int = 900,
) -> alt.VConcatChart | alt.LayerChart:
    """The picture of a partition's offsets over time, as the page draws it: log, commits by member, owners.

    Args:
        lake: the lake's folder or URL.
        topic: name, or id where the name is not known.
        partition: index.
        group: whose commits are shown; None: the group seen most there.
        cluster: None: the one seen most there.
        start: first moment, inclusive; with no zone it is UTC. None: as long as the lake has data.
        end: last moment, likewise.
        dark: whether it is drawn on a dark background.
        width: pixels of the plot.

    Raises:
        UserError: there is no lake, or nothing was seen of this partition.
    """
    with connect(lake) as connection:
        scope = _scope(connection, start, end)
        place = _place(connection, scope, topic, partition, group, cluster)
        shown = offsets(connection, scope, place)
    if shown is None:
        raise UserError(f"nothing was seen of {topic}-{partition} in this time")
    return one_chart(shown, dark=dark, width=width)


def group_chart(
    lake: Path | str,
    group: str,
    *,
    cluster: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    dark: bool = False,
    width: int = 900,
) -> alt.VConcatChart:
    """The picture of a group over time: who owned what, who waited for whom, lag, and the rhythm of commits.

    Args:
        lake: the lake's folder or URL.
        group: its ``group.id``.
        cluster: None: the one where a group of this name was seen most.
        start: first moment, inclusive; with no zone it is UTC. None: as long as the lake has data.
        end: last moment, likewise.
        dark: whether it is drawn on a dark background.
        width: pixels of the plot.

    Raises:
        UserError: there is no lake, or nothing was seen of this group.
    """
    with connect(lake) as connection:
        scope = _scope(connection, start, end)
        there = [one for one in groups(connection, scope) if one.group_id == group and cluster in (None, one.cluster)]
        shown = group_seen(connection, scope, there[0]) if there else None
    if shown is None:
        raise UserError(f"nothing was seen of group {group} in this time")
    return one_group_chart(shown, dark=dark, width=width)


def latency_chart(
    lake: Path | str,
    api: str | None = None,
    *,
    broker: str | None = None,
    client: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    dark: bool = False,
    width: int = 900,
) -> alt.VConcatChart:
    """Latency over time: how many exchanges took how long, and percentiles beside those of the day before.

    Args:
        lake: the lake's folder or URL.
        api: name of an api of Kafka or a command of MongoDB; None: all.
        broker: ip:port of the broker or server; None: all.
        client: client id, or address where there is none; None: all.
        start: first moment, inclusive; with no zone it is UTC. None: as long as the lake has data.
        end: last moment, likewise.
        dark: whether it is drawn on a dark background.
        width: pixels of the plot.

    Raises:
        UserError: there is no lake, or nothing of this was answered.
    """
    asked = Asked(api_name=api, server=broker, client=client)
    with connect(lake) as connection:
        scope = latency.span(connection, _scope(connection, start, end, None), asked)
        cells = latency.heat(connection, scope, asked)
        points = latency.over_time(connection, scope, asked)
        before = latency.day_before(connection, scope, asked)
    if not cells.num_rows:
        raise UserError(f"nothing of {api or 'any api'} was answered in this time")
    whole = latency_picture.heat(scope, cells, points, before, dark=dark)
    return below_each_other([whole], "color", "strokeDash", dark=dark, width=width)


def slowest_chart(
    lake: Path | str,
    by: Row = "api",
    *,
    protocol: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    dark: bool = False,
    width: int = 900,
) -> alt.VConcatChart:
    """The 99th percentile of latency over time of all apis, brokers or clients beside each other, the slowest first.

    Args:
        lake: the lake's folder or URL.
        by: what a row is: ``api`` (of MongoDB a command), ``broker`` or ``client``.
        protocol: kafka or mongodb; None: both.
        start: first moment, inclusive; with no zone it is UTC. None: as long as the lake has data.
        end: last moment, likewise.
        dark: whether it is drawn on a dark background.
        width: pixels of the plot.

    Raises:
        UserError: there is no lake, or nothing was answered.
    """
    scope, cells = _cells_by(latency.heat_by, lake, by, protocol, start, end)
    if not cells.num_rows:
        raise UserError("nothing was answered in this time")
    return below_each_other([latency_picture.heat_by(scope, cells, by, dark=dark)], dark=dark, width=width)


def traffic_chart(
    lake: Path | str,
    by: Row = "api",
    *,
    protocol: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    dark: bool = False,
    width: int = 900,
) -> alt.VConcatChart:
    """KiB a second over time, requests and responses together, by those that carried most; the others share a colour.

    Args:
        lake: the lake's folder or URL.
        by: what a colour is: ``api`` (of MongoDB a command), ``broker`` or ``client``.
        protocol: kafka or mongodb; None: both.
        start: first moment, inclusive; with no zone it is UTC. None: as long as the lake has data.
        end: last moment, likewise.
        dark: whether it is drawn on a dark background.
        width: pixels of the plot.

    Raises:
        UserError: there is no lake, or nothing was asked.
    """
    scope, cells = _cells_by(latency.traffic_by, lake, by, protocol, start, end)
    if not cells.num_rows:
        raise UserError("nothing was asked in this time")
    return below_each_other([traffic(scope, cells, by, dark=dark)], dark=dark, width=width)


def _cells_by(
    query: Callable[[duckdb.DuckDBPyConnection, Scope, Asked, Row], pa.Table], lake: Path | str, by: Row,
    protocol: str | None, start: datetime | None, end: datetime | None,
) -> tuple[Scope, pa.Table]:  # fmt: skip
    """The span in which this was asked, and what the query gives of it."""
    asked = Asked(protocol)
    with connect(lake) as connection:
        scope = latency.span(connection, _scope(connection, start, end, None), asked)
        return scope, query(connection, scope, asked, by)


def finding_chart(
    lake: Path | str, finding_id: str, *, dark: bool = False, width: int = 900
) -> alt.VConcatChart | alt.LayerChart:
    """The picture that shows a finding: its partition, else its group over time, else its connection as a sequence.

    Of what was asked of a partition and refused it is the connection; of a share group what became of its records; of
    what the capture lost when that was, and of what clients.

    Args:
        lake: the lake's folder or URL.
        finding_id: as in ``gold.findings``.
        dark: whether it is drawn on a dark background.
        width: pixels of the plot.

    Raises:
        UserError: there is no lake, or no such finding, or it has no picture.
    """
    with connect(lake) as connection:
        row = finding(connection, finding_id)
        shown = proof(connection, row, row["evidence"] or ()) if row else None
    if shown is not None:
        return proof_picture(shown, dark=dark, width=width)
    raise UserError(f"no picture shows the finding {finding_id!r}" if row else f"there is no finding {finding_id!r}")


def _scope(
    connection: duckdb.DuckDBPyConnection, start: datetime | None, end: datetime | None, protocol: str | None = "kafka"
) -> Scope:
    there = extent(connection)
    if there is None:
        raise UserError("this lake has no exchanges yet")
    scope = Scope(_utc(start) if start else there.first, _utc(end) if end else there.last, protocol)
    if scope.start > scope.end:
        raise UserError("the time range ends before it begins")
    return scope


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)


def _place(
    connection: duckdb.DuckDBPyConnection, scope: Scope, topic: str, partition: int, group: str | None,
    cluster: str | None,
) -> Place:  # fmt: skip
    there = [
        place
        for place in places(connection, scope)
        if (place.topic, place.partition) == (topic, partition)
        and (group is None or place.group_id == group)
        and (cluster is None or place.cluster == cluster)
    ]
    if not there:
        of = f" of group {group}" if group else ""
        raise UserError(f"nothing was seen of {topic}-{partition}{of} in this time")
    return next((place for place in there if place.group_id), there[0])
