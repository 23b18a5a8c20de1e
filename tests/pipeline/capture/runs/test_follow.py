"""A ring that is followed is one capture, whatever happens to the process that follows it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pipeline.capture.cli import capture_app
from pipeline.capture.landing.stores import LandingError, LocalStore
from pipeline.capture.packets.packet import CaptureError, Packet
from pipeline.capture.packets.pipe import Stop
from pipeline.capture.runs import ring
from pipeline.capture.runs.follow import follow_ring
from pipeline.capture.stats import CaptureStats
from pipeline.errors import UserError
from tests.pipeline.capture.landing.test_landing import everything
from tests.pipeline.capture.reading import LARGE, SMALL, packets_of
from tests.pipeline.capture.replay import Replay, contents, landed, wirelake
from tests.pipeline.capture.wire import Flow, pcap, pcapng, request, response
from tests.requirements import require_tcpdump, require_tshark

FILES = 6


def cut(packets: list[Packet], files: int = FILES) -> list[list[Packet]]:
    size = -(-len(packets) // files)
    return [packets[at : at + size] for at in range(0, len(packets), size)]


def fill(directory: Path, pieces: list[list[Packet]], write=pcap) -> list[Path]:
    """The files of a ring, an hour old, each written a second after the one before."""
    directory.mkdir(exist_ok=True)
    paths = []
    for number, packets in enumerate(pieces):
        path = directory / f"ring.pcap{number}"
        path.write_bytes(write(packets))
        age = path.stat().st_mtime_ns - (3600 - number) * 10**9
        os.utime(path, ns=(age, age))
        paths.append(path)
    return paths


def follow(directory: Path, landing: Path, **options) -> tuple[CaptureStats, list[str]]:
    problems: list[str] = []
    stats = follow_ring(
        directory, landing, payload_policy="full", until_idle_s=0, on_problem=problems.append, **options
    )
    return stats, problems


@cache
def whole(path: Path, directory: Path) -> list[dict]:
    """What one process finds in the ring without being disturbed."""
    fill(directory / "ring", cut(packets_of(path)))
    follow(directory / "ring", directory / "landing")
    return landed(directory / "landing")


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> list[dict]:
    return sorted_rows(whole(SMALL, tmp_path_factory.mktemp("whole")))


def sorted_rows(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda row: (row["connection_id"], row["direction"], row["seq"]))


def all_rows(landing: Path) -> list[dict]:
    return [row for path in landing.glob("date=*/*.parquet") for row in pq.ParquetFile(path).read().to_pylist()]


def test_the_files_of_a_ring_are_one_capture(tmp_path, expected):
    """Compared with the same packets in one file."""
    fill(tmp_path / "one", [packets_of(SMALL)])
    follow(tmp_path / "one", tmp_path / "landing")
    assert sorted_rows(landed(tmp_path / "landing")) == expected
    assert len(expected) > 100


@pytest.mark.parametrize("write", [pcapng, lambda p: gzip.compress(pcap(p))])
def test_files_are_taken_by_the_time_of_their_first_packets_whatever_their_name_and_format(tmp_path, write, expected):
    paths = fill(tmp_path / "ring", cut(packets_of(SMALL)), write)
    for path, name in zip(paths, "fbaedc", strict=True):
        path.rename(path.with_name(name))
    follow(tmp_path / "ring", tmp_path / "landing")
    assert sorted_rows(landed(tmp_path / "landing")) == expected


def test_following_again_reads_nothing_again(tmp_path, expected):
    pieces = cut(packets_of(SMALL))
    fill(tmp_path / "ring", pieces[:4])
    first, _ = follow(tmp_path / "ring", tmp_path / "landing")
    before = everything(tmp_path / "landing")
    again, _ = follow(tmp_path / "ring", tmp_path / "landing")
    assert (again.packets, again.files) == (0, [])
    assert everything(tmp_path / "landing") == before
    fill(tmp_path / "ring", pieces)
    rest, problems = follow(tmp_path / "ring", tmp_path / "landing")
    assert first.packets + rest.packets == len(packets_of(SMALL))
    assert problems == []
    rows = all_rows(tmp_path / "landing")
    assert sorted_rows(rows) == expected  # each once


def test_a_newest_file_that_is_compressed_is_left_alone_until_it_has_settled(tmp_path, expected, monkeypatch):
    packets = packets_of(SMALL)
    directory, landing = tmp_path / "ring", tmp_path / "landing"
    old, newest = fill(directory, cut(packets, 2))
    content = gzip.compress(newest.read_bytes())
    newest.unlink()
    newest = directory / "ring.pcap1.gz"

    def stopped_when_idle() -> CaptureStats:
        """Two rounds, without --until-idle, which would read the newest file in any case."""
        stop, rounds = Stop(), iter(range(2))
        clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: next(rounds, None) or stop.ask())
        monkeypatch.setattr("pipeline.capture.runs.follow.time", clock)  # other threads sleep, too
        return follow_ring(directory, landing, payload_policy="full", stop=stop)

    newest.write_bytes(content[: len(content) // 2])
    assert stopped_when_idle().packets == len(packets) // 2
    monkeypatch.setattr(ring, "SETTLED_S", 0.0)
    assert 0 < stopped_when_idle().packets < len(packets) // 2
    newest.write_bytes(content)
    stats = follow_ring(directory, landing, payload_policy="full", until_idle_s=0)
    assert 0 < stats.packets < len(packets) // 2
    assert sorted_rows(all_rows(landing)) == expected
    assert old.exists()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


class TestTheNewestFile:
    """It is read as it grows."""

    def test_its_rows_land_before_it_is_finished_and_the_rest_when_there_is_a_newer_one(self, tmp_path, expected):
        directory, landing = tmp_path / "ring", tmp_path / "landing"
        pieces = cut(packets_of(SMALL), 3)
        first, second, third = fill(directory, pieces)
        content = second.read_bytes()
        third.unlink()
        second.write_bytes(content[: len(content) // 2])  # amid a packet
        with thread_follows(directory, landing, publish_every_s=0.01):
            until(lambda: len(all_rows(landing)) > len(expected) // 3)
            with second.open("ab") as file:
                file.write(content[len(content) // 2 :])
            until(lambda: len(all_rows(landing)) > len(expected) // 2)
            third.write_bytes(pcap(pieces[2]))
            until(lambda: len(all_rows(landing)) > len(expected) * 3 // 4)
        assert sorted_rows(all_rows(landing)) == expected  # each once
        assert first.exists()

    def test_who_asks_for_a_stop_has_all_that_was_written_by_then(self, tmp_path, expected):
        directory, landing = tmp_path / "ring", tmp_path / "landing"
        fill(directory, cut(packets_of(SMALL), 1))
        with thread_follows(directory, landing) as runs:
            until(lambda: (landing / "_agent").exists() or bool(list(landing.rglob("*.parquet"))) or not runs())
        assert sorted_rows(all_rows(landing)) == expected

    def test_a_quiet_one_is_noted_and_not_read_again_after_a_kill(self, tmp_path, monkeypatch):
        monkeypatch.setattr("pipeline.capture.runs.follow.SETTLED_S", 0.0)
        directory, landing = tmp_path / "ring", tmp_path / "landing"
        (path,) = fill(directory, cut(packets_of(SMALL), 1))
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        progress = landing / "_agent" / "local.json"
        with thread_follows(directory, landing):
            until(progress.exists)
            noted = progress.read_bytes()  # as of a process that is killed now
        progress.write_bytes(noted)
        path.write_bytes(content)
        stats, problems = follow(directory, landing)
        assert 0 < stats.packets <= len(packets_of(SMALL)) // 2 + 100
        assert problems == []

    def test_one_that_is_truncated_is_reported_once_there_is_a_newer_one(self, tmp_path):
        directory, landing = tmp_path / "ring", tmp_path / "landing"
        pieces = cut(packets_of(SMALL), 2)
        first, second = fill(directory, pieces)
        second.unlink()
        first.write_bytes(first.read_bytes()[:-20])
        problems: list[str] = []
        with thread_follows(directory, landing, on_problem=problems.append, publish_every_s=0.01):
            until(lambda: bool(list(landing.rglob("*.parquet"))))
            assert problems == []
            with first.open("ab") as file:
                file.write(b"\0")
            second.write_bytes(pcap(pieces[1]))
            until(lambda: bool(problems))
            third = second.with_name("ring.pcap2")
            third.write_bytes(pcap([p._replace(ts_us=p.ts_us + 60_000_000) for p in pieces[1]]))
            progress = landing / "_agent" / "local.json"
            until(lambda: progress.exists() and len(json.loads(progress.read_bytes())["read"]) > 1)
        assert ["read up to there" in problem and "is truncated at byte" in problem for problem in problems] == [True]

    def test_one_that_is_not_the_last_in_time_keeps_no_other_from_being_read(self, tmp_path):
        """As after the clock was set back, or where captures were copied there."""
        directory, landing = tmp_path / "ring", tmp_path / "landing"
        pieces = cut(packets_of(SMALL), 2)
        for path, packets in zip(fill(directory, pieces), reversed(pieces), strict=True):
            status = path.stat()
            path.write_bytes(pcap(packets))
            os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
        with thread_follows(directory, landing):
            progress = landing / "_agent" / "local.json"
            until(lambda: progress.exists() and len(json.loads(progress.read_bytes())["read"]) == 2)

    def test_another_content_in_its_place_is_never_taken_for_the_rest_of_the_old(self, tmp_path):
        directory, landing = tmp_path / "ring", tmp_path / "landing"
        (path,) = fill(directory, cut(packets_of(SMALL), 1))
        problems: list[str] = []
        with thread_follows(directory, landing, on_problem=problems.append, publish_every_s=0.01):
            until(lambda: bool(list(landing.rglob("*.parquet"))))
            later = [packet._replace(ts_us=packet.ts_us + 60_000_000) for packet in packets_of(SMALL)]
            path.write_bytes(pcap([*later, *later[:50]]))
            until(lambda: bool(problems))
        assert "disappeared before being read completely" in problems[0]
        assert not any("truncated" in problem for problem in problems)

    def test_damage_amid_one_is_reported_once_and_what_is_behind_it_left(self, tmp_path):
        directory, landing = tmp_path / "ring", tmp_path / "landing"
        (path,) = fill(directory, cut(packets_of(SMALL), 1))
        content = path.read_bytes()
        problems: list[str] = []
        with thread_follows(directory, landing, on_problem=problems.append, publish_every_s=0.01):
            until(lambda: bool(list(landing.rglob("*.parquet"))))
            for _ in range(5):
                with path.open("ab") as file:
                    file.write(b"\xff" * 64)
                time.sleep(0.3)
        assert ["read up to there" in problem for problem in problems] == [True]
        assert path.read_bytes().startswith(content)


@pytest.mark.slow
class TestKilled:
    def test_at_every_write(self, tmp_path, expected, monkeypatch):
        """Each landing file, manifest and progress that is written is the last one once."""
        fill(tmp_path / "ring", cut(packets_of(SMALL), 3))
        steps = {"left": 0}

        original = LocalStore.write

        def dying(self, files):
            for file in files:
                if not steps["left"]:
                    raise KeyboardInterrupt
                steps["left"] -= 1
                original(self, [file])

        monkeypatch.setattr(LocalStore, "write", dying)
        for count in range(1, 100):
            steps["left"] = count
            landing = tmp_path / f"landing{count}"
            try:
                follow(tmp_path / "ring", landing)
                break
            except KeyboardInterrupt:
                steps["left"] = 10**6
                follow(tmp_path / "ring", landing)
            assert sorted_rows(landed(landing)) == expected
        assert count > 8

    def test_a_real_process_again_and_again(self, tmp_path, expected):
        """kill -9 whenever it has published something new; what it lands twice is the same."""
        landing = tmp_path / "landing"
        fill(tmp_path / "ring", cut(packets_of(SMALL), 12))
        kills = 0
        while True:
            process = wirelake(
                "read", "--follow", tmp_path / "ring", "--landing", landing, "--payload", "full", "--until-idle", "0"
            )
            before = len(list(landing.glob("date=*/*.parquet")))
            while process.poll() is None and len(list(landing.glob("date=*/*.parquet"))) == before:
                time.sleep(0.001)
            if kills == 3:
                _, errors = process.communicate(timeout=60)
                assert process.returncode == 0, errors
                break
            process.kill()
            process.communicate()
            kills += 1
        assert sorted_rows(landed(landing)) == expected
        assert all(row in expected for row in all_rows(landing))


class TestLost:
    def stopped_in_the_first_file(self, directory: Path, landing: Path) -> CaptureStats:
        stop = Stop()
        stats = follow_ring(directory, landing, stop=stop, until_idle_s=0, on_progress=lambda _: stop.ask())
        assert 0 < stats.packets < len(packets_of(LARGE)) // 3
        return stats

    @pytest.mark.parametrize("reused", [False, True])
    def test_a_file_that_disappears_unread_is_reported_and_is_a_gap(self, tmp_path, reused):
        """``reused``: tcpdump -W writes a later file under its name."""
        directory, landing = tmp_path / "ring", tmp_path / "landing"
        pieces = cut(packets_of(LARGE), 3)
        paths = fill(directory, pieces)
        first = self.stopped_in_the_first_file(directory, landing)
        if reused:
            later = [p._replace(ts_us=p.ts_us + 60_000_000) for p in pieces[2]]
            paths[1].write_bytes(pcap(later))
        else:
            paths[1].unlink()
        stats, problems = follow(directory, landing)
        assert stats.ring_files_missed == 1
        assert ["1 file of the ring disappeared" in p and "ring.pcap1" in p for p in problems] == [True]
        assert stats.gaps > 0
        assert first.packets + stats.packets >= len(pieces[0]) + len(pieces[2])

    def test_a_damaged_file_is_reported_and_read_up_to_there(self, tmp_path):
        paths = fill(tmp_path / "ring", cut(packets_of(SMALL), 3))
        content = paths[0].read_bytes()
        status = paths[0].stat()
        paths[0].write_bytes(content[:-20])
        os.utime(paths[0], ns=(status.st_mtime_ns, status.st_mtime_ns))
        stats, problems = follow(tmp_path / "ring", tmp_path / "landing")
        assert stats.packets == len(packets_of(SMALL)) - 1
        assert ["read up to there" in problem and "is truncated at byte" in problem for problem in problems] == [True]

    def test_what_is_no_capture_is_left_out(self, tmp_path):
        fill(tmp_path / "ring", [packets_of(SMALL)])
        (tmp_path / "ring" / "notes").write_text("these captures are from the edge\n")
        (tmp_path / "ring" / "empty").touch()
        stats, problems = follow(tmp_path / "ring", tmp_path / "landing")
        assert stats.packets == len(packets_of(SMALL))
        assert ["notes: is not a capture" in problem for problem in problems] == [True]


class TestProgress:
    def test_another_directory_under_the_same_agent_id(self, tmp_path):
        for name in ("one", "two"):
            fill(tmp_path / name, [packets_of(SMALL)])
        follow(tmp_path / "one", tmp_path / "landing")
        with pytest.raises(LandingError, match=r"follows .*/one, not .*/two; give this one another --agent-id"):
            follow(tmp_path / "two", tmp_path / "landing")

    @pytest.mark.parametrize("content", ["", "{", '{"directory": 5}', '{"directory": "x", "version": 2}'])
    def test_damaged(self, tmp_path, content):
        fill(tmp_path / "ring", [packets_of(SMALL)])
        follow(tmp_path / "ring", tmp_path / "landing")
        (tmp_path / "landing" / "_agent" / "local.json").write_text(content)
        with pytest.raises(
            LandingError, match=r"_agent/local.json in the landing zone is .*; remove _agent/local.json"
        ):
            follow(tmp_path / "ring", tmp_path / "landing")

    def test_a_state_that_makes_no_sense(self, tmp_path):
        flow = Flow().open().send(0, request(1)).send(1, response(1))
        fill(tmp_path / "ring", [flow.packets])
        follow(tmp_path / "ring", tmp_path / "landing")
        path = tmp_path / "landing" / "_agent" / "local.json"
        progress = json.loads(path.read_text())
        del progress["agent"]["connections"][0]["session"]["pairer"]["exchanges"]
        path.write_text(json.dumps(progress))
        with pytest.raises(LandingError, match=r"is damaged; remove _agent/local.json"):
            follow(tmp_path / "ring", tmp_path / "landing")

    def test_no_directory(self, tmp_path):
        with pytest.raises(CaptureError, match="cannot be followed"):
            follow(tmp_path / "missing", tmp_path / "landing")


@contextmanager
def process_follows(directory: Path, landing: Path) -> Iterator[Callable[[], bool]]:
    """`wirelake capture read --follow`, which ends in good order; gives whether it still runs."""
    process = wirelake("read", "--follow", directory, "--landing", landing, "--payload", "full", "--json")
    yield lambda: process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


@contextmanager
def thread_follows(directory: Path, landing: Path, **options) -> Iterator[Callable[[], bool]]:
    """The same in this process, where what it waits for can be set."""
    stop = Stop()
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow_ring, directory, landing, payload_policy="full", stop=stop, **options)
        try:
            yield lambda: not following.done()
        finally:
            stop.ask()
        following.result(60)


Follows = Callable[[Path, Path], AbstractContextManager[Callable[[], bool]]]


@pytest.mark.slow
class TestRealRings:
    def record(self, command: list[str], directory: Path, landing: Path, ready: str, follows: Follows) -> Replay:
        """A capture that rotates while we follow; both end in good order."""
        directory.mkdir()
        with Replay(SMALL) as replay:
            capture = subprocess.Popen([*command, f"tcp port {replay.port}"], stderr=subprocess.PIPE, text=True)
            assert capture.stderr is not None
            while ready not in (line := capture.stderr.readline()):
                assert line, "the capture has ended"
            with follows(directory, landing) as runs:
                for begin in range(0, len(replay), 40):
                    replay.send(begin, begin + 40)
                    files = len(list(directory.iterdir()))
                while len(landed(landing)) < len(replay) // 3:
                    assert runs()
                    time.sleep(0.1)
                while not replay.is_in(directory.iterdir()):  # a capture that ends drops what it has not yet read
                    assert capture.poll() is None
                    time.sleep(0.1)
                capture.terminate()
                capture.communicate()
                assert files > 0
        return replay

    def test_dumpcap(self, tmp_path):
        require_tshark()
        directory, landing = tmp_path / "ring", tmp_path / "landing"
        command = ["dumpcap", "-q", "-i", "lo", "-b", "packets:100", "-w", str(directory / "x.pcapng"), "-f"]
        replay = self.record(command, directory, landing, "File: ", process_follows)
        _, problems = follow(directory, landing)
        assert problems == []
        assert len(list(directory.iterdir())) > 2
        assert contents(all_rows(landing)) == replay.sent

    def test_tcpdump(self, tmp_path):
        """Its files rotate by the second at least."""
        require_tcpdump()
        directory, landing = tmp_path / "ring", tmp_path / "landing"
        target = str(directory / "x-%s.pcap")
        command = ["tcpdump", "-i", "lo", "-U", "-Z", "root", "-G", "1", "-w", target]
        replay = self.record(command, directory, landing, "listening on", thread_follows)
        _, problems = follow(directory, landing)
        assert problems == []
        assert contents(all_rows(landing)) == replay.sent


def test_the_options_go_together(tmp_path):
    for options, reason in (
        (["x.pcap", "--follow", "y"], "one of both"),
        ([], "one of both"),
        (["x.pcap", "--until-idle", "5"], "needs --follow"),
    ):
        result = CliRunner().invoke(capture_app, ["read", *options, "--landing", str(tmp_path)])
        assert isinstance(result.exception, UserError)
        assert reason in str(result.exception)
