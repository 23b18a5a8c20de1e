"""``wirelake connections`` lists each connection once, of a capture, a landing zone and a lake alike."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from pipeline.analysis.connections import connections, of_each_kind, speaks
from pipeline.capture.runs.reading import read_capture
from pipeline.cli import app
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.lake import write_lake
from pipeline.tables import CONNECTIONS, GAPS
from tests.pipeline.capture.wire import ACK, FIN, RST, SYN, Flow, pcap, request, response
from tests.pipeline.rows import arrow, row

CLIENT, SERVER = "10.0.0.5", "10.0.0.9"


def flow(number: int) -> Flow:
    return Flow(client=(CLIENT, 41000 + number), server=(SERVER, 9092))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """One that is served, one that is refused, one that the server closes though a request is open."""
    served = flow(0).open().send(0, request(1)).send(1, response(1)).close()
    refused = flow(1)
    refused.add(0, refused.isn[0], 0, SYN)
    refused.add(1, 0, refused.isn[0] + 1, RST | ACK)
    cut = flow(2).open().send(0, request(1)).send(1, response(1)).send(0, request(2))
    cut.add(1, cut.seq[1], cut.seq[0], FIN | ACK)
    cut.add(0, cut.seq[0], cut.seq[1] + 1, FIN | ACK)
    path = tmp_path / "some.pcap"
    path.write_bytes(pcap([*served.packets, *refused.packets, *cut.packets]))
    return path


def printed(*arguments: object, width: int = 140) -> str:
    done = CliRunner().invoke(app, ["connections", *map(str, arguments)], env={"COLUMNS": str(width)})
    assert done.exit_code == 0, done.output
    return done.stdout


def listed(*arguments: object) -> list[dict[str, object]]:
    return [json.loads(line) for line in printed(*arguments, "--json").splitlines()]


def test_it_lists_how_each_ended(capture: Path) -> None:
    text = printed(capture)
    assert "closed by the client" in text
    assert "closed by the server, request open" in text
    assert "3 connections: 1 closed by the client, 1 closed by the server, request open, 1 refused." in text


def test_a_narrow_terminal_shows_whole_addresses(capture: Path) -> None:
    text = printed(capture, width=80)
    assert f"{CLIENT}:41002" in text
    assert max(map(len, text.splitlines())) <= 80


def test_failed_leaves_out_what_ended_well(capture: Path) -> None:
    assert sorted(one["client_port"] for one in listed(capture, "--failed")) == [41001, 41002]


@pytest.mark.parametrize(
    ("host", "number"), [(CLIENT, 3), (f"{CLIENT}:41001", 1), (f"{SERVER}:9092", 3), (SERVER[:-1], 0)]
)
def test_a_host_is_an_address_or_address_and_port(capture: Path, host: str, number: int) -> None:
    assert len(listed(capture, "--host", host)) == number


def test_a_landing_zone_and_a_lake_list_the_same(capture: Path, tmp_path: Path) -> None:
    read_capture([capture], tmp_path / "landing", agent_id="local")
    found = diagnose(read_inputs([str(capture)]), StreamSettings(), "all")
    write_lake(tmp_path / "lake", found.tables)
    expected = listed(capture)
    assert listed(tmp_path / "lake") == expected
    assert listed(tmp_path / "landing") == expected


def test_two_agents_are_counted_once(capture: Path, tmp_path: Path) -> None:
    for agent in ("a", "b"):
        read_capture([capture], tmp_path / "landing", agent_id=agent)
    assert len(listed(tmp_path / "landing")) == 3


def test_files_and_tables_of_a_release_without_these_rows_are_read(capture: Path, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    read_capture([capture], landing)
    (file,) = (landing / "gaps").rglob("*.parquet")
    older = pq.ParquetFile(file).read().drop_columns(["life"])
    pq.write_table(older, file)
    for manifest in (landing / "_manifest" / "gaps").glob("*.json"):
        manifest.unlink()
    assert "No connection is recorded" in printed(landing)
    assert connections(older).num_rows == 0
    assert diagnose(read_inputs([str(landing)]), StreamSettings(), "report").findings.num_rows == 0


def test_a_lake_of_such_a_release_is_read(capture: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_lake(lake, diagnose(read_inputs([str(capture)]), StreamSettings(), "all").tables)
    shutil.rmtree(lake / CONNECTIONS.path)
    assert len(listed(lake)) == 3  # as agents have stated them
    place = lake / GAPS.path
    older = DeltaTable(str(place)).to_pyarrow_table().drop_columns(["life"])
    shutil.rmtree(place)
    write_deltalake(str(place), older, partition_by=["date"])
    assert "No connection is recorded" in printed(lake)
    assert CliRunner().invoke(app, ["findings", "--lake", str(lake)]).exit_code == 0


def stated(*lives: str | None) -> list[dict[str, object]]:
    """Rows of silver.connections, of what agents state."""
    gaps = [row(GAPS, connection_id=str(n), method="connection", life=life) for n, life in enumerate(lives)]
    found: list[dict[str, object]] = connections(arrow(GAPS, gaps)).to_pylist()
    return found


def test_what_makes_no_sense_is_left_out() -> None:
    assert stated('{"how":"served"}', "[]", "no JSON", None) == []


WHOLE = {"how": "served", "server_ip": "10.0.0.9", "server_port": 9092, "began_us": 5, "ended_us": 6, "packets": [1, 1]}


@pytest.mark.parametrize(
    "wrong", [{}, {"how": 1}, {"began_us": "x"}, {"began_us": 7}, {"ended_us": 2**63}, {"server_port": None}], ids=str
)
def test_a_row_that_no_agent_writes_is_left_out(wrong: dict[str, object]) -> None:
    life = json.dumps(WHOLE | wrong) if wrong else "[1"
    assert stated(life) == []


@pytest.mark.parametrize("field", ["packets", "bytes", "unacknowledged", "spoke_us", "connections", "alert", "state"])
@pytest.mark.parametrize("value", [None, [1], [1, "x"], [1, 2**70], {"a": 1}, -1, 1.5], ids=repr)
def test_a_field_that_lies_is_not_known(field: str, value: object) -> None:
    life = json.dumps(WHOLE | {field: value})
    (one,) = stated(life)
    columns = {
        "packets": ("client_packets", "server_packets"), "bytes": ("client_bytes", "server_bytes"),
        "unacknowledged": ("client_unacknowledged", "server_unacknowledged"),
        "spoke_us": ("client_spoke_ts", "server_spoke_ts"), "connections": (),
    }.get(field, (field,))  # fmt: skip
    assert [one[column] for column in columns] == [None] * len(columns)
    assert one["connections"] == 1
    assert one["ended"] == "unknown"
    assert speaks(one) == ""
    assert of_each_kind([one]) == {"unknown": 1}
    assert not one["is_failed"]
