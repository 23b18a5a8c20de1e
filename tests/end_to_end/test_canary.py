"""Planted secrets are neither in the lake nor in logs, quality results or printed output."""

from __future__ import annotations

import json
import os
import random
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.setup.java import SHORT_LIVED_JVM
from tests.canaries import canary, compressed_traces, harmed, seen_in, seen_in_files, traces, write_capture
from tests.decoder.mongodb.redaction.planted import TRACES as MONGODB
from tests.end_to_end.conftest import rows, wirelake
from tests.pipeline.capture.sessions.test_mongodb import plant
from tests.pipeline.capture.wire import pcap
from tests.requirements import require_java

pytestmark = [pytest.mark.spark, pytest.mark.proof]

CREDENTIAL, PAYLOAD, OPEN_PAYLOAD, KEY = map(canary, ("credential", "payload", "open payload", "key"))
HIDDEN = [*traces(CREDENTIAL, PAYLOAD, KEY), *compressed_traces(PAYLOAD), *MONGODB]


def _all_in(temporary: Path, events: Path) -> dict[str, str]:
    """An environment in which temporary files, Spark's own, and its event log go to folders of ours."""
    spark = {
        "spark.local.dir": str(temporary),
        "spark.driver.extraJavaOptions": f"{SHORT_LIVED_JVM} -Djava.io.tmpdir={temporary}",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{events}",
    }
    return {"TMPDIR": str(temporary), "WIRELAKE_SPARK": json.dumps(spark)}


@dataclass(frozen=True)
class Planted:
    """A lake made of captures with secrets, all that the commands printed on the way, and what they were called."""

    folder: Path
    lake: Path
    output: str
    processes: set[bytes]


@contextmanager
def _watched(temporary: Path, kept: Path) -> Iterator[set[bytes]]:
    """Keep each temporary file that is removed before the end, and note the command line of each process."""
    processes: set[bytes] = set()
    end = threading.Event()

    def look() -> None:
        while not end.wait(0.05):
            for folder, _, names in os.walk(temporary):
                for path in (Path(folder, name) for name in names):
                    with suppress(OSError):  # it went away, or is kept already
                        (kept / f"{path.stat().st_ino}-{path.name}").hardlink_to(path)
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    processes.add(process.read_bytes())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield processes
    finally:
        end.set()
        watcher.join()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """The same captures under each policy that hides payload, one harmed, and one whose payload may land."""
    require_java()
    captures, folder = tmp_path_factory.mktemp("captures"), tmp_path_factory.mktemp("planted")
    landing, lake = folder / "landing", folder / "lake"
    temporary, kept, events = (folder / name for name in ("temporary", "kept", "events"))
    for made in (temporary, kept, events):
        made.mkdir(mode=0o700)
    key = captures / "payload.key"
    key.write_bytes(KEY)
    hidden = write_capture(captures / "hidden.pcap", CREDENTIAL, PAYLOAD)
    (captures / "harmed.pcap").write_bytes(pcap(harmed(random.Random(0), CREDENTIAL, PAYLOAD)))
    reads = [(hidden, "lengths"), (hidden, "hash"), (hidden, "none"), (captures / "harmed.pcap", "lengths")]
    mongodb = plant(captures / "mongodb.pcap")
    reads += [(mongodb, "lengths"), (mongodb, "hash"), (mongodb, "none")]
    reads.append((write_capture(captures / "open.pcap", CREDENTIAL, OPEN_PAYLOAD), "full"))
    commands: list[tuple[str | Path, ...]] = [
        (
            "capture", "read", path, "--landing", landing, "--agent-id", f"{path.stem}-{policy}",
            "--payload", policy, "--payload-key-file", key,
        )
        for path, policy in reads
    ]  # fmt: skip
    commands += [
        ("stream", "--landing", landing, "--lake", lake, "--once"),
        ("check", "--lake", lake),
        ("findings", "--lake", lake),
        ("findings", "--lake", lake, "--json"),
    ]
    output = ""
    with _watched(temporary, kept) as processes:
        for command in commands:
            done = wirelake(*command, cwd=folder, **_all_in(temporary, events))
            output += done.stdout + done.stderr
            assert done.returncode in ((0, 1) if command[0] in ("check", "findings") else (0,)), output
    return Planted(folder, lake, output, processes)


def test_every_policy_is_in_the_lake(planted: Planted) -> None:
    counts = rows(planted.lake, "SELECT payload_policy, count(*) AS n FROM bronze.frames GROUP BY ALL")
    assert {row["payload_policy"]: row["n"] > 100 for row in counts} == dict.fromkeys(
        ("lengths", "full", "hash", "none"), True
    )
    protocols = rows(planted.lake, "SELECT protocol, count(*) AS n FROM bronze.frames GROUP BY ALL")
    assert {row["protocol"]: row["n"] > 100 for row in protocols} == {"kafka": True, "mongodb": True}
    statuses = rows(planted.lake, "SELECT DISTINCT decode_status FROM bronze.frames")
    assert {"ok", "redacted", "orphan_response", "truncated"} <= {row["decode_status"] for row in statuses}


def test_the_search_finds_what_may_be_there(planted: Planted) -> None:
    found = seen_in_files(planted.lake / "bronze" / "frames", traces(OPEN_PAYLOAD))
    assert any("(read)" in place for place in found)


def test_no_file_holds_a_secret(planted: Planted) -> None:
    """Landing files, manifests, tables with their logs, checkpoints, and whatever else a run leaves behind.

    Spark's event log and temporary files among them, also those that it removed again.
    """
    assert list((planted.folder / "events").iterdir()) != []
    assert any("shuffle" in path.name for path in (planted.folder / "kept").iterdir())
    assert seen_in_files(planted.folder, HIDDEN) == []


def test_no_command_line_holds_one(planted: Planted) -> None:
    assert any(b"org.apache.spark.deploy.SparkSubmit" in line for line in planted.processes)
    assert seen_in(b"\n".join(planted.processes), HIDDEN) == []


def test_nobody_else_can_read_what_was_written(planted: Planted) -> None:
    """Landing zone, tables with their logs, checkpoints, temporary files. (Event logs Spark opens to the group.)"""
    open_to_others = [
        f"{path.relative_to(planted.folder)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for name in ("landing", "lake", "temporary", "kept")
        for path in [planted.folder / name, *(planted.folder / name).rglob("*")]
        if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077 and path.stat().st_uid == os.getuid()
    ]
    assert open_to_others == []


def test_nothing_that_was_printed_holds_one(planted: Planted) -> None:
    assert "new frames" in planted.output
    assert " checks, " in planted.output
    assert seen_in(planted.output.encode(), HIDDEN) == []
