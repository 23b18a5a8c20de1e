"""Silver written by workers is, row by row, what Spark writes of the same frames, and what one process writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.fit import fit
from pipeline.analysis.pairing import completed, exchanges
from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded
from pipeline.embedded.inputs import read_inputs
from pipeline.streaming.job import run_stream
from pipeline.streaming.queries import Queries
from pipeline.streaming.silver import batches, bundle_files, by_files
from pipeline.streaming.silver.bundle_files import BundleFiles, derived
from pipeline.streaming.storage import new_files
from pipeline.streaming.storage.lake import Lake, create_tables
from pipeline.streaming.storage.table_files import TableWriter
from pipeline.streaming.storage.worker_files import Written, groups_of, rewritten
from pipeline.streaming.storage.written_here import commit_files
from pipeline.tables import EXCHANGES, MONGO_COMMANDS, OFFSET_EVENTS, PENDING_EXCHANGES, TABLES, Table
from tests.paths import CAPTURES
from tests.pipeline.lakes import rows
from tests.pipeline.rows import arrow, row

pytestmark = pytest.mark.spark

RECORDINGS = ("healthy.pcap", "incidents/lossy.pcap", "mongodb/plain.pcap")
SILVER = [table for table in TABLES.values() if table.schema == "silver"]


def _lake(spark: SparkSession, landing: Path, lake: Path, **more: int) -> Path:
    run_stream(landing, lake, once=True, spark=spark, settings=StreamSettings(**more))
    return lake


@pytest.fixture(autouse=True)
def no_gold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gold is derived from equal rows in each lake alike."""
    all_of_bronze = Queries.of_bronze
    monkeypatch.setattr(Queries, "of_bronze", lambda queries: all_of_bronze(queries)[:1])


def assert_same(left: Path, right: Path) -> None:
    for table in SILVER:
        assert rows(left, table) == rows(right, table), table.full_name


