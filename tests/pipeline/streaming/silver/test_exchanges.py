"""Pairing by Spark's workers gives what this process gives, and what is on its way there goes through unharmed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pipeline.analysis.fit import fit
from pipeline.config.settings import StreamSettings
from pipeline.streaming.silver.exchanges import complete_of, pair_apart, pair_here, waiting_of
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import LakeIO, frame_of
from pipeline.tables import EXCHANGES_WITH_BODIES, PENDING_EXCHANGES
from tests.pipeline.analysis.test_pairing import CONVERSATION, half, table

pytestmark = pytest.mark.spark


def content(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=repr)


def test_here_and_apart_the_same_halves_find_each_other(spark: SparkSession, tmp_path: Path) -> None:
    settings = StreamSettings()
    halves = table([*CONVERSATION, *CONVERSATION[:2], half("end", "request", 2000, 9), half(None, "response", 3, 7)])
    complete, waiting = pair_here(halves, settings)
    frame = frame_of(spark, halves, PENDING_EXCHANGES.columns)
    paired = pair_apart(LakeIO(spark, Lake.at(tmp_path)), frame, frame, settings)
    assert complete.num_rows > 0 < waiting.num_rows
    assert content(fit(complete_of(paired).toArrow(), EXCHANGES_WITH_BODIES)) == content(complete)
    assert content(fit(waiting_of(paired).toArrow(), PENDING_EXCHANGES)) == content(waiting)
