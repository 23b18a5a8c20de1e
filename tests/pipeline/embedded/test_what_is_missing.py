"""What could not be read is told, with the exit code and beside the answer: silence on the rest is no good news."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.capture.packets.packet import DamagedCaptureError
from pipeline.capture.runs.reading import read_capture
from pipeline.capture.runs.summary import nothing_found, warnings
from pipeline.capture.stats import CaptureStats
from pipeline.config.settings import Settings
from pipeline.embedded.feed import open_feed
from tests.paths import CAPTURES, ROOT
from tests.pipeline.capture.wire import Flow, large_fetched, pcap, request, response
from tests.pipeline.embedded.test_diagnose import HEALTHY, STUCK, refusal, run

_NOT_ALL = "not all of it could be read."


def test_a_cut_off_capture_is_told_where_somebody_lets_it_be_one(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(HEALTHY.read_bytes()[:30_000])
    done = run(path, "--allow-truncated")
    assert done.exit_code == 0
    assert _NOT_ALL in done.stdout.splitlines()[0]
    assert f"warning: {path} is truncated at byte" in done.stderr
    assert "no packets missing" not in done.stdout


def test_a_damaged_landing_file_is_told_by_the_exit_code_too(tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    for name, capture in (("one", HEALTHY), ("two", CAPTURES / "old_format.pcap")):
        read_capture([capture], landing, agent_id=name)
    (file,) = landing.glob("date=*/one-*.parquet")
    file.write_bytes(file.read_bytes()[:-100])
    done = run(landing)
    assert _NOT_ALL in done.stdout.splitlines()[0]
    assert done.exit_code == 2


def test_a_connection_that_a_client_closed_lost_nothing() -> None:
    done = run(CAPTURES / "version_negotiation.pcap")
    first = done.stdout.splitlines()[0]
    assert first.endswith("no packets missing; a client closed 1 connection while an answer was coming.")
    assert "cut off" not in done.stdout + done.stderr


def test_messages_whose_end_was_not_captured_are_no_loss_of_nothing(tmp_path: Path) -> None:
    flow = Flow().open().send(0, request(1)).send(1, response(1))
    flow.send(0, request(2, key=1, version=11, body=bytes(40))).send(1, large_fetched(2, 200)[:20_000])
    done = run(flow.write(tmp_path / "ends.pcap"))
    assert "1 message cut off." in done.stdout.splitlines()[0]
    assert "warning: cut off: 1 message whose end was not captured" in done.stderr


def test_options_of_captures_do_not_go_with_a_landing_zone(tmp_path: Path) -> None:
    read_capture([HEALTHY], tmp_path / "landing")
    assert "are for captures" in refusal(tmp_path / "landing", "--tls-keylog", "keys.log")


@pytest.mark.parametrize(
    ("stats", "reason"),
    [
        (CaptureStats(), "holds no packet"),
        (CaptureStats(packets=1), "cut before the connections began"),
        (None, "cut before the connections began"),
    ],
)
def test_why_nothing_was_found(stats: CaptureStats | None, reason: str) -> None:
    assert reason in nothing_found(stats)


def test_who_encrypts_is_told_so_and_not_asked() -> None:
    stats = CaptureStats(packets=9)
    stats.not_recognised["not_recognised"] += 1
    assert "other protocols" in nothing_found(stats)
    stats.not_recognised["tls"] += 1
    assert "--tls-keylog" in nothing_found(stats)
    assert "?" not in nothing_found(stats)


def test_counts_of_an_agent_survive_its_json() -> None:
    stats = CaptureStats(packets=7, truncated=1, bytes_lost=8, gaps=2, kernel_dropped=3, clock_set_back_us=4_000_000)
    stats.not_recognised["tls"] += 2
    stats.notices["clock_set_back"] += 1
    stats.requests[18, 3] += 1
    stats.count_cut(DamagedCaptureError("a.pcap", "truncated", 0, 24))
    taken = CaptureStats.of_dict(stats.as_dict())
    assert warnings(taken) == warnings(stats)
    assert len(warnings(taken)) == 6


def test_damage_before_the_first_packet_offers_no_packets() -> None:
    assert str(DamagedCaptureError("a.pcap", "truncated", 0, 24)).endswith("no complete packet precedes it")
    assert "1 complete packet precedes it" in str(DamagedCaptureError("a.pcap", "truncated", 1, 24))


@pytest.mark.slow
def test_who_follows_hears_what_was_not_read() -> None:
    """The agent counts it; it ends with the pipe."""
    other = Flow().open().send(0, b"GET / HTTP/1.1\r\n\r\n").send(1, b"HTTP/1.1 200 OK\r\n\r\n")
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "diagnose", "--follow", "-"],
        input=pcap(other.packets), capture_output=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"warning: not read: 1 connection, other protocols" in done.stderr
    assert b"Is it the right port?" in done.stderr
    with open_feed(str(STUCK), [], Settings()) as feed:
        while not feed.has_ended or feed.take() is not None:
            pass
        assert feed.outcome() == (True, "")
        assert feed.stats is not None
        assert feed.stats.packets == 5463


def test_what_the_tables_of_a_large_capture_take_is_told_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small = CAPTURES / "version_negotiation.pcap"
    assert "in memory" not in run(small, "--lake", tmp_path / "lake").stderr
    monkeypatch.setattr("pipeline.commands.diagnose.HEAVY_FRAMES", 3)
    assert "warning: --lake and --open hold all " in run(small, "--lake", tmp_path / "lake").stderr
