"""How is a Delta table read without a JVM? As an Arrow dataset, whose files no Python code opens."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow import fs


def open_dataset(table: Path | str) -> Any:
    """The newest version of a Delta table as a ``pyarrow.dataset.Dataset``.

    Files of a folder are opened by Arrow's own file system. The one that deltalake hands to Arrow by default is written
    in Python, so that the bytes it reads are Python objects, and the last of Arrow's threads to let go of them takes
    the interpreter's lock to do so. A thread that asks for it while the interpreter ends is unwound by Python, through
    a C++ destructor that must not be: the process dies by SIGABRT, after all its work is done.

    Args:
        table: the table's folder, or its URL (deltalake's own file system reads that).

    Raises:
        TableNotFoundError: there is no Delta table.
        DeltaError: its log cannot be read, or names a file outside of the folder.
    """
    return dataset_of(DeltaTable(str(table)), table)


def dataset_of(delta: DeltaTable, table: Path | str) -> Any:
    """The same of a table that is open already."""
    if "://" in str(table):
        return delta.to_pyarrow_dataset()
    dataset: Any = delta.to_pyarrow_dataset(filesystem=fs.SubTreeFileSystem(str(table), fs.LocalFileSystem()))
    for name in dataset.files:
        if _is_outside(name):
            raise DeltaError(f"its log names a file that is not in its folder: {name}")
    return dataset


def _is_outside(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "://" in name