def _writers(lake: Path, table: Table) -> set[str]:
    """Who has written the commits that added rows: delta-rs names its operation otherwise than Spark does."""
    found = set()
    for entry in (lake / table.path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        if any("add" in action for action in actions):
            found |= {
                "engineInfo" in one["commitInfo"] and one["commitInfo"]["engineInfo"]
                for one in actions
                if "commitInfo" in one
            }
    return {str(name).partition("/")[0] for name in found}


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("landed")
    for name in RECORDINGS:
        read_capture([CAPTURES / name], root, agent_id=Path(name).stem)
    return root


def test_workers_write_what_spark_and_one_process_write(
    spark: SparkSession, tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = _lake(spark, landing, tmp_path / "here")
    files = _lake(spark, landing, tmp_path / "files", local_row_limit=0)
    assert_same(here, files)
    assert "Apache-Spark" not in _writers(files, EXCHANGES) | _writers(files, OFFSET_EVENTS)
    monkeypatch.setattr(batches, "writes_files", lambda lake: False)
    apart = _lake(spark, landing, tmp_path / "apart", local_row_limit=0)
    assert "Apache-Spark" in _writers(apart, EXCHANGES)
    assert_same(apart, files)
    for table in SILVER:
        assert_no_file_is_left(files, table)


def assert_no_file_is_left(lake: Path, table: Table) -> None:
    """Every file in a table's folder belongs to some version of it."""
    lying = {path.relative_to(lake / table.path).as_posix() for path in (lake / table.path).rglob("*.parquet")}
    log = [
        json.loads(line)
        for entry in (lake / table.path / "_delta_log").glob("*.json")
        for line in entry.read_text().splitlines()
    ]
    named = {action["add"]["path"].replace("%3A", ":") for action in log if "add" in action}
    assert {path for path in lying if "_delta_log" not in path} <= named, table.full_name


def test_where_too_much_is_left_spark_pairs_it(
    spark: SparkSession, tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _lake(spark, landing, tmp_path / "files", local_row_limit=0)
    monkeypatch.setattr(by_files, "FEW_ROWS", 0)
    apart = _lake(spark, landing, tmp_path / "apart", local_row_limit=0)
    assert "Apache-Spark" in _writers(apart, EXCHANGES)
    assert_same(apart, files)
    for table in SILVER:
        assert_no_file_is_left(apart, table)


def _written(lake: Lake, some: pa.Table) -> Written:
    with TableWriter(lake.path(MONGO_COMMANDS), MONGO_COMMANDS) as writer:
        return Written(lake, MONGO_COMMANDS, (*writer.add(some), *writer.close()))


def test_files_are_rewritten_before_they_are_committed(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    create_tables(spark, lake, [MONGO_COMMANDS])
    some = arrow(MONGO_COMMANDS, [row(MONGO_COMMANDS, exchange_id=f"c/{number}") for number in range(5)])
    before = _written(lake, some)
    after = rewritten(spark, before, _renamed("new"))
    assert not any(Path(path).exists() for path in before.paths)
    assert (before.rows, after.rows) == (5, 5)
    commit_files(after.files, lake, MONGO_COMMANDS)
    held = rows(tmp_path, MONGO_COMMANDS)
    assert {(one["exchange_id"], one["application"]) for one in held} == {(f"c/{number}", "new") for number in range(5)}
    assert DeltaTable(lake.path(MONGO_COMMANDS)).version() == 1


def _renamed(name: str) -> Callable[[pa.Table], pa.Table]:
    def change(some: pa.Table) -> pa.Table:
        place = some.schema.get_field_index("application")
        return some.set_column(place, some.schema.field(place), pa.array([name] * some.num_rows, pa.string()))

    return change


def test_rows_are_read_back_as_far_as_they_are_wanted(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    create_tables(spark, lake, [MONGO_COMMANDS, PENDING_EXCHANGES])
    written = _written(lake, arrow(MONGO_COMMANDS, [row(MONGO_COMMANDS, exchange_id=f"{n}") for n in range(3)]))
    assert written.read(("exchange_id",)).column_names == ["exchange_id"]
    assert pc.sum(written.read(most=1).column("exchange_id").cast(pa.int64())).as_py() == 3
    assert Written(lake, PENDING_EXCHANGES, ()).read().num_rows == 0


class _Failures:
    def add(self, failures: object) -> None:
        raise AssertionError(failures)


def test_a_task_gives_the_same_in_pieces_and_leaves_halves_in_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = decoded(read_inputs([str(CAPTURES / "healthy.pcap")]).frames)
    paths = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    for path, direction in zip(paths, ("request", "response"), strict=True):
        pq.write_table(frames.filter(pc.equal(frames.column("direction"), direction)).drop_columns(["date"]), path)
    settings = StreamSettings()
    whole = exchanges(frames, settings.response_timeout, settings.abandon_timeout)

    def run(folder: str) -> BundleFiles:
        lake = Lake.at(tmp_path / folder)
        return BundleFiles(lake, derived([paths], lake, ClusterCatalog(), settings, _Failures(), 0))

    at_once = run("at-once")
    assert at_once.written(EXCHANGES).rows == completed(whole).num_rows
    monkeypatch.setattr(new_files, "PIECE_BYTES", 100_000)
    in_pieces = run("in-pieces")
    for table in (EXCHANGES, OFFSET_EVENTS, PENDING_EXCHANGES):
        one, other = (some.written(table).read().to_pylist() for some in (at_once, in_pieces))
        assert sorted(map(repr, one)) == sorted(map(repr, other)), table.full_name
    monkeypatch.setattr(bundle_files, "_MOST_LEFT", 0)
    spilled = run("spilled")
    left = spilled.written(PENDING_EXCHANGES)
    assert left.rows > in_pieces.written(PENDING_EXCHANGES).rows
    rest = exchanges(left.read(), settings.response_timeout, settings.abandon_timeout, spilled.noted("clocks"))
    together = pa.concat_tables([spilled.written(EXCHANGES).read(), fit(completed(rest), EXCHANGES)])
    wanted = fit(completed(whole), EXCHANGES)
    assert sorted(map(repr, together.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


@pytest.mark.parametrize(
    ("sizes", "most", "wanted"),
    [
        ([], 2, []),
        ([5], 4, [[0]]),
        ([1, 1, 1, 1], 2, [[0, 1], [2, 3]]),
        ([9, 1, 1], 2, [[0], [1, 2]]),
        ([1, 1, 9], 2, [[0, 1], [2]]),
        ([3, 3, 3], 8, [[0], [1], [2]]),
        ([0, 0], 2, [[0, 1]]),
    ],
)  # fmt: skip
def test_files_go_to_tasks_in_their_order(sizes: list[int], most: int, wanted: list[list[int]]) -> None:
    assert [list(group) for group in groups_of(sizes, most)] == wanted
