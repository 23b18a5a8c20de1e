"""The landing zone fails in the middle: whoever adds rows waits, the log shows why, then all continues by itself."""

from __future__ import annotations

import io
import logging
import resource
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from decoder.model import Frame
from pipeline.capture.landing import files as landing_files
from pipeline.capture.landing import object_stores, patience
from pipeline.capture.landing.object_stores import open_store
from pipeline.capture.landing.stores import LandingError
from pipeline.capture.landing.writer import LandingWriter, Published
from pipeline.capture.packets.sources import STDIN
from tests.pipeline.capture.landing.test_landing import (
    FRAME,
    MIDNIGHT,
    capture,
    contents,
    eventually,
    everything,
    visible,
)
from tests.pipeline.capture.s3 import S3, SECRET_KEY
from tests.requirements import require_mount

pytestmark = pytest.mark.slow

ROWS = 20


class Fault:
    """Something to break and mend.

    Attributes:
        url: the landing zone.
        message: what the message must contain while it is broken.
    """

    def __init__(
        self, url: str, message: str, break_: Callable[[], object], mend: Callable[[], object], read: Callable[[], Held]
    ) -> None:
        self.url, self.message, self.break_, self.mend, self.read = url, message, break_, mend, read


Held = dict[str, bytes]


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True)


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "volume"
    folder.mkdir()
    require_mount(folder, "1m")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def full(volume: Path) -> Fault:
    def fill() -> None:
        with (volume / "filler").open("wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    continue

    zone = volume / "landing"
    return Fault(str(zone), "make room there", fill, (volume / "filler").unlink, lambda: contents(zone))


@pytest.fixture
def read_only(volume: Path) -> Fault:
    zone = volume / "landing"
    return Fault(
        str(zone),
        "mount it for writing",
        lambda: run("mount", "-o", "remount,ro", volume),
        lambda: run("mount", "-o", "remount,rw", volume),
        lambda: contents(zone),
    )


@pytest.fixture
def unmounted(tmp_path: Path) -> Fault:
    """As after an unmount: the folder is there, but it is empty and another one."""
    zone, elsewhere = tmp_path / "landing", tmp_path / "elsewhere"

    def take_away() -> None:
        zone.rename(elsewhere)
        zone.mkdir()

    def bring_back() -> None:
        assert everything(zone) == []
        zone.rmdir()
        elsewhere.rename(zone)

    return Fault(str(zone), "mount its volume again", take_away, bring_back, lambda: contents(zone))


@pytest.fixture
def replaced(tmp_path: Path) -> Fault:
    zone, elsewhere = tmp_path / "landing", tmp_path / "elsewhere"

    def put_in_the_way() -> None:
        zone.rename(elsewhere)
        zone.touch()

    def mend() -> None:
        zone.unlink()
        elsewhere.rename(zone)

    return Fault(str(zone), "there is a file where a folder must be", put_in_the_way, mend, lambda: contents(zone))


@pytest.fixture
def unreachable(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Fault:
    """Arrow would try again by itself, for seconds, before it says so."""
    once = fs.AwsStandardS3RetryStrategy(max_attempts=1)
    monkeypatch.setattr(object_stores.fs, "S3FileSystem", partial(fs.S3FileSystem, retry_strategy=once))
    return Fault(s3.url("zone"), "check that the endpoint is right", s3.stop, s3.start, lambda: s3.objects("zone"))


@pytest.fixture(params=["full", "read_only", "unmounted", "replaced", "unreachable"])
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fault:
    monkeypatch.setattr(landing_files, "ROWS_PER_FILE", ROWS)
    monkeypatch.setattr(patience, "_FIRST_PAUSE_S", 0.1)
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def frames(count: int) -> list[Frame]:
    """Too large together for the room that a full disk leaves."""
    source = Random(1)
    return [replace(FRAME, seq=i, ts=MIDNIGHT + i, frame=source.randbytes(500)) for i in range(count)]


def publish(writer: LandingWriter, added: list[Frame]) -> Published:
    for row in added:
        writer.add(row)
    return writer.publish()


def rows(held: Held) -> Counter[int]:
    """How often each row is in files that a reader sees, by seq; each file with its manifest."""
    data = {path: content for path, content in held.items() if path.startswith("date=")}
    names = {path.rpartition("/")[2].removesuffix(".parquet") for path in data}
    assert {f"_manifest/{name}.json" for name in names} <= held.keys()
    return Counter(seq for c in data.values() for seq in pq.read_table(io.BytesIO(c))["seq"].to_pylist())


def test_rows_wait_in_bounded_memory_and_land_when_the_store_is_back(fault, caplog):
    all_rows = frames(10 * ROWS)
    added = 0
    with LandingWriter(open_store(fault.url), "a") as writer:

        def feed() -> None:
            nonlocal added
            for row in all_rows[ROWS:]:
                writer.add(row)
                added += 1

        assert len(publish(writer, all_rows[:ROWS]).new) == 1
        fault.break_()
        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        eventually(lambda: "trying again in 0.2 s" in caplog.text)
        # One file's rows wait to be written, the next file's are gathered: then no more is taken.
        eventually(lambda: added == 2 * ROWS - 1)
        assert feeder.is_alive()
        assert fault.message in caplog.text
        assert SECRET_KEY not in caplog.text
        assert {record.levelno for record in caplog.records if record.name.startswith("pipeline")} == {logging.WARNING}
        fault.mend()
        feeder.join(timeout=60)
        assert not feeder.is_alive()
        writer.publish()
    assert "can be used again" in caplog.text
    held = fault.read()
    assert rows(held) == Counter(range(10 * ROWS))
    assert not [path for path in held if path.endswith(".tmp")]


def test_after_the_timeout_it_gives_up_with_nothing_half_published(fault):
    all_rows = frames(3 * ROWS)
    with LandingWriter(open_store(fault.url), "a", store_timeout_s=0.1) as writer:
        publish(writer, all_rows[:ROWS])
        fault.break_()
        with pytest.raises(LandingError, match="--store-timeout") as failed:
            publish(writer, all_rows[ROWS:])
    assert fault.message in str(failed.value)
    fault.mend()
    assert rows(fault.read()) == Counter(range(ROWS))
    with LandingWriter(open_store(fault.url), "a") as writer:
        published = publish(writer, all_rows)
    assert (len(published.new), len(published.present)) == (2, 1)
    assert rows(fault.read()) == Counter(range(3 * ROWS))


class TestCommand:
    """The same by the command line. The system refuses to make files longer than a limit, which a test can lift."""

    def start(self, tmp_path: Path, *options: str) -> subprocess.Popen[str]:
        path, zone = capture(tmp_path / "x.pcap", 200, None), tmp_path / "landing"
        limited = ["sh", "-c", 'ulimit -S -f 1 && exec "$@"', "sh"]
        command = [sys.executable, "-m", "pipeline.cli", "capture", "read", path, "--landing", zone, "--json", *options]
        return subprocess.Popen([*limited, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_it_waits_with_a_message_and_goes_on(self, tmp_path):
        with self.start(tmp_path) as process:
            assert process.stderr is not None
            printed = process.stderr.readline()
            assert "File too large; raise the limit" in printed
            assert "Waiting; trying again in" in printed
            assert visible(tmp_path / "landing") == []
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            _, rest = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "can be used again" in rest
        assert [name.split("/")[0] for name in visible(tmp_path / "landing")] == ["date=2023-11-14", "gaps"]

    def test_it_gives_up_with_exit_code_2(self, tmp_path):
        with self.start(tmp_path, "--store-timeout", "0.1") as process:
            _, printed = process.communicate(timeout=60)
        assert process.returncode == 2
        assert "Gave up after 0.1 s (--store-timeout)" in printed
        assert "Traceback" not in printed
        assert everything(tmp_path / "landing") == []


def test_standard_input_lands_while_it_is_still_open_and_up_to_where_it_is_cut_off(tmp_path):
    data = capture(tmp_path / "x.pcap", lost=None).read_bytes()
    command = ["capture", "read", STDIN, "--landing", tmp_path / "landing", "--publish-every", "0.1"]
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *command], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=False
    ) as process:
        assert process.stdin is not None
        process.stdin.write(data[: len(data) // 2])
        process.stdin.flush()
        eventually(lambda: bool(visible(tmp_path / "landing")))
        early = sum(rows(contents(tmp_path / "landing")).values())
        _, printed = process.communicate(data[len(data) // 2 : -5], timeout=60)
    assert process.returncode == 2
    assert b"truncated" in printed
    assert sum(rows(contents(tmp_path / "landing")).values()) == 40 > early > 0
