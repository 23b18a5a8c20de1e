"""Reading Delta tables without a JVM: by Arrow's own code, and only what lies in the table's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.dashboard.sql import query
from pipeline.delta_dataset import open_dataset
from pipeline.errors import UserError
from pipeline.tables import FINDINGS
from tests.pipeline.rows import row, write


def test_no_python_object_is_in_the_hands_of_arrows_threads(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"day": ["a b", "50%", "x/y"], "n": [1, 2, 3]}), partition_by=["day"])
    dataset = open_dataset(tmp_path)
    filesystem = dataset.filesystem
    while isinstance(filesystem, fs.SubTreeFileSystem):
        filesystem = filesystem.base_fs
    assert type(filesystem) is fs.LocalFileSystem
    assert sorted(dataset.to_table().to_pylist(), key=str) == [
        {"day": "50%", "n": 2}, {"day": "a b", "n": 1}, {"day": "x/y", "n": 3},
    ]  # fmt: skip


def test_a_folder_may_be_named_from_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(str(tmp_path / "a table"), pa.table({"n": [1]}))
    monkeypatch.chdir(tmp_path)
    assert open_dataset("a table").to_table().to_pylist() == [{"n": 1}]


def test_what_is_no_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        open_dataset(tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        "{file}",
        "file://{file}",
        "../../../other/{table}/{name}",
        "a/../../../../other/{table}/{name}",
        "%2e%2e/../../other/{table}/{name}",
        "http://h/{name}",
    ],
)
def test_a_log_does_not_lead_out_of_the_tables_folder(path: str, tmp_path: Path) -> None:
    write(tmp_path / "other", FINDINGS, [row(FINDINGS, finding_id="of another lake")])
    [file] = (tmp_path / "other" / FINDINGS.path).glob("*.parquet")
    lake = tmp_path / "lake"
    write(lake, FINDINGS, [row(FINDINGS, finding_id="1")])
    [log] = (lake / FINDINGS.path / "_delta_log").glob("*.json")
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    for entry in entries:
        if "add" in entry:
            entry["add"] |= {
                "path": path.format(file=file, name=file.name, table=FINDINGS.path),
                "size": file.stat().st_size,
            }
    log.write_text("\n".join(json.dumps(entry) for entry in entries))
    with pytest.raises(DeltaError, match="not in its folder"):
        open_dataset(lake / FINDINGS.path)
    with pytest.raises(UserError, match="not in its folder"):
        query(lake, "FROM gold.findings")
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--json"])
    assert isinstance(done.exception, UserError)
    assert "another" not in done.stdout
