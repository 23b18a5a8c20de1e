"""The third protocol, installed beside Wirelake and nothing else changed: from the wire to the page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.brokers.redis_server import RedisServer
from tests.paths import CAPTURES, ROOT
from tests.protocols import record
from tests.protocols.conftest import Run
from tests.requirements import require_java, require_streamlit, require_tcpdump

pytestmark = pytest.mark.slow

RULE = "resp_refused_writes"


@pytest.fixture(scope="module")
def lake(wirelake: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("resp") / "lake"
    wirelake("diagnose", record.CAPTURE, "--lake", made, "--json", code=1)
    return made


def rows(lake: Path, table: str) -> list[dict]:
    return DeltaTable(str(lake / table)).to_pyarrow_table().to_pylist()


def test_decode_shows_it(wirelake: Run):
    messages = [json.loads(line) for line in wirelake("decode", "--json", record.CAPTURE).stdout.splitlines()]
    assert {message["protocol"] for message in messages} == {"resp"}
    assert {message["status"] for message in messages} == {"ok", "redacted"}
    commands = [message["api_name"] for message in messages if message["direction"] == "request"]
    assert commands[:6] == ["AUTH", "CONFIG", "SET", "GET", "GET", "INCR"]
    assert commands.count("INCR") == 20
    text = json.dumps(messages)
    assert record.SECRET not in text
    assert record.VALUE not in text


def test_explain_shows_each_byte_and_takes_pasted_ones(wirelake: Run):
    shown = wirelake("explain", record.CAPTURE, "--frame", 5).stdout
    assert "SET request, 58 bytes: ok" in shown
    assert "24 bytes, overwritten" in shown
    pasted = wirelake("explain", "--hex", (record.words("GET", "key") + b"+OK\r\n").hex()).stdout
    assert "GET request, 22 bytes: ok" in pasted
    assert "5 bytes follow this message" in pasted
    told = wirelake("explain", "--hex", b"-ERR no\r\n".hex(), "--protocol", "resp", "--direction", "response").stdout
    assert "error" in told
    other = wirelake("explain", "--hex", "00", "--protocol", "amqp", code=2).stderr
    assert "kafka or mongodb or resp" in " ".join(other.split())


def test_its_exchanges_latencies_and_findings_are_in_the_lake(lake: Path):
    exchanges = rows(lake, "silver/exchanges")
    assert {row["protocol"] for row in exchanges} == {"resp"}
    paired = [row for row in exchanges if row["status"] == "paired"]
    assert len(paired) == len(exchanges) - 1, "but the message of a channel, which nobody asked for"
    assert all(row["latency_us"] >= 0 for row in paired)
    assert {name for row in paired for name in row["error_names"]} == {"OOM", "WRONGTYPE", "NOAUTH"}
    latency = {row["api_name"]: row for row in rows(lake, "gold/api_latency")}
    assert latency["INCR"]["exchanges"] == 20
    assert latency["SET"]["errors"] == record.REFUSED
    (finding,) = rows(lake, "gold/findings")
    assert (finding["rule"], finding["severity"], finding["cluster"]) == (RULE, "critical", "127.0.0.1:6379")
    (incident,) = rows(lake, "gold/incidents")
    assert incident["headline"] == "127.0.0.1:6379 refuses writes: OOM, 3 times"
    assert "Seen on the wire: the error is the server's own answer." in incident["reasoning"]
    assert incident["immediate_action"] == "free memory on 127.0.0.1:6379, or raise `maxmemory`."
    for file in lake.rglob("*.parquet"):
        assert record.SECRET.encode() not in file.read_bytes()


def test_its_rule_has_a_threshold_that_users_set(wirelake: Run, tmp_path: Path):
    conf = tmp_path / "wirelake.yaml"
    conf.write_text("stream: {findings: {resp_refused_times: 4}}\n")
    assert wirelake("diagnose", record.CAPTURE, "--conf", conf, "--json").stdout == ""
    conf.write_text("stream: {findings: {resp_refused_time: 4}}\n")
    error = " ".join(wirelake("diagnose", record.CAPTURE, "--conf", conf, code=2).stderr.split())
    assert "stream.findings.resp_refused_time: there is no such key; did you mean `resp_refused_times`?" in error


def test_its_rule_follows_from_the_cause_that_it_names(wirelake: Run):
    linked = wirelake("connection_failed", RULE, module="tests.protocols.show_causes").stdout
    assert linked == f"connection_failed {RULE}\n"
    apart = wirelake("throttled", RULE, module="tests.protocols.show_causes").stdout
    assert len(apart.splitlines()) == 2


def test_what_else_is_captured_is_found_as_before(wirelake: Run):
    for capture in (CAPTURES / "stuck_commit.pcap", CAPTURES / "mongodb" / "plain.pcap"):
        with_it = wirelake("diagnose", "--json", capture, code=1 if capture.stem == "stuck_commit" else 0).stdout
        without = subprocess.run(
            [sys.executable, "-m", "pipeline.cli", "diagnose", "--json", capture],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, cwd=ROOT,
        ).stdout  # fmt: skip
        assert with_it == without
        assert ("stuck_commit" in with_it) == (capture.stem == "stuck_commit")


def test_its_incident_has_a_trend_and_a_proof(wirelake: Run, lake: Path):
    rule, grows, count, marked = wirelake(lake, module="tests.protocols.show_trend").stdout.strip().split(" | ")
    assert (rule, grows, count) == (RULE, "times", "3.0")
    assert marked.count("OOM") == record.REFUSED


def test_the_page_shows_it(wirelake: Run, lake: Path):
    require_streamlit()
    exchange = next(row for row in rows(lake, "silver/exchanges") if row["error_names"] == ["OOM"])
    found = page(wirelake, lake, "findings", "range=all", "protocol=Redis")
    assert "refuses writes: OOM" in found
    shown = page(wirelake, lake, "exchanges", "range=all", f"exchange={exchange['exchange_id']}", "bytes=true")
    assert "OOM" in shown
    assert "filler:" in shown
    assert "refuses writes" not in page(wirelake, lake, "findings", "range=all", "protocol=Kafka")


def page(wirelake: Run, lake: Path, name: str, *parameters: str) -> str:
    return wirelake(lake, name, *parameters, module="tests.protocols.show_page").stdout


@pytest.mark.proof
@pytest.mark.spark
def test_the_job_makes_the_same_tables(wirelake: Run, lake: Path, tmp_path: Path):
    require_java()
    wirelake("capture", "read", record.CAPTURE, "--landing", tmp_path / "landing")
    wirelake("stream", "--landing", tmp_path / "landing", "--lake", tmp_path / "lake", "--once")
    for table in ("silver/exchanges", "gold/api_latency", "gold/findings"):
        ours, theirs = (sorted(rows(one, table), key=repr) for one in (lake, tmp_path / "lake"))
        assert [_bare(row) for row in ours] == [_bare(row) for row in theirs], table


def _bare(row: dict) -> dict:
    return {name: value for name, value in row.items() if name not in ("found_at", "batch_id")}


def test_a_live_server_is_captured(wirelake: Run, tmp_path: Path):
    require_tcpdump()
    landing = tmp_path / "landing"
    with RedisServer(None, "--requirepass", record.SECRET) as server:
        command = ["capture", "live", "--interface", "lo", "--port", f"{server.port}=resp", "--landing", landing]
        live = wirelake.start(*command)
        try:
            wait_until(lambda: any("capturing" in line for line in iter(live.stderr.readline, "")))
            time.sleep(1)
            record.play(server.host, server.port)
            time.sleep(1)
        finally:
            live.send_signal(signal.SIGINT)
            live.wait(60)
    found = [json.loads(line) for line in wirelake("diagnose", "--json", landing, code=1).stdout.splitlines()]
    assert [row["rule"] for row in found] == [RULE]


def wait_until(holds) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
