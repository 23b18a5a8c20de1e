"""Rows of landing files as a worker reads them: what Spark would hand to it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.lake.arrow import arrow_schema
from pipeline.streaming.landing import whole_files
from pipeline.streaming.landing.whole_files import landed_batches
from pipeline.tables import FRAMES, LANDING_COLUMNS
from tests.pipeline.rows import row

SCHEMA = arrow_schema(LANDING_COLUMNS)


def landed(rows: int, size: int = 1, since: int = 0) -> pa.Table:
    names = set(SCHEMA.names)
    made = [row(FRAMES, seq=since + number, frame=b"x" * size) for number in range(rows)]
    return pa.Table.from_pylist([{name: one[name] for name in names} for one in made], SCHEMA)


def read(*paths: Path) -> pa.Table:
    return pa.Table.from_batches(list(landed_batches(map(str, paths))))


def written(folder: Path, rows: pa.Table, name: str = "frames") -> Path:
    path = folder / f"{name}.parquet"
    pq.write_table(rows, path)
    return path


def test_files_come_in_their_order_with_times_as_numbers(tmp_path: Path) -> None:
    one, other = landed(3), landed(2, since=3)
    found = read(written(tmp_path, one), written(tmp_path, other, "other"))
    assert found.column("seq").to_pylist() == [0, 1, 2, 3, 4]
    assert found.column_names == SCHEMA.names
    both = pa.concat_tables([one, other])
    for field in SCHEMA:
        is_time = pa.types.is_timestamp(field.type)
        assert found.schema.field(field.name).type == (pa.int64() if is_time else field.type), field.name
        assert found.column(field.name).cast(field.type).to_pylist() == both.column(field.name).to_pylist()


def test_a_column_that_a_file_lacks_is_null_and_others_are_left_out(tmp_path: Path) -> None:
    rows = landed(2).drop_columns(["idle_us", "ts_end"]).append_column("theirs", pa.array([1, 2]))
    found = read(written(tmp_path, rows))
    assert found.column_names == SCHEMA.names
    assert found.column("idle_us").to_pylist() == found.column("ts_end").to_pylist() == [None, None]
    assert found.column("ts_end").type == pa.int64()


@pytest.mark.parametrize("unit", ["ms", "ns"])
def test_times_of_another_unit_and_smaller_numbers_fit(tmp_path: Path, unit: str) -> None:
    rows = landed(1)
    for name, kind in (("ts", pa.timestamp(unit, "UTC")), ("seq", pa.int32())):
        rows = rows.set_column(rows.column_names.index(name), name, rows.column(name).cast(kind, safe=False))
    found = read(written(tmp_path, rows))
    assert found.schema.field("seq").type == pa.int64()
    assert abs(found.column("ts")[0].as_py() - landed(1).column("ts").cast(pa.int64())[0].as_py()) < 1_000


@pytest.mark.parametrize("wrong", ["text for a number", "cut off", "gone"])
def test_what_cannot_be_read_is_an_error(tmp_path: Path, wrong: str) -> None:
    rows = landed(1)
    if wrong == "text for a number":
        rows = rows.set_column(rows.column_names.index("seq"), "seq", pa.array(["x"]))
    path = written(tmp_path, rows)
    if wrong == "cut off":
        path.write_bytes(path.read_bytes()[:-9])
    if wrong == "gone":
        path.unlink()
    with pytest.raises((pa.ArrowException, OSError)):
        read(path)


@pytest.mark.parametrize("by_dictionary", [False, True])
def test_long_frames_come_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_dictionary: bool) -> None:
    rows = landed(20, size=2_000)
    path = tmp_path / "frames.parquet"
    pq.write_table(rows, path, use_dictionary=by_dictionary, compression="none")
    assert (path.stat().st_size < 30_000) == by_dictionary
    monkeypatch.setattr(whole_files, "_BYTES", 10_000)
    batches = list(landed_batches([str(path)]))
    assert max(batch.num_rows for batch in batches) <= 5
    assert pa.Table.from_batches(batches).column("frame").to_pylist() == rows.column("frame").to_pylist()
    monkeypatch.setattr(whole_files, "_BYTES", 1)
    assert {batch.num_rows for batch in landed_batches([str(path)])} == {1}


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    assert list(landed_batches([str(written(tmp_path, landed(0)))])) == []
