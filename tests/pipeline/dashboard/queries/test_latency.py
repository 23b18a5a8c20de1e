"""Latency as heat maps, by who asked whom, and beside the day before; asked of hand-made rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.dashboard.queries import latency
from pipeline.dashboard.queries.latency import BANDS, Asked
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.sql import connect
from pipeline.errors import UserError
from pipeline.tables import DUPLICATE_FLOWS, EXCHANGES, MONGO_HANDSHAKES, TABLES
from pipeline.terminal.console import printable
from tests.pipeline.dashboard.conftest import HOSTILE, at
from tests.pipeline.rows import row, write

pytest.importorskip("altair")
from pipeline.dashboard.charts import latency_chart, slowest_chart, traffic_chart

FETCH = Asked("kafka", "Fetch")
HOUR = Scope(at(0), at(3600))
DAY_S = 86_400


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two brokers and two clients today, one of them yesterday at this time; a copy, which counts no second time."""
    folder = tmp_path_factory.mktemp("latency")

    def asked(seconds: float, us: int | None, client: str | None, server: str = "10.0.0.1", **values: Any) -> Any:
        return row(
            EXCHANGES, exchange_id=f"{seconds}{client}{server}{values}", ts=at(seconds), date=at(seconds).date(),
            api_name=values.pop("api_name", "Fetch"), latency_us=us, client_id=client, client_ip="10.9.9.9",
            server_ip=server, server_port=9092, request_size=1024, response_size=1024, **values,
        )  # fmt: skip

    exchanges = [
        asked(1, 900, "app"),
        asked(2, 1_000, "app"),
        asked(3, 50_000, HOSTILE, "::1"),
        asked(4, 0, None),
        asked(5, None, "app"),
        asked(6, 7, "app", api_name="Produce"),
        asked(7, 1_000, "app", connection_id="copy"),
        asked(2 - DAY_S, 400, "app"),
        asked(3500, 1_000, "app"),
    ]
    mongodb = {"protocol": "mongodb", "api_name": "find"}
    exchanges += [
        *(asked(4000 + n, 500, None, connection_id="of checkout", **mongodb) for n in range(2)),
        asked(4000, 500, None, connection_id="of nobody", **mongodb),
    ]
    named = row(MONGO_HANDSHAKES, connection_id="of checkout", application="checkout", date=at(0).date())
    copies = [row(DUPLICATE_FLOWS, connection_id="copy", hour=at(0).replace(minute=0))]
    filled = {EXCHANGES.full_name: exchanges, DUPLICATE_FLOWS.full_name: copies, MONGO_HANDSHAKES.full_name: [named]}
    for name, table in TABLES.items():
        write(folder, table, filled.get(name, []))
    return folder


def test_a_band_has_the_latencies_from_its_power_of_ten_on(lake: Path) -> None:
    with connect(lake) as connection:
        cells = latency.heat(connection, HOUR, FETCH).to_pylist()
        mine = latency.heat(connection, HOUR, Asked("kafka", "Fetch", server="[::1]:9092")).to_pylist()
    assert [(one["ts"], one["band"], one["exchanges"]) for one in cells] == [
        (at(0), 0, 1), (at(0), 3 * BANDS - 1, 1), (at(0), 3 * BANDS, 1), (at(0), 4 * BANDS + 3, 1),
        (at(3480), 3 * BANDS, 1),
    ]  # fmt: skip
    assert [(one["band"], one["exchanges"]) for one in mine] == [(4 * BANDS + 3, 1)]


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("api", {"Fetch", "Produce"}),
        ("broker", {"10.0.0.1:9092", "[::1]:9092"}),
        ("client", {"app", HOSTILE, "10.9.9.9"}),
    ],
)
def test_latency_is_told_by_api_broker_and_client(lake: Path, by: latency.Row, names: set[str]) -> None:
    with connect(lake) as connection:
        cells = latency.heat_by(connection, HOUR, Asked(), by).to_pylist()
        chosen = latency.names(connection, HOUR, Asked(), by)
    assert {one["name"] for one in cells} == set(chosen) == names
    assert sum(one["exchanges"] for one in cells) == 6  # those with an answer, each once


