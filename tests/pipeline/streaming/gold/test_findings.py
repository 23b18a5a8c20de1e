"""Rules find the same in a lake whose rows are read at once as in one that is read file by file as they ask."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.catalog_tables import known_catalog
from pipeline.config.settings import StreamSettings
from pipeline.streaming.gold import findings
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import BROKERS, DUPLICATE_FLOWS, EXCHANGES, TOPICS
from tests.pipeline.lakes import diagnosed_lake
from tests.pipeline.rows import arrow, row


@pytest.mark.parametrize("copied", [False, True])
def test_few_rows_and_many_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: bool) -> None:
    nothing: Any = None  # of Spark is needed where the lake is on this machine
    rows = LakeIO(nothing, Lake.at(diagnosed_lake(tmp_path, "stuck_commit")))
    catalog = known_catalog(rows.read(TableScan(BROKERS)), rows.read(TableScan(TOPICS)))
    if copied:
        scan = TableScan(EXCHANGES, columns=("connection_id", "ts", "client_id", "api_name"))
        commits = (each for each in rows.read(scan).to_pylist() if each["api_name"] == "OffsetCommit")
        one = next(each for each in commits if each["client_id"] == "billing-1")
        rows.append(_copies(one["connection_id"], one["ts"]), DUPLICATE_FLOWS)
        rows.forget_copies()
    at_once = findings._find_all(rows, catalog, StreamSettings().findings, 0)
    monkeypatch.setattr(findings, "_FEW", 0)
    by_file = findings._find_all(rows, catalog, StreamSettings().findings, 0)
    assert [asdict(one) for one in at_once.findings] == [asdict(one) for one in by_file.findings]
    assert ("stuck_commit" in {one.rule for one in at_once.findings}) is not copied


def _copies(connection: str, first: Any) -> pa.Table:
    """One connection, of one hour."""
    hour = first.replace(minute=0, second=0, microsecond=0)
    return arrow(DUPLICATE_FLOWS, [row(DUPLICATE_FLOWS, connection_id=connection, hour=hour, date=hour.date())])
