"""Lakes of strangers: logs that name files elsewhere, and links. No reader without a JVM leaves a table's folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipeline.commands.findings import read_findings
from pipeline.dashboard.sql import connect, query
from pipeline.errors import UserError
from pipeline.tables import FINDINGS
from tests.pipeline.rows import row, write

FIRST = "_delta_log/00000000000000000000.json"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table's folder, beside another lake with a secret: ``outside``."""
    write(tmp_path / "outside", FINDINGS, [row(FINDINGS, finding_id="SECRET")])
    write(tmp_path / "lake", FINDINGS, [row(FINDINGS, finding_id="ours")])
    return tmp_path / "lake" / FINDINGS.path


def outside(table: Path) -> Path:
    return table.parents[2] / "outside" / FINDINGS.path


def secret(table: Path) -> Path:
    return next(outside(table).glob("*.parquet"))


def rewrite(table: Path, change: Callable[[dict[str, Any]], None]) -> None:
    log = table / FIRST
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for action in actions:
        change(action)
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions), encoding="utf-8")


def name(table: Path, path: str) -> None:
    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"] |= {"path": path, "size": secret(table).stat().st_size}

    rewrite(table, change)


def assert_refused(table: Path, words: str) -> None:
    lake = table.parents[1]
    readers: tuple[Callable[[], object], ...] = (
        lambda: query(lake, "FROM gold.findings"),
        lambda: connect(lake),
        lambda: read_findings(lake),
        lambda: query(f"file://{lake}", "FROM gold.findings"),
    )
    for read in readers:
        with pytest.raises(UserError, match=words) as caught:
            read()
        assert "gold.findings" in str(caught.value) or str(FINDINGS.path) in str(caught.value)
        assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "{file}",
        "/{file}",
        "file://{file}",
        "file:{file}",
        "FILE://{file}",
        "../../../outside/gold/findings/{name}",
        "x/../../../../outside/gold/findings/{name}",
        "%2e%2e/%2e%2e/%2e%2e/outside/gold/findings/{name}",
        "..%2F..%2F..%2Foutside%2Fgold%2Ffindings%2F{name}",
        "%252e%252e/%252e%252e/%252e%252e/outside/gold/findings/{name}",
        "..\\..\\..\\outside\\gold\\findings\\{name}",
        "%2Fetc%2Fpasswd",
        "http://127.0.0.1:9/x.parquet",
        "s3://bucket/x.parquet",
        "abfss://c@127.0.0.1/x.parquet",
        "memory:///x.parquet",
        "%" + "25" * 30 + "2e/x.parquet",
    ],
)
def test_a_path_that_leads_out_is_refused(table: Path, path: str) -> None:
    name(table, path.format(file=secret(table), name=secret(table).name))
    assert_refused(table, "gold.findings leads out of its folder")


def _file(table: Path) -> None:
    (ours,) = table.glob("*.parquet")
    ours.unlink()
    ours.symlink_to(secret(table))
    name(table, ours.name)


def _folder(table: Path) -> None:
    (table / "date=1").symlink_to(outside(table))
    name(table, f"date=1/{secret(table).name}")


def _log(table: Path) -> None:
    shutil.rmtree(table / "_delta_log")
    (table / "_delta_log").symlink_to(outside(table) / "_delta_log")


def _commit(table: Path) -> None:
    (table / FIRST).unlink()
    (table / FIRST).symlink_to(outside(table) / FIRST)


def _whole(table: Path) -> None:
    shutil.rmtree(table)
    table.symlink_to(outside(table))


@pytest.mark.parametrize("link", [_file, _folder, _log, _commit, _whole])
def test_a_link_is_not_followed(table: Path, link: Callable[[Path], None]) -> None:
    link(table)
    assert_refused(table, "gold.findings leads out of its folder: .* is a link")


def test_a_link_to_the_lake_itself_is_followed(table: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    assert query(tmp_path / "link", "SELECT finding_id FROM gold.findings").to_pylist() == [{"finding_id": "ours"}]


@pytest.mark.parametrize("name", ["00000000000000000000.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", None])
def test_sidecars_are_not_read(table: Path, name: str | None) -> None:
    """delta-rs reads one whose path is absolute wherever it is."""
    side = {"path": str(secret(table)), "sizeInBytes": 1, "modificationTime": 0}
    if name is not None:
        (table / "_delta_log" / name).write_text(json.dumps({"sidecar": side}), encoding="utf-8")
    else:
        checkpoint = table / "_delta_log" / "00000000000000000000.checkpoint.parquet"
        pq.write_table(pa.table({"sidecar": [side]}), checkpoint)
    assert_refused(table, "gold.findings has a checkpoint with sidecars")


def test_a_checkpoint_of_delta_rs_is_read(table: Path, tmp_path: Path) -> None:
    DeltaTable(str(table)).create_checkpoint()
    assert list((table / "_delta_log").glob("*.checkpoint.parquet"))
    assert query(tmp_path / "lake", "SELECT finding_id FROM gold.findings").to_pylist() == [{"finding_id": "ours"}]


def test_a_deletion_vector_elsewhere_is_not_read(table: Path) -> None:
    vector = {"storageType": "p", "pathOrInlineDv": "/etc/hostname", "offset": 1, "sizeInBytes": 4, "cardinality": 1}

    def change(action: dict[str, Any]) -> None:
        if "protocol" in action:
            features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
        if "add" in action:
            action["add"]["deletionVector"] = vector

    rewrite(table, change)
    with pytest.raises(UserError, match=r"cannot read .*deletionVectors"):
        query(table.parents[1], "FROM gold.findings")