def test_a_client_of_mongodb_is_its_application(lake: Path) -> None:
    with connect(lake) as connection:
        scope = Scope(at(4000), at(4100))
        assert latency.names(connection, scope, Asked(), "client") == ["checkout", "10.9.9.9"]
        mine = latency.heat_by(connection, scope, Asked("mongodb", client="checkout"), "api").to_pylist()
    assert [(one["name"], one["exchanges"]) for one in mine] == [("find", 1), ("find", 1)]  # one a second


def test_traffic_is_that_of_the_largest_and_of_all_others(lake: Path) -> None:
    with connect(lake) as connection:
        all_names = latency.traffic_by(connection, HOUR, Asked(), "client").to_pylist()
        largest = latency.traffic_by(connection, HOUR, Asked(), "client", most=1).to_pylist()
    assert {one["name"] for one in all_names} == {"app", HOSTILE, "10.9.9.9"}
    assert [(one["name"], one["ts"], one["exchanges"], one["bytes"]) for one in largest] == [
        ("app", at(0), 4, 8192), ("app", at(3480), 1, 2048), ("others", at(0), 2, 4096),
    ]  # fmt: skip


def test_traffic_is_stacked_in_kib_a_second_with_the_largest_below(lake: Path) -> None:
    [chart] = traffic_chart(lake, "client", start=at(0), end=at(3600)).to_dict()["vconcat"]
    every = traffic_chart(lake, "client", start=at(0), end=at(3600)).to_dict()["datasets"].values()
    rows = [one for some in every for one in some if "rate" in one]
    first = [one for one in rows if one["ts"] == at(2).timestamp() * 1000]
    assert chart["layer"][0]["encoding"]["color"]["scale"]["domain"][0] == first[0]["name"] == "app"
    assert first[0]["from"] == 0
    assert [one["from"] for one in first[1:]] == [one["to"] for one in first[:-1]]
    assert sum(one["rate"] for one in rows) == pytest.approx(14)  # each bar is a second
    with pytest.raises(UserError, match="nothing was asked"):
        traffic_chart(lake, protocol="mongodb", end=at(3600))


def test_the_slowest_come_first(lake: Path) -> None:
    [chart] = slowest_chart(lake, "client", start=at(0), end=at(3600)).to_dict()["vconcat"]
    assert chart["layer"][0]["encoding"]["y"]["scale"]["domain"] == [printable(HOSTILE), "app", "10.9.9.9"]
    with pytest.raises(UserError, match="nothing was answered"):
        slowest_chart(lake, protocol="mongodb", end=at(3600))


def test_yesterday_has_the_times_of_today(lake: Path) -> None:
    with connect(lake) as connection:
        now = latency.over_time(connection, HOUR, FETCH).to_pylist()
        before = latency.day_before(connection, HOUR, FETCH).to_pylist()
    assert [(one["ts"], one["p50"]) for one in before] == [(at(0), 400)]
    assert [(one["ts"], one["exchanges"], one["p99"]) for one in now] == [(at(0), 5, 50_000), (at(3480), 1, 1_000)]


def test_percentiles_of_today_and_yesterday_lie_over_how_many_took_how_long(lake: Path) -> None:
    whole = latency_chart(lake, "Fetch", start=at(0), end=at(3600)).to_dict()
    layers = whole["vconcat"][0]["layer"]
    kinds = [layer["mark"]["type"] for layer in layers]
    assert kinds == ["rect", "rect", "text", "line", "line", "line", "circle"]  # shades, the silence, yesterday, today
    rows = [one for some in whole["datasets"].values() for one in some]
    assert {one["ms"] for one in rows if one.get("percentile") == "p99"} >= {50.0, 1.0, 0.4}
    assert {one["words"] for one in rows if "words" in one} == {"58 min 14 s of silence"}
    alone = latency_chart(lake, "Fetch", client=HOSTILE, start=at(0)).to_dict()["vconcat"][0]
    assert [layer["mark"]["type"] for layer in alone["layer"]] == ["rect", "line", "line", "circle"]
    with pytest.raises(UserError, match="nothing of Nothing was answered"):
        latency_chart(lake, "Nothing")
