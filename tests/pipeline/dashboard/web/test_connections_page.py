"""The page of connections, its search by address, and the sentences about TCP on the page of a sequence."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.settings import StreamSettings
from pipeline.dashboard.web.parts.tcp_text import tcp_in_words
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.lake import write_lake
from tests.captures.connections.record import HERE
from tests.pipeline.dashboard.web.apps import frames, text_of

AT = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
LIFE = {
    "first_ts": AT, "last_ts": AT, "opened": "yes", "ended": "reset by the client", "is_closed": True,
    "round_trip_us": 1200, "silence_us": 0, "silent_until_ts": None, "client_sent_again": 0, "server_sent_again": 0,
    "client_unacknowledged": 0, "server_unacknowledged": 0, "client_stalled_us": 0, "server_stalled_us": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def cut_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("cut") / "lake"
    write_lake(lake, diagnose(read_inputs([str(HERE / "limit.pcap.zst")]), StreamSettings()).tables)
    return lake


@pytest.mark.slow
def test_connections_stand_with_who_ended_them(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "connections", range="all")
    assert {row["state"] for row in frames(app)[0]} == {
        "closed by the client", "reset by the server, request open", "refused",
    }  # fmt: skip
    assert [metric.value for metric in app.metric] == ["73", "72", "0", "0"]
    failed = frames(use(hand_made_lake, "connections", range="all", failed="true"))[0]
    assert {row["state"] for row in failed} == {"reset by the server, request open", "refused"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "number"), [("10.0.0.1", 4), ("10.0.0.9:9092", 4), ("10.0.0.1:41000", 4), ("10.0.0.1:1", 0), ("x", 0)]
)
def test_connections_are_found_by_address(use: Any, hand_made_lake: Path, host: str, number: int) -> None:
    app = use(hand_made_lake, "connections", range="all", host=host)
    assert sum(map(len, frames(app))) == number
    assert ("No connection has that address." in text_of(app)) == (number == 0)


@pytest.mark.slow
def test_terms_of_the_address_narrow_connections_and_say_which_to_drop(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "connections", range="all", where="ended!=refused")
    assert {row["state"] for row in frames(app)[0]} == {"closed by the client", "reset by the server, request open"}
    app = use(hand_made_lake, "connections", range="all", where="ended=refused;client=nobody")
    assert frames(app) == []
    assert [link.proto.label for link in app.get("page_link") if "Without" in link.proto.label] == [
        "Without client = `nobody`: 1 connection"
    ]


@pytest.mark.slow
def test_a_recording_shows_its_connections(use: Any, cut_lake: Path) -> None:
    rows = frames(use(cut_lake, "connections", range="all", failed="true"))[0]
    assert {row["server"] for row in rows} == {"127.0.3.21:9113"}
    assert sum(row["state"] == "reset by the server, request open" for row in rows) >= 20


def test_only_what_happened_is_in_the_sentences() -> None:
    assert tcp_in_words(LIFE) == (
        "TCP: opened at 2026-03-01 12:00:00 UTC (SYN to SYN-ACK 1.2 ms). "
        "Last packet at 2026-03-01 12:00:00 UTC: reset by the client."
    )


def test_what_went_wrong_is_in_the_sentences() -> None:
    wrong = {
        "opened": "unknown", "client_sent_again": 6, "client_unacknowledged": 300, "server_stalled_us": 33_000_000,
        "silence_us": 60_000_000, "silent_until_ts": AT, "ended": "open, request open",
    }  # fmt: skip
    text = tcp_in_words({**LIFE, **wrong})
    timed = tcp_in_words({**LIFE, **wrong, "client_first_sent_again_ts": AT, "client_last_sent_again_ts": AT,
                          "server_first_zero_window_ts": AT})  # fmt: skip
    assert "The client sent 6 segments again at 2026-03-01 12:00:00 UTC; 300 B were never acknowledged." in timed
    assert "The server did not read for 33 s, first at 2026-03-01 12:00:00 UTC, so" in timed
    assert "how it was opened was not captured" in text
    assert "The client sent 6 segments again; 300 B were never acknowledged." in text
    assert "The server did not read for 33 s, so the client could send nothing." in text
    assert "The longest silence was 60 s" in text or "The longest silence was 1 min" in text
