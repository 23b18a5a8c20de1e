"""A lake of several clusters is looked at as a whole, or one cluster at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.settings import SqlSettings
from pipeline.dashboard.clusters import clusters, of_cluster, show_only
from pipeline.dashboard.queries.overview.health import health
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.sql import connect, connect_readable
from pipeline.tables import BROKERS, CLIENTS, EXCHANGES, FINDINGS, FRAMES, GAPS, MONGO_COMMANDS, STREAM_PROGRESS, TABLES
from tests.pipeline.dashboard.web.apps import text_of
from tests.pipeline.rows import T0, row, write

MONGODB = "[::1]:27017"
_ADDRESSES = {"east": ("10.0.0.1", 9092), "west": ("10.0.0.2", 9092), MONGODB: ("::1", 27017)}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clusters and a MongoDB server, with a row of each in every table."""
    place = tmp_path_factory.mktemp("three")
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for number, (cluster, (ip, port)) in enumerate(_ADDRESSES.items()):
        server = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
        known = {
            "cluster": cluster, "server": server, "server_ip": ip, "server_port": port, "connection_id": f"c{number}",
            "protocol": "mongodb" if cluster == MONGODB else "kafka", "first_ts": T0, "last_ts": T0, "state": "ongoing",
            "summary": f"of {cluster}", "rule": "stopped", "finding_id": cluster,
        }  # fmt: skip
        for name, table in TABLES.items():
            if name != BROKERS.full_name or cluster != MONGODB:
                rows[name].append(row(table, **{k: v for k, v in known.items() if k in table.column_names}))
    for name, table in TABLES.items():
        write(place, table, rows[name])
    return place


@pytest.fixture
def connection(lake: Path) -> Iterator[Any]:
    with connect_readable(lake, SqlSettings()).connection as opened:
        yield opened


def test_each_is_named_once(connection: Any) -> None:
    assert clusters(connection) == [MONGODB, "east", "west"]


@pytest.mark.parametrize("cluster", _ADDRESSES)
def test_every_table_that_knows_servers_shows_those_of_one_cluster(connection: Any, cluster: str) -> None:
    show_only(connection, cluster)
    for name, table in TABLES.items():
        ((count,),) = connection.sql(f"SELECT count(*) FROM {name}").fetchall()
        if name == BROKERS.full_name:
            assert count == (cluster != MONGODB)
        else:
            assert count == (3 if of_cluster(table) == "true" else 1), name
    show_only(connection, None)
    assert connection.sql("SELECT count(*) FROM silver.exchanges").fetchall() == [(3,)]


def test_what_the_capture_lost_is_that_of_its_connections(connection: Any) -> None:
    scope = Scope(T0, T0)
    assert health(connection, scope).gaps == 3
    show_only(connection, "west")
    seen = health(connection, Scope(T0, T0, cluster="west"))
    assert (seen.exchanges, seen.frames, seen.gaps) == (1, 1, 1)


def test_queries_of_the_program_see_all(lake: Path) -> None:
    with connect(lake) as opened:
        assert opened.sql("SELECT count(*) FROM gold.findings").fetchall() == [(3,)]


def test_the_page_has_the_choice_and_the_address_has_it(use: Any, lake: Path) -> None:
    app = use(lake, "findings")
    assert "of east" in text_of(app)
    (box,) = [one for one in app.selectbox if one.label == "Cluster"]
    assert box.value is None
    box.select("west").run()
    assert "of west" in text_of(app)
    assert "of east" not in text_of(app)
    asked = text_of(use(lake, "findings", only="east"))
    assert "of east" in asked
    assert "of west" not in asked


@pytest.mark.parametrize("name", ["gone", "x' OR 1=1 --"])
def test_a_cluster_that_is_not_there_is_not_chosen(use: Any, lake: Path, name: str) -> None:
    text = text_of(use(lake, "findings", only=name)).replace("\\", "")
    assert f"There is no cluster {name} in this lake." in text
    assert "of west" not in text


def test_with_one_cluster_there_is_nothing_to_choose(use: Any, tmp_path: Path) -> None:
    for table in (EXCHANGES, FRAMES, FINDINGS, CLIENTS, GAPS, MONGO_COMMANDS, STREAM_PROGRESS):
        write(tmp_path, table, [row(table)])
    assert [one.label for one in use(tmp_path, "findings").selectbox if one.label == "Cluster"] == []
