"""Standard input that is a real pipe: frames land while it is open, and the time continues while nothing comes."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest
import zstandard

from pipeline.capture.landing.stores import LocalStore
from pipeline.capture.packets.packet import Packet
from pipeline.capture.packets.pipe import Pipe
from pipeline.capture.packets.sources import read_stream
from pipeline.capture.runs import run as capture_run
from pipeline.capture.runs.run import PIPE_DELAY_S, CaptureRun
from pipeline.capture.sessions.pending_requests import HOLD_US
from tests.pipeline.capture.landing.test_landing import visible
from tests.pipeline.capture.reading import SMALL, original, packets_of
from tests.pipeline.capture.replay import landed, wirelake
from tests.pipeline.capture.wire import Flow, pcap, pcapng, request, response

pytestmark = pytest.mark.slow


def reading(landing, *options: object) -> subprocess.Popen[str]:
    return wirelake("read", "-", "--landing", landing, "--json", *options, stdin=subprocess.PIPE)


def write(process: subprocess.Popen[str], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.buffer.write(data)
    process.stdin.buffer.flush()


def wait_for_files(landing, process: subprocess.Popen[str]) -> None:
    while not list(landing.glob("date=*/*.parquet")):
        assert process.poll() is None
        time.sleep(0.05)


def test_frames_land_while_the_pipe_is_open(tmp_path):
    content, landing = SMALL.read_bytes(), tmp_path / "landing"
    process = reading(landing, "--publish-every", "0.2")
    write(process, content[: len(content) // 2])
    wait_for_files(landing, process)
    before = len(landed(landing))
    write(process, content[len(content) // 2 :])
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert json.loads(out)["packets"] == len(packets_of(SMALL))
    assert 0 < before < len(original(SMALL)) == len(landed(landing))


@pytest.mark.parametrize(("seconds_ago", "is_cut"), [(5, True), (3600, False)])
def test_what_is_captured_now_is_read_in_a_hurry_and_what_was_captured_before_is_not(
    tmp_path, monkeypatch, seconds_ago, is_cut
):
    monkeypatch.setenv("WIRELAKE_WORK__LIVE_ANSWERED_UNITS_PER_SECOND", "40")
    flow = Flow(ts=int((time.time() - seconds_ago) * 1e6)).open()
    for number in range(300):
        flow.send(0, request(number)).send(1, response(number))
    process = reading(tmp_path)
    write(process, pcap(flow.close().packets))
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert ("work_refused" in json.loads(out)["notices"]) is is_cut
    assert (len(landed(tmp_path)) < 600) is is_cut


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_an_open_pipe_in_good_order(tmp_path, number):
    content, landing = SMALL.read_bytes(), tmp_path / "landing"
    process = reading(landing, "--publish-every", "0.2")
    write(process, content[:-7])
    wait_for_files(landing, process)
    process.send_signal(number)
    assert process.wait(60) == 0
    assert len(landed(landing)) >= len(original(SMALL)) - 1
    process.communicate()


def test_what_precedes_the_place_where_a_pipe_was_cut_off_lands_and_the_cut_is_reported(tmp_path):
    process, landing = wirelake("read", "-", "--landing", tmp_path, stdin=subprocess.PIPE), tmp_path
    write(process, SMALL.read_bytes()[:-7])
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "truncated at byte" in errors
    assert "what precedes it was read" in errors
    assert len(landed(landing)) >= len(original(SMALL)) - 1


@pytest.mark.parametrize("write_file", [pcap, pcapng])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
def test_a_packet_is_there_as_soon_as_its_bytes_are(write_file, compress):
    """Nothing waits for a buffer to fill."""
    flow = Flow().open().send(0, request(1)).send(1, response(1))
    head, tail = flow.packets[:3], flow.packets[3:]
    whole, cut = write_file(flow.packets), len(write_file(head))
    read_end, write_end = os.pipe()
    waited: list[int] = []
    packets: list[Packet] = []

    def on_wait() -> bool:
        """Everything written has been taken; write the rest, then close."""
        waited.append(len(packets))
        if len(waited) == 1:
            os.write(write_end, compress(whole[cut:]))
        elif len(waited) == 2:
            os.close(write_end)
        return True

    os.write(write_end, compress(whole[:cut]))
    for packet in read_stream(Pipe(read_end, on_wait), "pipe"):
        packets.append(packet)  # noqa: PERF402 - on_wait looks at them
    os.close(read_end)
    assert packets == head + tail
    assert waited[:2] == [len(head), len(packets)]


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        clock = SimpleNamespace(monotonic=lambda: self.now, process_time_ns=time.process_time_ns)
        monkeypatch.setattr(capture_run, "time", clock)


class TestTimeWithoutPackets:
    def test_a_request_without_response_can_be_seen_although_no_packet_comes(self, tmp_path, monkeypatch):
        clock = Clock(monkeypatch)
        with CaptureRun(LocalStore(tmp_path), agent_id="a", payload_policy="full") as run:
            for packet in Flow().open().send(0, request(1)).packets:
                run.take(packet)
            run.wait()
            clock.now += HOLD_US / 1e6 + PIPE_DELAY_S - 1
            run.wait()
            run.publish()
            assert visible(tmp_path) == []
            clock.now += 2
            run.wait()
            run.publish()
            assert [row["correlation_id"] for row in landed(tmp_path)] == [1]

    def test_a_hole_is_given_up_although_no_packet_comes(self, tmp_path, monkeypatch):
        clock = Clock(monkeypatch)
        flow = Flow().open().send(0, request(1)).send(1, response(1)).send(0, request(2)).send(1, response(2))
        del flow.packets[-2]
        with CaptureRun(LocalStore(tmp_path), agent_id="a", payload_policy="full") as run:
            for packet in flow.packets:
                run.take(packet)
            run.wait()
            clock.now += PIPE_DELAY_S + 10
            run.wait()
            run.publish()
            assert [(r["direction"], r["correlation_id"]) for r in landed(tmp_path)] == [
                ("request", 1), ("response", 1), ("response", 2)
            ]  # fmt: skip
