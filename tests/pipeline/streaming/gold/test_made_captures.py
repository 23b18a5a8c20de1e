"""The stream finds in made captures what a diagnosis of them finds: the youngest rules, a cluster for each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.config.settings import StreamSettings
from pipeline.dashboard.sql import query
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from tests.pipeline.analysis.rules.kafka.positions.beyond_stages import beyond
from tests.pipeline.analysis.rules.kafka.positions.loops import loops, records_again
from tests.pipeline.analysis.rules.kafka.positions.silent_stages import silent
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import (
    never_commits,
    out_of_range,
    owned,
    refused_once,
    since_refused,
)
from tests.pipeline.streaming.streamed import streamed_lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MADE = (
    silent(), silent(refused_at=60), out_of_range(), owned(), refused_once(), since_refused(), never_commits(),
    beyond(), loops(records_again, ill=70),
)  # fmt: skip
COLUMNS = ("rule", "severity", "state", "subject", "summary", "advice")


@pytest.mark.parametrize("local_row_limit", [0, 1_000_000])
def test_the_stream_finds_what_a_diagnosis_finds(spark: SparkSession, tmp_path: Path, local_row_limit: int) -> None:
    captures = []
    for number, stage in enumerate(MADE, start=1):
        captures.append(tmp_path / f"{number}.pcap")
        captures[-1].write_bytes(stage.on(f"10.1.{number}.").pcap())
    landed = read_inputs([str(path) for path in captures])
    lake = streamed_lake(spark, tmp_path, landed.frames, StreamSettings(local_row_limit=local_row_limit))
    found = _in_any_order(query(lake, f"SELECT {', '.join(COLUMNS)} FROM gold.findings").to_pylist())
    assert found == _in_any_order(diagnose(landed, StreamSettings()).findings.select(COLUMNS).to_pylist())
    rules = {"stopped", "partition_dropped_from_commits", "rewound", "offset_reset", "stalled"}
    assert rules <= {row[0] for row in found}


def _in_any_order(rows: Iterable[dict[str, Any]]) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row.values())) for row in rows)
