"""`wirelake jdbc` is asked by beeline and from Python: tables, views, comments and panels; nobody without the token."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pipeline.bi.panels import Panel, panels
from pipeline.dashboard.sql import query
from tests.brokers.process import free_ports
from tests.paths import ROOT
from tests.requirements import require_java

TOKEN = "a-token-of-the-tests"  # noqa: S105 - of no other server
OTHER = "another-token-that-is-long"
_MOST_S = 900


@dataclass(frozen=True)
class Served:
    """A server of the samples' lake."""

    port: int
    process: subprocess.Popen[str]

    def ask(self, sql: str, token: str = TOKEN) -> list[tuple[Any, ...]]:
        from pyhive import hive  # noqa: PLC0415 - of these tests alone

        with hive.connect(
            "127.0.0.1", self.port, username="wirelake", password=token, auth="CUSTOM", database="views"
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            return list(cursor.fetchall())


@pytest.fixture(scope="module")
def served(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    require_java()
    folder = tmp_path_factory.mktemp("jdbc")
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "wirelake", "jdbc", "--lake", str(small), "--port", str(port)]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [*command, "--token-file", str(token)], cwd=folder, stderr=log, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        ) as process,
    ):  # fmt: skip
        deadline = time.monotonic() + _MOST_S
        while "JDBC: jdbc:hive2" not in (folder / "log").read_text():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(1)
        yield Served(port, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
        assert TOKEN not in (folder / "log").read_text()


def beeline(served: Served, sql: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    url = f"jdbc:hive2://127.0.0.1:{served.port}/views"
    return subprocess.run(
        [home / "bin" / "beeline", "-u", url, "-n", "wirelake", "-p", token, "--outputformat=csv2", "-e", sql],
        env={**os.environ, "SPARK_HOME": str(home)}, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


pytestmark = [pytest.mark.proof, pytest.mark.spark]


def test_beeline_lists_views_and_asks_one(served: Served, small: Path) -> None:
    done = beeline(served, "SHOW VIEWS IN views; SELECT group_id, topic, lag FROM consumer_lag WHERE lag > 0")
    assert done.returncode == 0, done.stderr
    assert "views,consumer_lag,false" in done.stdout
    expected = query(small, "SELECT group_id, topic, lag FROM consumer_lag WHERE lag > 0").to_pylist()
    assert expected
    for row in expected:
        assert f"{row['group_id']},{row['topic']},{row['lag']}" in done.stdout.splitlines()


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel.name)
def test_a_panel_answers_as_without_a_jvm(served: Served, small: Path, panel: Panel) -> None:
    there = served.ask(panel.sql)
    assert there
    assert len(there) == query(small, panel.sql).num_rows


def test_tables_have_their_comments(served: Served) -> None:
    columns = {row[0]: row[2] for row in served.ask("DESCRIBE TABLE gold.findings")}
    assert columns["rule"] == "Name of the rule"


def test_nobody_deletes_rows_by_the_names_of_tables(served: Served, small: Path) -> None:
    from pyhive.exc import Error  # noqa: PLC0415 - of these tests alone

    before = query(small, "FROM gold.findings").num_rows
    with pytest.raises(Error):
        served.ask("DELETE FROM gold.findings")
    assert query(small, "FROM gold.findings").num_rows == before


def test_without_the_token_nobody_asks(served: Served) -> None:
    from thrift.transport.TTransport import TTransportException  # noqa: PLC0415 - of these tests alone

    with pytest.raises(TTransportException):
        served.ask("SELECT 1", token=OTHER)
    done = beeline(served, "SELECT 1", token=OTHER)
    assert "Connected to" not in done.stdout + done.stderr
