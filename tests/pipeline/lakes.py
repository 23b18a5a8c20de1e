"""What tests of whole lakes share: making and reading one without a JVM, comparing lakes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.lake import write_lake
from pipeline.tables import OFFSET_SNAPSHOTS, TABLES, Table
from tests.paths import CAPTURES

DATA = [table for name, table in TABLES.items() if not name.startswith("ops.") and table is not OFFSET_SNAPSHOTS]
"""The tables that describe the traffic, not of the pipeline.

What was known before an hour is noted of hours with news: where the stream was cut shows there.
"""


def diagnosed_lake(lake: Path, *captures: str) -> Path:
    """The lake of ``wirelake diagnose --lake`` of captures, by their names below ``tests/captures`` without suffix.

    A copy, to read or to harm: many modules want the same one, and each takes seconds to make.
    """
    return Path(shutil.copytree(_diagnosed(captures), lake, dirs_exist_ok=True))


@cache
def _diagnosed(captures: tuple[str, ...]) -> Path:
    lake = Path(tempfile.mkdtemp(dir=_folder().name)) / "lake"
    inputs = read_inputs([str(CAPTURES / f"{name}.pcap") for name in captures])
    write_lake(lake, diagnose(inputs, StreamSettings()).tables)
    return lake


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Of this process, which takes it away when it ends."""
    return tempfile.TemporaryDirectory(prefix="wirelake-lakes-")


def rows(lake: Path, table: Table) -> list[dict[str, Any]]:
    """All rows, in an order of their own."""
    found: list[dict[str, Any]] = DeltaTable(str(lake / table.path)).to_pyarrow_table().to_pylist()
    return sorted(found, key=repr)


def versions(lake: Path, tables: Iterable[Table] | None = None) -> dict[str, int]:
    """Delta's version of each table."""
    return {t.full_name: DeltaTable(str(lake / t.path)).version() for t in tables or TABLES.values()}


def assert_same(left: Path, right: Path) -> None:
    """Every row of every table that describes the traffic is in both lakes."""
    for table in DATA:
        assert rows(left, table) == rows(right, table), table.full_name


def last_batch(lake: Path, query: str, log: str = "commits") -> Path:
    """The newest file of a log in a query's checkpoint."""
    from pipeline.streaming.storage.lake import Lake  # noqa: PLC0415 - loads Spark

    return max(
        (path for path in Path(Lake.at(lake).checkpoint(query), log).iterdir() if path.name.isdigit()),
        key=lambda path: int(path.name),
    )
