"""Real tcpdump and dumpcap on the loopback interface, real sockets, real signals."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.capture.packets.packet import CaptureError
from pipeline.capture.packets.pipe import Stop
from pipeline.capture.runs import live
from pipeline.capture.runs.drops import Drops, dropped_packets, without_reports
from pipeline.capture.runs.live import Tap, capture_live
from tests.pipeline.capture.reading import SMALL
from tests.pipeline.capture.replay import Replay, contents, landed, wirelake
from tests.requirements import require_tcpdump, require_tshark

pytestmark = pytest.mark.slow


def start(landing: Path, *options: str) -> subprocess.Popen[str]:
    """`wirelake capture live` on loopback, once it captures."""
    process = wirelake("live", "--interface", "lo", "--landing", landing, "--json", *options)
    assert process.stderr is not None
    first = process.stderr.readline()
    assert first.startswith("capturing: "), first + process.stderr.read()
    return process


def each_with_one(for_tcpdump: Any, for_dumpcap: Any) -> list[Any]:
    """Each program with one of two values; with the other one it is a proof."""
    values = {"tcpdump": (for_tcpdump, for_dumpcap), "dumpcap": (for_dumpcap, for_tcpdump)}
    return [
        pytest.param(program, value, marks=pytest.mark.proof if number else ())
        for program, both in values.items()
        for number, value in enumerate(both)
    ]


@pytest.fixture(params=["tcpdump", "dumpcap"])
def program(request, tmp_path, monkeypatch) -> str:
    """With dumpcap: a machine that has no tcpdump."""
    require_tcpdump() if request.param == "tcpdump" else require_tshark()
    if request.param == "dumpcap":
        found = {name: live.shutil.which(name) for name in ("dumpcap",)}
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "dumpcap").symlink_to(str(found["dumpcap"]))
        monkeypatch.setenv("PATH", str(folder))
    return str(request.param)


@pytest.mark.parametrize(("program", "end"), each_with_one(signal.SIGINT, signal.SIGTERM), indirect=["program"])
def test_what_went_over_the_wire_lands_and_drops_are_reported(tmp_path, program, end):
    with Replay(SMALL) as replay:
        process = start(tmp_path / "landing", "--port", f"{replay.port}=kafka", "--payload", "full")
        replay.send()
        process.send_signal(end)
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    summary = json.loads(out)
    assert summary["kernel_dropped"] == 0
    assert summary["bytes_lost"] == 0
    assert contents(landed(tmp_path / "landing")) == replay.sent


def test_frames_can_be_seen_while_the_capture_goes_on(tmp_path):
    require_tcpdump()
    landing = tmp_path / "landing"
    with Replay(SMALL) as replay:
        process = start(landing, "--port", str(replay.port), "--publish-every", "0.2", "--duration", "60")
        replay.send(0, len(replay) // 2)
        while not list(landing.glob("date=*/*.parquet")):
            assert process.poll() is None
            time.sleep(0.05)
        replay.send(len(replay) // 2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(landed(landing)) == len(replay)


def test_a_program_that_dies_is_reported_and_what_it_captured_lands(tmp_path):
    require_tcpdump()
    with Replay(SMALL) as replay:
        process = start(tmp_path / "landing", "--port", str(replay.port), "--publish-every", "0.2")
        replay.send()
        while not list((tmp_path / "landing").glob("date=*/*.parquet")):
            assert process.poll() is None
            time.sleep(0.05)
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        subprocess.run(["kill", "-9", child], check=True)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "tcpdump ended by itself" in errors
    assert len(landed(tmp_path / "landing")) == len(replay)


def test_an_interface_that_does_not_exist(tmp_path, program):
    with pytest.raises(CaptureError, match=r"no such interface; --interface can be one of: any, .*lo"):
        capture_live(Tap("nosuch0"), tmp_path / "landing")


@pytest.mark.parametrize(("program", "duration"), each_with_one("0", "0.2"), indirect=["program"])
def test_a_stop_asked_for_early_does_not_hide_that_nothing_was_captured(tmp_path, program, duration):
    process = wirelake("live", "--interface", "nosuch0", "--landing", tmp_path / "landing", "--duration", duration)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "there is no such interface; --interface can be one of: any, " in errors


def test_a_stop_asked_for_early_is_no_error(tmp_path, program):
    with Replay(SMALL) as replay:
        process = wirelake(
            "live", "--interface", "lo", "--port", str(replay.port), "--landing", tmp_path / "landing",
            "--duration", "0",
        )  # fmt: skip
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_filter_that_is_none(tmp_path, program):
    with pytest.raises(CaptureError, match=f"{program} does not start: "):
        capture_live(Tap("lo", (123_456_789,)), tmp_path / "landing")


def test_without_the_right_to_capture(tmp_path, monkeypatch):
    require_tcpdump()
    start_process = subprocess.Popen
    monkeypatch.setattr(
        live.subprocess, "Popen", lambda *args, **options: start_process(*args, **options, user=65534, extra_groups=[])
    )
    with pytest.raises(CaptureError, match=r"this user may not capture; .*sudo setcap cap_net_raw=eip /"):
        capture_live(Tap("lo"), tmp_path / "landing")


def test_no_program_to_capture_with(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CaptureError, match=r"capturing needs tcpdump: "):
        capture_live(Tap("lo"), tmp_path / "landing")


@pytest.mark.parametrize(
    ("log", "dropped"),
    [
        ("8 packets captured\n16 packets received by filter\n0 packets dropped by kernel\n", 0),
        ("1 packet captured\n2 packets received by filter\n1 packet dropped by kernel\n", 1),
        ("8 packets captured\n9 packets dropped by kernel\n3 packets dropped by interface\n", 12),
        ("Packets received/dropped on interface 'lo': 10/7 (pcap:5/dumpcap:0/flushed:2/ps_ifdrop:0) (58.8%)\n", 7),
        ("tcpdump: lo: the interface went away", None),
        (
            "tcpdump: 8 packets captured, 9 packets received by filter, 1 packet dropped by kernel\n"
            "tcpdump: 9 packets captured, 9 packets received by filter, 4 packets dropped by kernel, 2 packets dropped "
            "by interface\ntcpdump: 10 packets captured, 9 packe",
            6,
        ),
    ],
)
def test_drop_counts(log, dropped):
    assert dropped_packets(log) == dropped


def test_drops_are_losses_of_their_interface_each_once():
    drops = Drops("a", "eth0", 7)
    assert drops.since_last(None, 8) == drops.since_last(0, 8) == []
    (first,), none, (second,) = drops.since_last(3, 8), drops.since_last(3, 9), drops.since_last(5, 10)
    assert none == []
    assert (first.connection_id, first.seq, first.ts, first.bytes_lost) == ("interface:eth0:a:7", 3, 8, 0)
    assert (second.connection_id, second.seq, second.ts) == ("interface:eth0:a:7", 5, 10)


def test_reports_on_the_way_are_no_last_words():
    log = "listening on lo\ntcpdump: 8 packets captured, 9 packets received by filter, 0 packets dropped by kernel\nend"
    assert without_reports(log) == "listening on lo\nend"


def test_tcpdump_reports_drops_on_the_way_and_goes_on(tmp_path, monkeypatch):
    require_tcpdump()
    monkeypatch.setattr(live, "LOOK_EVERY_S", 0.3)
    reports, stop = [], Stop()
    monkeypatch.setattr(live, "dropped_packets", lambda log: reports.append(dropped_packets(log)) or len(reports))
    threading.Timer(2, stop.ask).start()
    capture_live(Tap("lo", (9,)), tmp_path / "landing", agent_id="a", publish_every_s=0.2, stop=stop)
    assert reports.count(0) >= 3, "it was asked, and answered"
    table = pa.concat_tables(pq.ParquetFile(file).read() for file in tmp_path.glob("landing/gaps/date=*/*.parquet"))
    assert sorted(table["seq"].to_pylist()) == list(range(1, len(reports) + 1))


def test_the_kernel_s_drops_are_reported(tmp_path):
    """The smallest buffer, and a reader that looks away while sixteen times as much goes over the wire."""
    require_tcpdump()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        process = start(tmp_path / "landing", "--port", str(port), "--buffer-mib", "1")
        process.send_signal(signal.SIGSTOP)
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0] as receiver:
            for _ in range(256):
                client.sendall(bytes(65_536))
                receiver.recv(65_536, socket.MSG_WAITALL)
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    dropped = json.loads(out)["kernel_dropped"]
    assert dropped > 0
    assert f"warning: the kernel dropped {dropped:,} packets" in errors
    files = tmp_path.glob("landing/gaps/date=*/*.parquet")
    gaps = [gap for file in files for gap in pq.ParquetFile(file).read().to_pylist()]
    of_interface = [gap for gap in gaps if gap["connection_id"].startswith("interface:lo:")]
    assert max(gap["seq"] for gap in of_interface) == dropped
