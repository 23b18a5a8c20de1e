"""How do tables become a lake without a JVM? By delta-rs, all of them or none: beside it first, then renamed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema, write_deltalake

from pipeline.analysis.fit import schema_of
from pipeline.errors import UserError
from pipeline.tables import TABLES, WRITTEN_BY_DIAGNOSE, Table


def refuse_lake(root: Path) -> None:
    """Refuse a folder that holds anything else than a lake which was written here.

    Raises:
        UserError: the folder belongs to a job, or to somebody else.
    """
    if not root.exists():
        return
    if not root.is_dir():
        raise UserError(f"{root} is a file: name a folder for the lake")
    if (root / "_checkpoints").exists():
        raise UserError(f"{root} is the lake of `wirelake stream`, which alone writes to it: name another folder")
    if not (root / WRITTEN_BY_DIAGNOSE).exists() and any(root.iterdir()):
        raise UserError(f"{root} is not empty, and no lake of `wirelake diagnose`: name another folder")


def write_lake(root: Path, tables: Mapping[str, pa.Table]) -> None:
    """Write a lake, in the place of one that was written here before.

    Args:
        root: its folder.
        tables: by full name; those of the registry that are missing are empty.

    Raises:
        UserError: the folder is not ours to write, or cannot be written.
    """
    refuse_lake(root)
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{root.name}.", dir=root.parent))
        try:
            for table in TABLES.values():
                _write(fresh, table, tables.get(table.full_name))
            (fresh / WRITTEN_BY_DIAGNOSE).touch()
            _put_in_place(fresh, root)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    except OSError as error:
        raise UserError(f"cannot write the lake {root}: {error.strerror or error}") from error


def _write(root: Path, table: Table, rows: pa.Table | None) -> None:
    place = str(root / table.path)
    schema = schema_of(table)
    fields = [
        Field(field.name, field.type, nullable=column.nullable, metadata={"comment": column.comment})
        for column, field in zip(table.columns, Schema.from_arrow(schema).fields, strict=True)
    ]
    DeltaTable.create(
        place, Schema(fields), partition_by=list(table.partition_by), description=table.comment, name=table.full_name
    )
    if rows is not None and rows.num_rows:
        target = pa.schema(
            [field.with_nullable(column.nullable) for column, field in zip(table.columns, schema, strict=True)]
        )
        write_deltalake(place, rows.cast(target), mode="append")


def _put_in_place(fresh: Path, root: Path) -> None:
    if root.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{root.name}.", dir=root.parent))
        root.rename(old / root.name)
        fresh.rename(root)
        shutil.rmtree(old, ignore_errors=True)
    else:
        fresh.rename(root)
