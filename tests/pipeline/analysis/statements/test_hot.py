"""Statements read of many bodies at once are those that are read of each by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline.analysis.pairing import completed, exchanges
from pipeline.analysis.statements import exchanges as statements_of_exchanges
from pipeline.analysis.statements import kafka
from pipeline.analysis.statements.hot import APIS, hot_statements
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded
from pipeline.embedded.inputs import read_inputs
from pipeline.lake.arrow import arrow_array, int_values
from tests.captures.record import HERE, INCIDENTS_DIR
from tests.hostile.judging.bodies import MUTATIONS, mutated

RECORDED = [
    *(HERE / f"{name}.pcap" for name in ("healthy", "old_format", "changing_hands")),
    *(INCIDENTS_DIR / f"{name}.pcap" for name in ("stale_readers", "faulty_writers", "unsure_writers", "evicted")),
]
Found = dict[str, dict[str, list[dict[str, Any]]]]


@pytest.fixture(autouse=True)
def of_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "KERNEL_AFTER", 1)
    monkeypatch.setattr(kafka, "COMPILING_AFTER", 1)


@cache
def inputs(capture: Path) -> pa.RecordBatch:
    """What statements are read of."""
    settings = StreamSettings()
    frames = decoded(read_inputs([str(capture)]).frames)
    paired = completed(exchanges(frames, settings.response_timeout, settings.abandon_timeout))
    (batch,) = statements_of_exchanges.inputs(paired).combine_chunks().to_batches()
    return batch


def stated(found: Iterable[tuple[str, pa.RecordBatch]]) -> Found:
    """By kind and exchange the rows, in their order."""
    rows: Found = defaultdict(lambda: defaultdict(list))
    for name, batch in found:
        for row in batch.to_pylist():
            rows[name][row["exchange_id"]].append(row)
    return rows


def read_at_once(batch: pa.RecordBatch) -> float:
    """Which part of the exchanges of these apis is."""
    is_hot = np.isin(int_values(batch.column("api_key")), list(APIS))
    return float(hot_statements(batch)[1][is_hot].mean())


@pytest.mark.parametrize("capture", RECORDED, ids=lambda path: path.stem)
def test_recorded_ones(capture: Path) -> None:
    batch = inputs(capture)
    assert read_at_once(batch) == 1
    assert stated(kafka.statements(batch)) == stated(kafka.one_by_one(batch))


def changed(batch: pa.RecordBatch, change: str, seed: int) -> pa.RecordBatch:
    """The same with other bodies."""
    chance = Random(seed)
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name in ("request_body", "response_body"):
        bodies = [
            mutated(chance, one, (change,)) if chance.random() < 0.7 else one for one in columns[name].to_pylist()
        ]
        columns[name] = arrow_array([one if chance.random() < 0.98 else None for one in bodies], pa.string())
    versions = columns["api_version"].to_pylist()
    columns["api_version"] = arrow_array([one if chance.random() < 0.9 else None for one in versions], pa.int32())
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def cases() -> Iterator[Any]:
    for number, change in enumerate(MUTATIONS):
        for capture in RECORDED[:4]:
            yield pytest.param(capture, change, number, id=f"{capture.stem}-{change}")


@pytest.mark.parametrize(("capture", "change", "seed"), list(cases()))
def test_bodies_that_nobody_should_send(capture: Path, change: str, seed: int) -> None:
    batch = changed(inputs(capture).slice(0, 300), change, seed)
    assert stated(kafka.statements(batch)) == stated(kafka.one_by_one(batch))
    assert read_at_once(batch) > 0.05


def test_one_that_is_given_back_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = inputs(RECORDED[0])
    of_each = [
        one.replace('"partition"', '"partition":[],"partition"', 1) for one in batch.column("request_body").to_pylist()
    ]
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns["request_body"] = arrow_array([of_each[0], *batch.column("request_body").to_pylist()[1:]], pa.string())
    broken = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    assert stated(kafka.statements(broken)) == stated(kafka.one_by_one(broken))
