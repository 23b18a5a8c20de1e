"""Reading Delta tables without a JVM: by Arrow's own code, and from wherever one is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import fs

from pipeline.lake.delta_reader import open_dataset
from pipeline.tables import FINDINGS
from tests.pipeline.rows import row, write


def test_no_python_object_is_in_the_hands_of_arrows_threads(tmp_path: Path) -> None:
    days = pa.table({"day": ["a b", "50%", "x/y"], "n": [1, 2, 3]})
    write_deltalake(str(tmp_path / FINDINGS.path), days, partition_by=["day"])
    dataset = open_dataset(str(tmp_path), FINDINGS)
    assert dataset is not None
    filesystem = dataset.filesystem
    while isinstance(filesystem, fs.SubTreeFileSystem):
        filesystem = filesystem.base_fs
    assert type(filesystem) is fs.LocalFileSystem
    assert sorted(dataset.to_table().to_pylist(), key=str) == [
        {"day": "50%", "n": 2}, {"day": "a b", "n": 1}, {"day": "x/y", "n": 3},
    ]  # fmt: skip


def test_a_lake_may_be_named_from_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a lake", FINDINGS, [row(FINDINGS, finding_id="1")])
    monkeypatch.chdir(tmp_path)
    dataset = open_dataset("a lake", FINDINGS)
    assert dataset is not None
    assert dataset.to_table().column("finding_id").to_pylist() == ["1"]


def test_where_no_table_is_there_is_none(tmp_path: Path) -> None:
    assert open_dataset(str(tmp_path), FINDINGS) is None
