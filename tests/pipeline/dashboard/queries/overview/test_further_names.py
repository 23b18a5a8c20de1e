"""Errors, rules, KIPs, members and offsets that a search finds."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from pipeline.dashboard.queries.overview.further_names import at_offset, errors_seen, members_like, rules_like
from pipeline.dashboard.queries.scope import Scope, extent
from pipeline.dashboard.queries.terms import Term
from pipeline.dashboard.queries.traffic.exchange_search import Search, without_one
from pipeline.dashboard.queries.traffic.exchanges import one
from pipeline.dashboard.queries.traffic.neighbours import neighbours
from pipeline.dashboard.sql import connect
from tests.pipeline.lakes import diagnosed_lake


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(diagnosed_lake(tmp_path_factory.mktemp("stuck") / "lake", "stuck_commit")) as found:
        yield found


@pytest.fixture(scope="module")
def scope(connection: duckdb.DuckDBPyConnection) -> Scope:
    there = extent(connection)
    assert there is not None
    return Scope(there.first, there.last)


def test_an_offset_of_a_partition_leads_to_who_stated_it(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    found = at_offset(connection, scope, "payments-2@24")
    assert "committed by billing-1 billing" in {one.text for one in found}
    assert all(one.exchange_id and one.ts for one in found)
    assert at_offset(connection, scope, "payments-2@999999") == at_offset(connection, scope, "payments-2") == []


def test_members_are_found_by_a_part_of_their_id(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    (found,) = members_like(connection, scope, "BILLING-2-")
    assert (found.text[:10], found.group_id) == ("billing-2-", "billing")
    assert members_like(connection, scope, "bi") == []


def test_rules_are_found_by_name_title_and_kip(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    first = rules_like(connection, scope, "stuck_commit")[0]
    assert first.count == 1
    assert first.incident_id
    kips = {one.text for one in rules_like(connection, scope, "KIP-896")}
    assert "kip896_incompatible_client" in kips
    assert rules_like(connection, scope, "kip-89") == []


def test_errors_are_counted(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    found = errors_seen(connection, scope)
    assert [one.count for one in found] == sorted((one.count or 0 for one in found), reverse=True)
    assert {one.kind for one in found} <= {"error"}


def test_a_dead_end_says_what_to_leave_out(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    ((name, count, is_all),) = without_one(connection, scope, Search(topic="payments", client_id="nobody"))
    assert (name, is_all) == ("client_id", True)
    assert count > 100
    assert without_one(connection, scope, Search(client_id="nobody")) == []
    term = Term("status", "paired", is_not=True)
    ((dropped, left, _),) = without_one(connection, scope, Search(topic="payments", terms=(term,)))
    assert (dropped, left) == (term, count)


def test_an_exchange_knows_those_around_it(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    commits = [found for found in at_offset(connection, scope, "payments-2@24") if found.text.startswith("committed")]
    first, second = (one(connection, found.exchange_id or "", found.ts) for found in commits[:2])
    assert first
    assert second
    near = neighbours(connection, first)
    assert near.subject == "billing on payments-2"
    assert near.subject_after == second["exchange_id"]
    assert neighbours(connection, second).subject_before == first["exchange_id"]
    before = one(connection, near.before or "")
    assert before
    assert neighbours(connection, before).after == first["exchange_id"]
