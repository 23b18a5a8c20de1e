"""Exchanges find the bodies of their frames: all at once or some at a time, wherever the machine's clock is set to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.fit import fit
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.streaming.silver import bodies
from pipeline.streaming.silver.bodies import exchanges_with_bodies, together
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import EXCHANGES, EXCHANGES_WITH_BODIES
from tests.paths import CAPTURES, ROOT
from tests.pipeline.lakes import diagnosed_lake

NAMES = ("stuck_commit", "mongodb/troubled_mongodb")
NOTHING: Any = None
"""Of Spark is needed where the lake is on this machine."""
COUNTED = """
import sys
from pipeline.streaming.silver.bodies import exchanges_with_bodies, together
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import EXCHANGES
rows = together(exchanges_with_bodies(LakeIO(None, Lake.at(sys.argv[1])), TableScan(EXCHANGES)))
print(*(rows.num_rows - rows.column(name).null_count for name in ("request_body", "response_body")))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return diagnosed_lake(tmp_path_factory.mktemp("lake") / "lake", *NAMES)


@pytest.fixture(scope="module")
def wanted() -> list[str]:
    derived = diagnose(read_inputs([str(CAPTURES / f"{name}.pcap") for name in NAMES]), StreamSettings()).derived
    return content(derived.of(EXCHANGES_WITH_BODIES))


def content(rows: pa.Table) -> list[str]:
    return sorted(map(repr, fit(rows, EXCHANGES_WITH_BODIES).to_pylist()))


@pytest.mark.parametrize("at_once", [1, 100, 50_000])
def test_they_are_as_they_were_derived(
    place: Path, wanted: list[str], monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(bodies, "AT_ONCE", at_once)
    rows = LakeIO(NOTHING, Lake.at(place))
    pieces = list(exchanges_with_bodies(rows, TableScan(EXCHANGES)))
    assert (len(pieces) == 1) == (at_once == 50_000)
    assert content(together(pieces)) == wanted
    held = rows.read(TableScan(EXCHANGES))
    assert content(together(exchanges_with_bodies(rows, TableScan(EXCHANGES), held))) == wanted


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Auckland"])
def test_days_are_those_of_utc_wherever_the_machine_is(place: Path, wanted: list[str], zone: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, str(place)], capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "TZ": zone, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    requests, responses = map(int, done.stdout.split())
    assert requests == sum("'request_body': None" not in row for row in wanted) > 100
    assert responses == sum("'response_body': None" not in row for row in wanted) > 100
