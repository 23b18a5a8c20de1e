"""What the capture lost: of whom, and when, as the picture shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.dashboard.queries.overview.losses import CLIENTS, OTHERS, losses
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.sql import connect
from pipeline.tables import EXCHANGES, GAPS
from tests.pipeline.dashboard.conftest import at
from tests.pipeline.rows import row, write

SCOPE = Scope(at(0), at(300))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen clients of one broker of whom bytes were lost, one of another, and packets of an interface."""
    folder = tmp_path_factory.mktemp("lossy")
    gaps = [
        row(GAPS, agent_id="a", connection_id=f"c{n}", ts=at(10 + n), bytes_lost=1000 - n, seq=0) for n in range(14)
    ]
    gaps += [
        row(GAPS, agent_id="a", connection_id="c0", ts=at(10.2), bytes_lost=5, seq=1),
        row(GAPS, agent_id="a", connection_id="elsewhere", ts=at(20), bytes_lost=7, seq=0),
        row(GAPS, agent_id="a", connection_id="interface:eth0", ts=at(30), bytes_lost=0, seq=12),
    ]
    asked = [
        row(
            EXCHANGES, connection_id=f"c{n}", exchange_id=f"c{n}-1", ts=at(5), server_ip="10.0.0.2", server_port=9092,
            client_ip="10.0.0.9", client_id=None if n == 13 else f"client-{n}",
        )
        for n in range(14)
    ]  # fmt: skip
    other = {"connection_id": "elsewhere", "exchange_id": "e-1", "ts": at(5), "client_id": "far"}
    asked.append(row(EXCHANGES, **other, server_ip="10.0.0.3", server_port=9092))
    six = {"connection_id": "six", "exchange_id": "six-1", "ts": at(5), "client_id": "sixth"}
    asked.append(row(EXCHANGES, **six, server_ip="fd00::2", server_port=9092))
    gaps.append(row(GAPS, agent_id="a", connection_id="six", ts=at(40), bytes_lost=6, seq=0))
    write(folder, GAPS, gaps)
    write(folder, EXCHANGES, asked)
    return folder


def test_each_client_has_its_losses_and_the_least_share_a_row(lake: Path) -> None:
    with connect(lake) as connection:
        shown = losses(connection, SCOPE, "a/10.0.0.2:9092")
    assert shown is not None
    assert len({one["client"] for one in shown.rows}) == CLIENTS + 1
    (first,) = (one for one in shown.rows if one["client"] == "client-0")
    assert (first["began"], first["bytes_lost"], first["gaps"]) == (at(10), 1005, 2)
    assert sum(one["bytes_lost"] for one in shown.rows if one["client"] == OTHERS) == (1000 - 12) + (1000 - 13)


def test_what_is_of_no_connection_is_named_by_what_it_is(lake: Path) -> None:
    with connect(lake) as connection:
        shown = losses(connection, SCOPE, "a/interface:eth0")
        assert losses(connection, SCOPE, "a/10.0.0.4:9092") is None
    assert shown is not None
    assert [(one["client"], one["gaps"]) for one in shown.rows] == [("interface", 1)]


def test_a_broker_is_known_by_its_ipv6_address_as_the_rule_writes_it(lake: Path) -> None:
    with connect(lake) as connection:
        shown = losses(connection, SCOPE, "a/[fd00::2]:9092")
    assert shown is not None
    assert [(one["client"], one["bytes_lost"]) for one in shown.rows] == [("sixth", 6)]
