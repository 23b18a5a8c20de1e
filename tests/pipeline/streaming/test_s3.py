"""A lake in a real S3-compatible store, by jobs that are processes of their own: of two one begins, nothing is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.runs.reading import read_capture
from pipeline.dashboard.sql import query
from pipeline.dashboard.views import views
from pipeline.lake.delta_reader import read_table
from pipeline.tables import FRAMES, Table
from tests.paths import CAPTURES, ROOT
from tests.pipeline.capture.s3 import S3
from tests.pipeline.lakes import DATA, diagnosed_lake
from tests.pipeline.streaming.on_s3 import KEYS, Shell, environment
from tests.requirements import require_java, require_maven

pytestmark = [pytest.mark.proof, pytest.mark.spark]

ROUNDS = 200
SAMPLE, LATER = "stuck_commit", "version_negotiation"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    require_java()
    require_maven()
    server = S3()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def shells(s3: S3) -> Iterator[tuple[Shell, Shell]]:
    both = Shell(), Shell()
    yield both
    for one in both:
        one.stop()


def counts(lake: str) -> dict[str, int]:
    found = {table.full_name: read_table(lake, table) for table in DATA}
    return {name: 0 if rows is None else rows.num_rows for name, rows in found.items()}


def test_of_two_processes_one_makes_each_object(s3: S3, shells: tuple[Shell, Shell]) -> None:
    numbers = range(ROUNDS)
    for one, some in zip(shells, (numbers, reversed(numbers)), strict=True):
        one.begin("race", s3.url("race"), *some)
    for one in shells:
        one.says("ready")
    for one in shells:
        one.begin("go")
    made = []
    for one in shells:
        code, printed = one.ends()
        assert code == 0, printed
        made.append(set(json.loads(printed.splitlines()[-1])))
    assert not made[0] & made[1]
    assert made[0] | made[1] == set(numbers)
    assert all(made), "both were at work"


def test_jobs_take_turns_and_the_lake_holds_what_a_local_one_holds(
    s3: S3, shells: tuple[Shell, Shell], tmp_path: Path
) -> None:
    landing, lake = s3.url("landing"), s3.url("lake")
    root = f"s3a://{s3.bucket}/lake"
    read_capture([CAPTURES / f"{SAMPLE}.pcap"], landing)
    stream = "stream", "--landing", landing, "--lake", lake
    victim, (first, second) = Shell(), shells

    # Two streams: the second is refused. Killed in the midst of its work, the first is taken over after its lease.
    victim.begin(*stream, "--once")
    victim.says("frames: batch 0")
    code, refused = second.run(*stream, "--once")
    assert code == 2, refused
    assert f"error: another job works on {root} (process {victim.process.pid} on " in refused
    victim.stop()
    code, printed = first.run(*stream, "--once")
    assert code == 0, printed
    assert f"process {victim.process.pid} on " in printed
    assert "waiting 60 s whether it renews it" in printed
    assert counts(lake) == counts(str(diagnosed_lake(tmp_path / "before", SAMPLE)))

    # A stream and maintenance: it is refused. A rolling restart: the next begins at once.
    read_capture([CAPTURES / f"{LATER}.pcap"], landing)
    first.begin(*stream)
    first.says("frames: batch")
    code, refused = second.run("maintain", "--lake", lake)
    assert code == 2, refused
    assert f"error: another job works on {root} (process {first.process.pid} on " in refused
    first.process.send_signal(signal.SIGTERM)
    code, printed = first.ends()
    assert code == 0, printed
    code, printed = second.run(*stream, "--once")
    assert code == 0, printed
    assert "waiting" not in printed
    code, printed = second.run("maintain", "--lake", lake)
    assert code == 0, printed
    assert counts(lake) == counts(str(diagnosed_lake(tmp_path / "after", SAMPLE, LATER)))


def test_the_whole_job_works_there(s3: S3, shells: tuple[Shell, Shell]) -> None:
    shell, _ = shells
    landing, lake = s3.url("whole/landing"), s3.url("whole/lake")
    spelled_otherwise = lake.replace("s3://", "s3a://")
    read_capture([CAPTURES / f"{SAMPLE}.pcap"], landing)

    def does(*words: str) -> None:
        code, printed = shell.run(*words, "--lake", spelled_otherwise)
        assert code == 0, printed

    does("stream", "--once", "--landing", landing.replace("s3://", "s3a://"))
    before = counts(lake)
    (day,) = set(of_table(lake, FRAMES, "date"))
    does("backfill", "--from", f"{day}", "--to", f"{day}")
    assert counts(lake) == before
    erased = min(filter(None, of_table(lake, FRAMES, "client_id")))
    does("maintain", "--erase", f"client_id={erased}")
    assert erased not in of_table(lake, FRAMES, "client_id")
    assert of_table(lake, FRAMES, "client_id")
    does("check")

    frames = len(of_table(lake, FRAMES, "client_id"))
    for place in (lake, spelled_otherwise):
        code, printed = asked("sql", "--lake", place, "--csv", "SELECT count(*) AS frames FROM bronze.frames")
        assert (code, printed.split()) == (0, ["frames", str(frames)])
        code, printed = asked("findings", "--lake", place)
        assert code in (0, 1), printed
    for view in views():
        query(lake, f"SELECT count(*) FROM {view.name}")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("bucket", "make the bucket, or correct its name or the endpoint"),
        ("key", "check the credentials"),
        ("scheme", "the server does not speak https: begin the endpoint with http://"),
    ],
)
def test_what_the_store_refuses_is_a_sentence(
    s3: S3, shells: tuple[Shell, Shell], landing: Path, wrong: str, says: str
) -> None:
    place = s3.url("refused")
    if wrong != "key":  # a JVM keeps the client of a bucket that it has met
        place = place.replace(s3.bucket, f"no-{wrong}")
    if wrong == "scheme":
        place = place.replace("=http:", "=https:")
    with s3.knowing_no_key() if wrong == "key" else nullcontext():
        code, printed = shells[0].run("stream", "--once", "--landing", landing, "--lake", place)
    assert code == 2, printed
    (line,) = [line for line in printed.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: cannot reach s3a://")
    assert says in line
    assert "Traceback" not in printed


def asked(*words: str) -> tuple[int, str]:
    """A command that needs no JVM."""
    command = [sys.executable, "-m", "wirelake", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment())
    return done.returncode, done.stdout


def of_table(lake: str, table: Table, column: str) -> list[Any]:
    rows = read_table(lake, table)
    assert rows is not None
    return list(rows.column(column).to_pylist())
