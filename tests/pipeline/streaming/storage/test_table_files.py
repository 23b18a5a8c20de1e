"""Files that the table writer makes: whole, split, with the statistics that Delta's own writers state; or none."""

from __future__ import annotations

import json
import os
import stat
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipeline.embedded.lake import write_lake
from pipeline.streaming.storage import table_files
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.sinks import Batch
from pipeline.streaming.storage.table_files import ConstraintError, TableFile, TableWriter
from pipeline.streaming.storage.written_here import append_here, commit_files
from pipeline.tables import EXCHANGES, FINDINGS, FRAMES, TABLES, Table
from tests.pipeline.lakes import rows
from tests.pipeline.rows import T0, arrow, row


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of empty tables."""
    lake = tmp_path_factory.mktemp("made") / "lake"
    write_lake(lake, {})
    return lake


def written(lake: Path, table: Table, *parts: list[dict[str, Any]]) -> list[TableFile]:
    with TableWriter(str(lake / table.path), table) as writer:
        found = [file for part in parts for file in writer.add(arrow(table, part))]
        return [*found, *writer.close()]


def stated(lake: Path, table: Table) -> list[dict[str, Any]]:
    """What the log states of the columns that readers skip by, of each file."""
    actions = pa.table(DeltaTable(str(lake / table.path)).get_add_actions(flatten=True)).to_pylist()
    names = [f"{kind}.{name}" for kind in ("min", "max", "null_count", "partition") for name in table.column_names]
    wanted = {name for name in names if name.partition(".")[2] in (*table.sought_by, *table.partition_by)}
    return sorted(({n: v for n, v in file.items() if n in {*wanted, "num_records"}} for file in actions), key=repr)


@pytest.mark.parametrize("name", TABLES)
def test_statistics_are_those_of_other_writers(made: Path, name: str) -> None:
    table = TABLES[name]
    some = [row(table, **_SOUND.get(name, {})) for _ in range(2)]
    for number, name_ in enumerate(n for n in table.sought_by if _is_text(table, n)):
        some[1][name_] = "y" * (number + 1)
    lake = Lake.at(made)
    append_here(arrow(table, some), lake, table)
    commit_files(written(made, table, some), lake, table)
    one, other = stated(made, table)
    assert {k: v for k, v in one.items() if v is not None} == {k: v for k, v in other.items() if v is not None}
    assert one["num_records"] == 2
    held = rows(made, table)
    assert held[0::2] == held[1::2]
    assert len(held) == 4


_SOUND: dict[str, dict[str, Any]] = {
    "silver.connections": {"how": "refused", "connections": 1},
    "silver.transactions": {"state": "ongoing"},
    "gold.clients": {"breaks_on_kafka_4": True},
}


def _is_text(table: Table, name: str) -> bool:
    return any(column.name == name and column.type == "string" for column in table.columns) and name not in {
        word for rule in table.checks.values() for word in rule.replace("(", " ").split()
    }


def test_a_batch_is_committed_once(tmp_path: Path) -> None:
    write_lake(tmp_path / "lake", {})
    lake = Lake.at(tmp_path / "lake")
    for number in (4, 4, 3, 5):
        commit_files(written(tmp_path / "lake", FRAMES, [row(FRAMES, seq=number)]), lake, FRAMES, Batch("some", number))
    assert sorted(one["seq"] for one in rows(tmp_path / "lake", FRAMES)) == [4, 5]


def test_rows_of_more_days_than_files_may_be_open_are_all_written(tmp_path: Path) -> None:
    days = [T0 + timedelta(days=number % 40) for number in range(100)]
    content = [row(FRAMES, seq=n, ts=ts, date=ts.date()) for n, ts in enumerate(days)]
    found = written(tmp_path, FRAMES, content)
    assert sum(file.rows for file in found) == 100
    assert {json.loads(file.partition)["date"] for file in found} == {str(ts.date()) for ts in days}
    for file in found:
        assert file.path.startswith(f"date={json.loads(file.partition)['date']}/part-")
        assert file.size == (tmp_path / FRAMES.path / file.path).stat().st_size


def test_a_file_that_is_large_enough_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "ROW_GROUP_BYTES", 1)
    monkeypatch.setattr(table_files, "FILE_BYTES", 4_000)
    parts = [[row(FRAMES, seq=number, frame=os.urandom(1_500))] for number in range(6)]
    found = written(tmp_path, FRAMES, *parts)
    assert [file.rows for file in found] == [2, 2, 2]
    statistics = [json.loads(file.statistics) for file in found]
    assert [(one["minValues"]["seq"], one["maxValues"]["seq"]) for one in statistics] == [(0, 1), (2, 3), (4, 5)]


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    assert written(tmp_path, FRAMES) == written(tmp_path, FRAMES, []) == []


def test_texts_are_cut_in_statistics_and_stay_bounds(tmp_path: Path) -> None:
    texts = ["a" * 40, "z" * 40, "m"]
    (file,) = written(tmp_path, FRAMES, [row(FRAMES, connection_id=text) for text in texts])
    found = json.loads(file.statistics)
    assert found["minValues"]["connection_id"] == "a" * 32
    assert found["maxValues"]["connection_id"] == "z" * 32 + "\U0010ffff"
    assert found["maxValues"]["connection_id"] > max(texts)


def test_times_to_the_microsecond(tmp_path: Path) -> None:
    early, late = (datetime(year, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc) for year in (1970, 9999))
    (file,) = written(tmp_path, FINDINGS, [row(FINDINGS, first_ts=early, last_ts=late)])
    found = json.loads(file.statistics)
    assert found["minValues"]["first_ts"] == "1970-01-02T03:04:05.678901Z"
    assert found["maxValues"]["last_ts"] == "9999-01-02T03:04:05.678901Z"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"direction": "sideways"}, "direction_known"),
        ({"decode_status": "partial"}, "error_has_code"),
        ({"agent_id": None}, "1 rows without agent_id"),
    ],
)
def test_rows_that_break_a_constraint_leave_no_file(tmp_path: Path, values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConstraintError, match=reason):
        written(tmp_path, FRAMES, [row(FRAMES)], [row(FRAMES, **values)])
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_task_that_fails_takes_its_files_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "ROW_GROUP_BYTES", 1)

    def task() -> None:
        with TableWriter(str(tmp_path), EXCHANGES) as writer:
            writer.add(arrow(EXCHANGES, [row(EXCHANGES)]))
            assert list(tmp_path.rglob("*.parquet"))
            raise RuntimeError("pulled the plug")

    with pytest.raises(RuntimeError, match="pulled the plug"):
        task()
    assert list(tmp_path.rglob("*.parquet")) == []


def test_files_have_the_modes_of_all_that_is_written(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        (file,) = written(tmp_path, FRAMES, [row(FRAMES)])
    finally:
        os.umask(before)
    place = tmp_path / FRAMES.path / file.path
    assert (stat.S_IMODE(place.stat().st_mode), stat.S_IMODE(place.parent.stat().st_mode)) == (0o640, 0o750)


def encodings(file: Path, column: str) -> set[str]:
    """How a file holds the values of a column."""
    footer = pq.ParquetFile(file).metadata
    place = footer.schema.names.index(column)
    return {one for group in range(footer.num_row_groups) for one in footer.row_group(group).column(place).encodings}


def test_both_writers_hold_differences_of_times_and_no_dictionary_of_what_differs(tmp_path: Path) -> None:
    lake, some = Lake.at(tmp_path / "lake"), [row(FRAMES) for _ in range(3)]
    write_lake(tmp_path / "lake", {FRAMES.full_name: arrow(FRAMES, some)})
    append_here(arrow(FRAMES, some), lake, FRAMES)
    commit_files(written(tmp_path / "lake", FRAMES, some), lake, FRAMES)
    files = list((tmp_path / "lake" / FRAMES.path).rglob("*.parquet"))
    assert len(files) == 3
    for file in files:
        assert "DELTA_BINARY_PACKED" in encodings(file, "ts_end")
        assert not encodings(file, "body") & {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}
        assert encodings(file, "api_name") & {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}
        assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == "ZSTD"
    assert DeltaTable(str(tmp_path / "lake" / FRAMES.path)).to_pyarrow_table().num_rows == 9
