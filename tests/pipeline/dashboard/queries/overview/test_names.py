"""Which names are found, and of how many nothing is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.dashboard.queries.overview.names import Count, Name, counted, ids_like, matching, names
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.sql import connect
from tests.pipeline.dashboard.conftest import at
from tests.pipeline.rows import T0

ALL = Scope(T0, at(300))


@pytest.fixture(scope="module")
def connection(hand_made_lake: Path) -> duckdb.DuckDBPyConnection:
    return connect(hand_made_lake)


def test_names_of_all_kinds_are_known(connection: duckdb.DuckDBPyConnection) -> None:
    known = names(connection, ALL)
    of = {kind: [name.text for name in known if name.kind == kind] for kind in {name.kind for name in known}}
    assert of["group"] == ["classic", "g", "new"]  # those that never committed, too
    assert of["topic"] == ["filled", "orders"]
    assert of["partition"][:3] == ["filled-0", "filled-1", "orders-0"]
    assert of["client"] == ["app", "old", "shop"]
    assert of["host"] == ["10.0.0.1"]
    assert set(of["transaction"]) == {"done", "longer", "hangs"}


def test_a_partition_is_named_with_a_group_that_reads_it(connection: duckdb.DuckDBPyConnection) -> None:
    (found,) = [name for name in names(connection, ALL) if name.text == "orders-0"]
    assert found == Name("partition", "orders-0", "k", "orders", 0, "g")


@pytest.mark.parametrize(("protocol", "clients"), [("kafka", ["app", "old"]), ("mongodb", ["shop"])])
def test_names_are_those_of_the_protocol(
    connection: duckdb.DuckDBPyConnection, protocol: str, clients: list[str]
) -> None:
    known = names(connection, Scope(T0, at(300), protocol))
    assert [name.text for name in known if name.kind == "client"] == clients
    assert any(name.kind == "group" for name in known) == (protocol == "kafka")


def test_nothing_is_known_of_another_time(connection: duckdb.DuckDBPyConnection) -> None:
    assert names(connection, Scope(at(-900), at(-800))) == []


def test_a_lake_without_tables_knows_no_names() -> None:
    with duckdb.connect() as empty:
        assert names(empty, ALL) == []


def test_the_name_itself_comes_before_what_begins_with_it_and_what_has_it_inside() -> None:
    known = [Name("topic", text) for text in ("reorder", "orders-eu", "Order", "payments")]
    assert [name.text for name in matching(known, "order")] == ["Order", "orders-eu", "reorder"]


def test_groups_come_first_and_no_kind_hides_another() -> None:
    known = [*(Name("client", f"app-{n}") for n in range(100)), Name("group", "app")]
    found = matching(known, "app")
    assert found[0] == Name("group", "app")
    assert len(found) == 101


@pytest.mark.parametrize("text", ["%", "_", "'", "\\", "a_b", "[", "\u202e"])
def test_no_character_of_a_name_is_a_pattern(text: str) -> None:
    assert matching([Name("topic", "axb")], text) == []
    assert [name.text for name in matching([Name("topic", f"1{text}2")], text)] == [f"1{text}2"]


def test_connections_are_found_by_the_beginning_of_their_id_and_by_address() -> None:
    with duckdb.connect() as lake:
        lake.execute("CREATE SCHEMA silver")
        lake.execute(
            "CREATE TABLE silver.exchanges AS SELECT * FROM (VALUES "
            "(DATE '2026-03-01', TIMESTAMPTZ '2026-03-01 12:00:01+00', '00aabbccddeeff00', '00aabbccddeeff00-1', "
            "'10.0.0.1', 4711), "
            "(DATE '2026-03-01', TIMESTAMPTZ '2026-03-01 12:00:02+00', '00aabbccddeeff01', '00aabbccddeeff01-1', "
            "'::1', 4712)) AS t(date, ts, connection_id, exchange_id, client_ip, client_port)"
        )

        def found(text: str) -> list[tuple[str, str]]:
            return sorted((name.kind, name.text) for name in ids_like(lake, ALL, text))

        assert found("00aabb") == [("connection", "00aabbccddeeff00"), ("connection", "00aabbccddeeff01")]
        assert found(" 00aabbccddeeff01 ") == [("connection", "00aabbccddeeff01")]
        assert found("10.0.0.1:4711") == [("connection", "00aabbccddeeff00")]
        assert found("[::1]:4712") == [("connection", "00aabbccddeeff01")]
        assert found("00aabbccddeeff00-1") == [("exchange", "00aabbccddeeff00-1")]
        assert found("00aabbccddeeff00-2") == []
        assert found("orders") == []


def _finding(state: str | None, **values: Any) -> dict[str, Any]:
    nothing = {"topic": None, "partition": None, "group_id": None, "details": "{}"}
    return {"rule": "stopped", "subject": "s", "state": state, "cluster": "k", **nothing, **values}


def test_what_has_a_finding_is_not_healthy() -> None:
    known = [
        Name("group", "billing", "k"), Name("group", "audit", "k"), Name("partition", "p-0", "k", "p", 0),
        Name("partition", "p-1", "k", "p", 1), Name("client", "a"), Name("client", "b"),
    ]  # fmt: skip
    found = [
        _finding("ongoing", group_id="billing", topic="p", partition=1),
        _finding("resolved", group_id="audit"),
        _finding("unknown", details='{"client_id": "a"}'),
    ]
    assert counted(known, found) == [Count("group", 2, 1), Count("partition", 2, 1), Count("client", 2, 1)]


def test_a_name_in_two_clusters_is_two_and_what_is_found_in_one_is_not_of_the_other() -> None:
    known = [Name("group", "g", "one"), Name("group", "g", "two")]
    assert counted(known, [_finding("ongoing", group_id="g", cluster="two")]) == [Count("group", 2, 1)]


def test_nothing_is_counted_where_nothing_was_seen() -> None:
    assert counted([], [_finding("ongoing", group_id="g")]) == []
