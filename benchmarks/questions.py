"""Five questions of an engineer on call, answered from one capture: by Wirelake, and by tshark with DuckDB.

That is what one would do instead: ``tshark -T json`` into a file, and SQL over it. Where tshark's text cannot answer,
the table states the reason. Seconds of wall time and of CPU of all processes, in one run, in turn.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
from rich.table import Table

from benchmarks.candidates import CONSOLE
from benchmarks.corpus import CAPTURES
from benchmarks.tshark import children_seconds, version
from pipeline.dashboard.sql import query

_CLI = (sys.executable, "-m", "pipeline.cli")
_PACKETS = """
CREATE TABLE packets AS
SELECT (_source->'layers'->'frame'->>'frame.number')::INT AS number,
    (_source->'layers'->'frame'->>'frame.time_epoch') AS ts,
    (_source->'layers'->'kafka')::VARCHAR AS kafka
FROM read_json('{path}', columns = {{_source: 'JSON'}}, maximum_object_size = 268435456)
"""
_LATENCY = """
WITH answers AS (
    SELECT ts, unnest(regexp_extract_all(kafka, '"kafka.request_frame":\\s*"(\\d+)"', 1))::INT AS asked,
        regexp_extract(kafka, '"kafka.response_key":\\s*"(\\d+)"', 1) AS api
    FROM packets
)
SELECT api, quantile_cont((answers.ts::DOUBLE - p.ts::DOUBLE) * 1e6, 0.99) AS p99_us, count(*)
FROM answers JOIN packets AS p ON p.number = answers.asked GROUP BY api ORDER BY p99_us DESC
"""
_COMMITS = """
SELECT regexp_extract(kafka, '"kafka.client_id":\\s*"([^"]*)"', 1) AS client,
    regexp_extract(kafka, '"kafka.partition_id":\\s*"(-?\\d+)"', 1) AS partition,
    regexp_extract(kafka, '"kafka.offset":\\s*"(-?\\d+)"', 1) AS committed, count(*) AS times
FROM packets WHERE regexp_matches(kafka, '"kafka.request_key":\\s*"8"')
GROUP BY ALL HAVING count(*) >= 3 ORDER BY times DESC
"""
_ERRORS = """
SELECT api, code, count(*) FROM (
    SELECT regexp_extract(kafka, '"kafka.response_key":\\s*"(\\d+)"', 1) AS api,
        unnest(regexp_extract_all(kafka, '"kafka.error":\\s*"(-?\\d+)"', 1)) AS code FROM packets
) WHERE code <> '0' GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and how each side answers it.

    Attributes:
        ours: SQL over Wirelake's lake.
        theirs: SQL over tshark's text; None: it cannot be answered from that.
        remark: what is wrong with their answer, or why there is none.
    """

    text: str
    ours: str
    theirs: str | None
    remark: str


QUESTIONS = (
    Question(
        "Which api is slow (p99)?", "FROM latency", _LATENCY,
        "of packets, not of messages; waiting behind other requests is not distinguished",
    ),
    Question(
        "Which errors does who get?", "FROM errors", _ERRORS,
        "no client; versions newer than its dissector knows give error codes that were never sent",
    ),
    Question(
        "Who commits one offset again and again?", "FROM stuck_partitions", _COMMITS,
        "the first partition of each request; whether the partition moves on is not known",
    ),
    Question(
        "How far is each group behind?", "FROM consumer_lag", None,
        "log ends are in Fetch responses, of which it knows no version with topic ids",
    ),
    Question(
        "Which open transaction holds readers back?", "FROM open_transactions", None,
        "the last stable offset likewise",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of wall time and of CPU, and rows of the answer."""

    wall: float
    cpu: float
    rows: int = 0


def main(capture: Path = CAPTURES / "stuck_commit.pcap") -> None:
    """One table: making the text or the tables, then each question."""
    if shutil.which("tshark") is None:
        CONSOLE.print("tshark is not installed (Debian: apt-get install tshark)")
        return
    with tempfile.TemporaryDirectory() as folder:
        lake, text = Path(folder, "lake"), Path(folder, "packets.json")
        ours = {"make the tables": _took(lambda: _run([*_CLI, "diagnose", str(capture), "--lake", str(lake)]))}
        ports = query(lake, "SELECT DISTINCT server_port FROM silver.exchanges WHERE protocol = 'kafka'").to_pylist()
        told = [f"tcp.port=={row['server_port']},kafka" for row in ports]
        theirs = {"make the text": _took(lambda: _tshark(capture, text, told))}
        connection = duckdb.connect()
        theirs["read the text"] = _took(lambda: _rows(connection.execute(_PACKETS.format(path=text))))
        title = (
            f"{capture.name} ({capture.stat().st_size:,} bytes); {version()}: {text.stat().st_size:,} bytes of JSON; "
            f"Wirelake: {sum(file.stat().st_size for file in lake.rglob('*.parquet')):,} bytes of Parquet"
        )
        table = Table(title=title, title_justify="left")
        for name in ("", "Wirelake, s (CPU)", "tshark and DuckDB, s (CPU)", "what is wrong with that"):
            table.add_column(name)
        for name, one in ours.items():
            table.add_row(name, _shown(one), "", "")
        for name, one in theirs.items():
            table.add_row(name, "", _shown(one), "")
        for asked in QUESTIONS:
            own = _took(lambda sql=asked.ours: query(lake, sql).num_rows)  # type: ignore[misc]
            other = "cannot"
            if asked.theirs is not None:
                other = _shown(_took(lambda sql=asked.theirs: _rows(connection.execute(sql))))  # type: ignore[misc]
            table.add_row(asked.text, _shown(own), other, asked.remark)
        CONSOLE.print(table)


def _run(command: list[str]) -> int:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: there is something critical
        raise RuntimeError(done.stderr)
    return 0


def _tshark(capture: Path, text: Path, told: Sequence[str]) -> int:
    """The text of all Kafka packets; tshark must be told on which ports Kafka is."""
    ports = [word for one in told for word in ("-d", one)]
    with text.open("wb") as out:
        subprocess.run(
            ["tshark", "-r", str(capture), "-Y", "kafka", "-T", "json", "--no-duplicate-keys", *ports],
            stdout=out, stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
    return 0


def _rows(answer: duckdb.DuckDBPyConnection) -> int:
    return len(answer.fetchall())


def _took(work: Callable[[], int]) -> Took:
    wall, cpu = time.perf_counter(), time.process_time() + children_seconds()
    rows = work()
    return Took(time.perf_counter() - wall, time.process_time() + children_seconds() - cpu, rows)


def _shown(one: Took) -> str:
    return f"{one.wall:.2f} ({one.cpu:.2f})" + (f", {one.rows} rows" if one.rows else "")
