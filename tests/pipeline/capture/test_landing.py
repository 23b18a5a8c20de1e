from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from decoder.model import Frame, Gap
from pipeline.arrow import arrow_schema
from pipeline.capture import landing
from pipeline.capture.landing import LandingError, LandingWriter, LocalStore
from pipeline.capture.packet import DamagedCaptureError
from pipeline.capture.reading import read_capture
from pipeline.tables import GAP_LANDING_COLUMNS, LANDING_COLUMNS
from tests.pipeline.capture.wire import Flow, request, response

MIDNIGHT = 1_700_006_400_000_000  # 2023-11-15T00:00:00Z

FRAME = Frame(
    agent_id="a", connection_id="c", exchange_id="c-0", seq=0, direction="request", ts=MIDNIGHT, ts_end=MIDNIGHT + 5,
    client_ip="10.0.0.1", client_port=40000, server_ip="10.0.0.2", server_port=9092, protocol="kafka", api_key=18,
    api_version=0, correlation_id=-7, reply_to=None, size=3, frame=b"\x00\x12\xff", flags=0, flow_id="f",
    payload_policy="lengths",
)  # fmt: skip
GAP = Gap("a", "c", 3, "response", MIDNIGHT + 9, 1234, "scan", 0.7)


def visible(root: Path) -> list[str]:
    """Files that a reader of the landing zone would see."""
    return sorted(
        str(p.relative_to(root)) for p in root.rglob("*")
        if p.is_file() and not any(part.startswith((".", "_")) for part in p.relative_to(root).parts)
    )  # fmt: skip


