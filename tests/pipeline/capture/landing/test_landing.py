from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decoder.model import Frame, Gap
from pipeline.capture.landing import files as landing_files
from pipeline.capture.landing.stores import LandingError, LocalStore
from pipeline.capture.landing.writer import LandingWriter, Published
from pipeline.capture.packets.packet import DamagedCaptureError
from pipeline.capture.runs.reading import read_capture
from pipeline.lake.arrow import arrow_schema
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


def eventually(is_so: Callable[[], bool]) -> None:
    """Wait for what another thread or process does; the minute is for machines that do much else."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def visible(root: Path) -> list[str]:
    """Files that a reader of the landing zone would see."""
    return sorted(
        str(p.relative_to(root)) for p in root.rglob("*")
        if p.is_file() and not any(part.startswith((".", "_")) for part in p.relative_to(root).parts)
    )  # fmt: skip


def everything(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def write(root: Path, *items: Frame | Gap) -> Published:
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


def test_files_that_are_read_once_hold_the_same_rows(tmp_path):
    kept, passing = Path(tmp_path, "kept"), Path(tmp_path, "passing")
    for place, are_read_once in ((kept, False), (passing, True)):
        with LandingWriter(LocalStore(place), "a", are_read_once=are_read_once) as writer:
            for number in range(50):
                writer.add(replace(FRAME, seq=number, ts=MIDNIGHT + number, ts_end=MIDNIGHT + number))
            (name,) = writer.publish().new
    files = [pq.ParquetFile(place / name) for place in (kept, passing)]
    assert [file.metadata.row_group(0).column(0).compression for file in files] == ["ZSTD", "LZ4"]
    assert files[0].read().equals(files[1].read())


def test_the_manifest_describes_what_the_file_holds(tmp_path):
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
        "frame_bytes": 2 * FRAME.size,
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


def some_frames(count: int, days: int = 1) -> list[Frame]:
    """Different frames of different sizes, a few µs apart, on days in turn."""
    return [
        replace(FRAME, seq=i, ts=MIDNIGHT + i // 3 + i % days * 86_400_000_000, frame=bytes([i % 256]) * (i * 7 % 11))
        for i in range(count)
    ]


def table_of(frames: list[Frame]) -> pa.Table:
    return pa.Table.from_pylist([asdict(frame) for frame in frames], schema=arrow_schema(LANDING_COLUMNS))


def contents(root: Path) -> dict[str, bytes]:
    return {path: (root / path).read_bytes() for path in everything(root)}


def test_files_roll_by_rows_and_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(landing_files, "ROWS_PER_FILE", 4)
    write(tmp_path / "rows", *some_frames(10))
    sizes = [pq.ParquetFile(tmp_path / "rows" / p).metadata.num_rows for p in visible(tmp_path / "rows")]
    assert sizes == [4, 4, 2]
    monkeypatch.setattr(landing_files, "BYTES_PER_FILE", 5)
    write(tmp_path / "bytes", *(replace(FRAME, seq=i) for i in range(4)))
    assert len(visible(tmp_path / "bytes")) == 2


@pytest.mark.parametrize(("rows", "size"), [(9, 1 << 20), (1000, 50), (7, 30)])
@pytest.mark.parametrize("days", [1, 3])
def test_tables_and_single_rows_make_the_same_files(tmp_path, monkeypatch, rows, size, days):
    monkeypatch.setattr(landing_files, "ROWS_PER_FILE", rows)
    monkeypatch.setattr(landing_files, "BYTES_PER_FILE", size)
    frames = some_frames(40, days)
    write(tmp_path / "single", *frames)
    for name, cuts in {"whole": [0], "cut": [0, 1, 2, 15], "mixed": [0, 3, 3, 30]}.items():
        with LandingWriter(LocalStore(tmp_path / name), "a") as writer:
            for start, stop in zip(cuts, [*cuts[1:], 40], strict=True):
                part = table_of(frames[start:stop])
                if name == "cut":
                    for batch in part.to_batches():
                        writer.add_table(batch)
                elif name == "mixed" and start == 3:
                    for frame in frames[start:stop]:
                        writer.add(frame)
                else:
                    writer.add_table(part)
            writer.publish()
        assert contents(tmp_path / name) == contents(tmp_path / "single")
    got = [r for p in visible(tmp_path / "whole") for r in pq.ParquetFile(tmp_path / "whole" / p).read().to_pylist()]
    assert Counter(r["seq"] for r in got) == Counter(range(40))
    for path in visible(tmp_path / "whole"):
        table = pq.ParquetFile(tmp_path / "whole" / path).read()
        assert {f"date={ts.date()}" for ts in table["ts"].to_pylist()} == {path.partition("/")[0]}
        assert table["seq"].to_pylist() == sorted(table["seq"].to_pylist())


def test_a_table_may_have_other_encodings_but_no_other_content(tmp_path):
    table = table_of(some_frames(3))
    encoded = table.set_column(1, "connection_id", table["connection_id"].dictionary_encode())
    with LandingWriter(LocalStore(tmp_path), "a") as writer:
        writer.add_table(encoded.select(encoded.column_names[::-1]))
        (path,) = writer.publish().new
        assert pq.ParquetFile(tmp_path / path).read().equals(table)
        writer.add_table(table.drop_columns(["idle_us"]))  # written by an agent of an older release
        assert writer.publish().present == [path]
        with pytest.raises(KeyError):
            writer.add_table(table.drop_columns(["seq"]))
        with pytest.raises(ValueError, match="null"):
            writer.add_table(table.set_column(3, "seq", pa.array([None, 1, 2], pa.int64())))


def test_files_are_visible_as_soon_as_they_are_full(tmp_path, monkeypatch):
    monkeypatch.setattr(landing_files, "ROWS_PER_FILE", 2)
    with LandingWriter(LocalStore(tmp_path), "a") as writer:
        for frame in some_frames(5):
            writer.add(frame)
        eventually(lambda: len(visible(tmp_path)) == 2)
    assert len(visible(tmp_path)) == 2  # what was neither full nor published is dropped
    assert [p for p in everything(tmp_path) if p.endswith(".tmp")] == []


def test_rows_are_visible_at_a_given_age_without_any_further_call(tmp_path):
    with LandingWriter(LocalStore(tmp_path), "a", max_age_s=0.1) as writer:
        for seq in range(3):
            writer.add(replace(FRAME, seq=seq, ts=MIDNIGHT + seq))
            eventually(lambda count=seq + 1: len(visible(tmp_path)) == count)
        assert writer.publish().new == visible(tmp_path)
        assert writer.publish().new == []


def test_publish_returns_the_files_since_the_last_time(tmp_path):
    with LandingWriter(LocalStore(tmp_path), "a") as writer:
        writer.add(FRAME)
        assert [p[-12:] for p in writer.publish().new] == ["0000.parquet"]
        writer.add(replace(FRAME, seq=1))
        assert [p[-12:] for p in writer.publish().new] == ["0001.parquet"]
        writer.add(FRAME)
        assert writer.publish() == Published(new=[], present=[visible(tmp_path)[0]])


def test_no_rows_make_no_files(tmp_path):
    assert write(tmp_path).new == []
    assert everything(tmp_path) == []


@pytest.mark.parametrize("agent_id", ["", "../x", ".hidden", "_hidden", "a/b", "a\n", "é", "x" * 65])
def test_agent_ids_that_make_no_good_names(tmp_path, agent_id):
    with pytest.raises(LandingError, match="agent id"):
        LandingWriter(LocalStore(tmp_path), agent_id)


def capture(path: Path, exchanges: int = 20, lost: int | None = 9) -> Path:
    """A capture of one connection that lacks one packet."""
    flow = Flow().open()
    for i in range(exchanges):
        flow.send(0, request(i)).send(1, response(i))
    if lost is not None:
        del flow.packets[lost]
    return flow.close().write(path)


class TestReadCapture:
    def test_frames_and_gaps_land(self, tmp_path):
        stats = read_capture([capture(tmp_path / "x.pcap")], tmp_path / "landing", agent_id="edge-1")
        assert sorted(stats.files) == visible(tmp_path / "landing")
        rows = {p.split("/")[0]: pq.ParquetFile(tmp_path / "landing" / p).metadata.num_rows for p in stats.files}
        assert rows == {"date=2023-11-14": sum(stats.frames.values()), "gaps": stats.gaps + 1}
        assert stats.gaps == 1  # and the connection's row

    def test_reading_again_adds_nothing(self, tmp_path):
        path = capture(tmp_path / "x.pcap")
        first = read_capture([path], tmp_path / "landing")
        again = read_capture([path], tmp_path / "landing")
        assert again.files == []
        assert again.files_present == first.files

    def test_of_a_truncated_capture_lands_what_was_full_before_and_the_rest_if_allowed(self, tmp_path, monkeypatch):
        path, landing = capture(tmp_path / "x.pcap", 60, None), tmp_path / "landing"
        monkeypatch.setattr(landing_files, "ROWS_PER_FILE", 7)
        rolled = read_capture([path], tmp_path / "rolled")
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
        with pytest.raises(DamagedCaptureError):
            read_capture([path], landing)
        full = visible(landing)
        assert 3 < len(full) < len(rolled.files)
        assert {p: (landing / p).read_bytes() for p in full} == {
            p: (tmp_path / "rolled" / p).read_bytes() for p in full
        }
        again = read_capture([path], landing, allow_truncated=True)
        assert sorted(again.files_present) == full
        assert [name.split("/")[0] for name in again.files] == ["date=2023-11-14", "gaps"]  # its connection's row
        assert 7 * len(full) < sum(again.frames.values()) <= 7 * len(full) + 7

    def test_a_small_truncated_capture_leaves_nothing_unless_allowed(self, tmp_path):
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
