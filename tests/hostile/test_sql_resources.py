"""Queries that want all memory, all time or all disk: each ends by itself with a sentence, and what asked lives on."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.config.settings import SqlSettings
from pipeline.dashboard.query_sandbox.ask import BusyError, TooMuchError, TooSlowError, ask
from pipeline.errors import UserError
from pipeline.tables import FINDINGS
from tests.paths import ROOT
from tests.pipeline.rows import row, write

pytestmark = pytest.mark.slow

LIMITS = SqlSettings(memory_mb=64, temp_mb=64, threads=2)
MIB = 1024 * 1024

_TOO_MUCH = (
    "SELECT length(repeat('x', 4000000000))",
    "SELECT list(range) FROM range(100000000)",
    "SELECT string_agg(range::VARCHAR) FROM range(100000000)",
    "WITH RECURSIVE r AS (SELECT 'x' AS a UNION ALL SELECT a || a FROM r) SELECT max(length(a)) FROM r",
    "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT 1 FROM r, range(10)) SELECT count(*) FROM r",
    "SELECT range(1000000000)",
    "SELECT list_sort(range(300000000))[1]",
    "SELECT regexp_replace(repeat('a', 50000000), '.', repeat('b', 1000), 'g')",
    "SELECT replace(repeat('a', 10000000), 'a', repeat('b', 1000))",
    "SELECT array_agg(x) FROM (SELECT repeat('x', 1000000) AS x FROM range(100000))",
    "SELECT to_json(range(100000000))",
    "SELECT map(range(50000000), range(50000000))",
    "SELECT quantile_cont(range, 0.5) FROM range(10000000000)",
    "SELECT sum(n) FROM (SELECT row_number() OVER (ORDER BY hash(range)) AS n FROM range(200000000))",
    "SELECT format('{:>2000000000}', 'x')",
)
_TOO_SLOW = (
    "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 1",
    "WITH RECURSIVE r AS (SELECT 1::HUGEINT AS a UNION ALL SELECT a + 1 FROM r) SELECT count(*) FROM r",
    "SELECT sleep_ms(100000)",
    "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))",  # cannot be interrupted
    "SELECT max(range) FROM range(1000000000000)",
    "FROM range(1000000000000) WHERE range < 0",
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lake")
    write(place, FINDINGS, [row(FINDINGS, finding_id="1")])
    return place


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.dashboard.query_sandbox.ask._server", type(_server())())
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def _server() -> object:
    from pipeline.dashboard.query_sandbox.ask import _server as server  # noqa: PLC0415 - the one of now

    return server


def read(lake: Path, sql: str, seconds: float, limits: SqlSettings = LIMITS) -> int:
    rows = ask(lake, sql, limits, seconds=seconds, most=1001, batch=16, most_bytes=64 * MIB)
    return sum(batch.num_rows for batch in rows)


def assert_well(lake: Path, folder: Path, started: float, most_seconds: float) -> None:
    assert time.monotonic() - started < most_seconds
    assert list(folder.iterdir()) == []
    assert read(lake, "FROM gold.findings", 60) == 1


@pytest.mark.parametrize("sql", _TOO_MUCH, ids=lambda sql: sql[:50])
def test_what_needs_too_much_is_stopped(lake: Path, tmp_path: Path, sql: str) -> None:
    started = time.monotonic()
    with pytest.raises(TooMuchError, match="64 MiB of memory and 64 MiB of temporary files"):
        read(lake, sql, 60)
    assert_well(lake, tmp_path, started, 60)


@pytest.mark.parametrize("sql", _TOO_SLOW, ids=lambda sql: sql[:50])
def test_what_takes_too_long_is_stopped(lake: Path, tmp_path: Path, sql: str) -> None:
    started = time.monotonic()
    with pytest.raises(TooSlowError, match="stopped after 1 seconds"):
        read(lake, sql, 1)
    assert_well(lake, tmp_path, started, 15)


def test_long_rows_are_not_brought_here(lake: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TooMuchError, match=r"16 rows of the answer are .* MiB long"):
        read(lake, "SELECT repeat('x', 10000000) FROM range(100)", 60, SqlSettings())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_an_error_quotes_no_long_value(lake: Path) -> None:
    with pytest.raises(UserError) as caught:
        read(lake, "SELECT error(repeat('x', 1000000))", 60, SqlSettings())
    assert len(str(caught.value)) < 11_000


def test_temporary_files_are_private_and_go_away_with_the_query(lake: Path, tmp_path: Path) -> None:
    limits = SqlSettings(memory_mb=64, temp_mb=2048)
    with closing(ask(lake, "FROM range(30000000) ORDER BY hash(range)", limits, seconds=60)) as rows:
        next(rows)
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_only_so_many_run_at_once(lake: Path) -> None:
    with closing(ask(lake, "FROM range(100000000)", LIMITS, seconds=60, at_once=1)) as rows:
        next(rows)
        with pytest.raises(BusyError, match="1 queries run already"):
            next(ask(lake, "SELECT 1", LIMITS, seconds=60, at_once=1))
    assert sum(batch.num_rows for batch in ask(lake, "SELECT 1", LIMITS, seconds=60, at_once=1)) == 1


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_when_who_asked_is_killed(lake: Path, tmp_path: Path, end: signal.Signals) -> None:
    program = [sys.executable, "-m", "pipeline.cli", "sql", "--lake", str(lake), "SELECT sleep_ms(600000)"]
    asking = subprocess.Popen(program, cwd=ROOT, env=os.environ | {"TMPDIR": str(tmp_path)})
    until = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(tmp_path.iterdir())
    asking.send_signal(end)
    asking.wait(60)
    while list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