def everything(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def write(root: Path, *items: Frame | Gap) -> landing.Published:
    with LandingWriter(LocalStore(root), "a") as writer:
        for item in items:
            writer.add(item)
        return writer.publish()


def test_a_row_is_what_was_written(tmp_path):
    write(tmp_path, FRAME, GAP)
    frames, gaps = f"date=2023-11-15/a-{MIDNIGHT}-0000.parquet", f"gaps/date=2023-11-15/a-{MIDNIGHT + 9}-0000.parquet"
    assert visible(tmp_path) == [frames, gaps]
    table = pq.ParquetFile(tmp_path / frames).read()
    assert table.schema.equals(arrow_schema(LANDING_COLUMNS))
    (row,) = table.to_pylist()
    assert row["frame"] == FRAME.frame
    assert row["ts"].isoformat() == "2023-11-15T00:00:00+00:00"
    assert {n: row[n] for n in row if n not in ("ts", "ts_end")} == {
        n: getattr(FRAME, n) for n in row if n not in ("ts", "ts_end")
    }
    table = pq.ParquetFile(tmp_path / gaps).read()
    assert table.schema.equals(arrow_schema(GAP_LANDING_COLUMNS))
    assert table.to_pylist()[0]["bytes_lost"] == 1234
    assert pq.ParquetFile(tmp_path / frames).metadata.row_group(0).column(0).compression == "ZSTD"


def test_the_manifest_tells_what_the_file_holds(tmp_path):
    (path,) = write(tmp_path, FRAME, replace(FRAME, seq=1, ts=MIDNIGHT + 77)).new
    name = path.rpartition("/")[2].removesuffix(".parquet")
    manifest = json.loads((tmp_path / "_manifest" / f"{name}.json").read_text())
    content = (tmp_path / path).read_bytes()
    assert manifest == {
        "path": path,
        "rows": 2,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "min_ts": "2023-11-15T00:00:00.000000Z",
        "max_ts": "2023-11-15T00:00:00.000077Z",
    }


def test_each_day_has_its_own_files(tmp_path):
    write(tmp_path, FRAME, replace(FRAME, ts=MIDNIGHT - 1))
    assert [p.partition("/")[0] for p in visible(tmp_path)] == ["date=2023-11-14", "date=2023-11-15"]


def test_the_same_rows_again_change_nothing(tmp_path):
    first = write(tmp_path, FRAME, GAP)
    before = {p: (tmp_path / p).stat().st_mtime_ns for p in everything(tmp_path)}
    again = write(tmp_path, FRAME, GAP)
    assert (again.new, again.present) == ([], sorted(first.new))
    assert {p: (tmp_path / p).stat().st_mtime_ns for p in everything(tmp_path)} == before


def test_other_rows_of_the_same_time_take_the_next_number_and_overwrite_nothing(tmp_path):
    write(tmp_path, FRAME)
    other = write(tmp_path, replace(FRAME, payload_policy="full"))
    assert [p[-9:-8] for p in other.new] == ["1"]
    assert write(tmp_path, FRAME).new == write(tmp_path, replace(FRAME, payload_policy="full")).new == []
    assert len(visible(tmp_path)) == 2


def test_files_roll_by_rows_and_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(landing, "ROWS_PER_FILE", 4)
    write(tmp_path / "rows", *(replace(FRAME, seq=i, ts=MIDNIGHT + i // 8) for i in range(10)))
    assert len(visible(tmp_path / "rows")) == 3
    assert sum(pq.ParquetFile(tmp_path / "rows" / p).metadata.num_rows for p in visible(tmp_path / "rows")) == 10
    monkeypatch.setattr(landing, "BYTES_PER_FILE", 5)
    write(tmp_path / "bytes", *(replace(FRAME, seq=i) for i in range(4)))
    assert len(visible(tmp_path / "bytes")) == 2


class FullDisk(LocalStore):
    """Fails at the n-th file."""

    def __init__(self, root: Path, after: int) -> None:
        super().__init__(root)
        self._left = after

    def stage(self, path: str, content: bytes) -> str:
        if not self._left:
            raise LandingError("disk full")
        self._left -= 1
        return super().stage(path, content)


def _write_one_by_one(store: LocalStore, rows: list[Frame], root: Path) -> None:
    with LandingWriter(store, "a") as writer:
        for row in rows:
            writer.add(row)
            assert visible(root) == []
        writer.publish()


@pytest.mark.parametrize("after", range(6))
def test_a_failure_in_the_middle_leaves_nothing(tmp_path, monkeypatch, after):
    monkeypatch.setattr(landing, "ROWS_PER_FILE", 1)
    rows = [replace(FRAME, seq=i) for i in range(3)]
    with pytest.raises(LandingError):
        _write_one_by_one(FullDisk(tmp_path, after), rows, tmp_path)
    assert everything(tmp_path) == []


def test_nothing_is_visible_before_publish(tmp_path, monkeypatch):
    monkeypatch.setattr(landing, "ROWS_PER_FILE", 1)
    with LandingWriter(LocalStore(tmp_path), "a") as writer:
        writer.add(FRAME)
        assert visible(tmp_path) == []
        assert len(everything(tmp_path)) == 2
    assert everything(tmp_path) == []


def test_no_rows_make_no_files(tmp_path):
    assert write(tmp_path).new == []
    assert everything(tmp_path) == []


@pytest.mark.parametrize("agent_id", ["", "../x", ".hidden", "_hidden", "a/b", "a\n", "é", "x" * 65])
def test_agent_ids_that_make_no_good_names(tmp_path, agent_id):
    with pytest.raises(LandingError, match="agent id"):
        LandingWriter(LocalStore(tmp_path), agent_id)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LandingError, match="cannot be written"):
        LocalStore(tmp_path / "file" / "landing")
    with pytest.raises(LandingError, match="cannot be written"):
        LocalStore(tmp_path / "file")


def capture(path: Path) -> Path:
    flow = Flow().open()
    for i in range(20):
        flow.send(0, request(i)).send(1, response(i))
    del flow.packets[9]
    return flow.close().write(path)


class TestReadCapture:
    def test_frames_and_gaps_land(self, tmp_path):
        stats = read_capture([capture(tmp_path / "x.pcap")], tmp_path / "landing", agent_id="edge-1")
        assert sorted(stats.files) == visible(tmp_path / "landing")
        rows = {p.split("/")[0]: pq.ParquetFile(tmp_path / "landing" / p).metadata.num_rows for p in stats.files}
        assert rows == {"date=2023-11-14": sum(stats.frames.values()), "gaps": stats.gaps}
        assert stats.gaps == 1

    def test_reading_again_adds_nothing(self, tmp_path):
        path = capture(tmp_path / "x.pcap")
        first = read_capture([path], tmp_path / "landing")
        again = read_capture([path], tmp_path / "landing")
        assert again.files == []
        assert again.files_present == first.files

    def test_a_truncated_capture_leaves_nothing_unless_allowed(self, tmp_path):
        path = capture(tmp_path / "x.pcap")
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(DamagedCaptureError):
            read_capture([path], tmp_path / "landing")
        assert everything(tmp_path / "landing") == []
        assert read_capture([path], tmp_path / "landing", allow_truncated=True).files

    def test_the_payload_policy_is_in_the_rows(self, tmp_path):
        stats = read_capture([capture(tmp_path / "x.pcap")], tmp_path / "landing", payload_policy="none")
        table = pq.ParquetFile(tmp_path / "landing" / stats.files[0]).read()
        assert set(table["payload_policy"].to_pylist()) == {"none"}
