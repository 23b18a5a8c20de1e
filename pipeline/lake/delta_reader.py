"""The files that a table of the lake consists of, all of them in its folder: Delta without a JVM."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs

from pipeline.errors import UserError
from pipeline.lake.delta_log import LOG, delta_table, unreadable
from pipeline.lake.drift import Stated, demand_readable
from pipeline.lake.former_layout import column_sql, current_rows, current_schema, is_former, name_in
from pipeline.lake.layout import demand_layout, demand_types
from pipeline.lake.path_checks import why_unreadable
from pipeline.tables import Table

T = TypeVar("T")

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.(.*)")
_PARTS = re.compile(r"(\d{10}\.\d{10}\.)?parquet")
"""How checkpoints without sidecars are named."""
_MOST_DECODINGS = 8
_READ_AS_PATTERN = re.compile(r"[*?\[\]{}=]")
"""In a folder's name DuckDB takes these for a pattern of names, or for the column of a partition."""
_DUCKDB_TYPES = {"string": "VARCHAR", "binary": "BLOB", "timestamp": "TIMESTAMPTZ"}
"""DuckDB's name of a type of the registry, where it has another one."""


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Parquet files that say by themselves what is in a table.

    Attributes:
        paths: absolute, the newest first.
        by_day: whether their folders say the date of their rows.
        differ: whether the oldest has not got the columns of the newest.
    """

    paths: tuple[str, ...]
    by_day: bool
    differ: bool

    def sql(self, paths: str) -> str:
        """What DuckDB calls their rows, where ``paths`` is its name of a list of them."""
        partitions = "true, hive_types = {'date': DATE}" if self.by_day else "false"
        return f"read_parquet({paths}, union_by_name = {str(self.differ).lower()}, hive_partitioning = {partitions})"


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table of the lake as it was when it was opened; it never changes, and threads may share it.

    Attributes:
        schema: of its columns, in the order of the table.
        files: what it consists of; None if it must be read as ``dataset``.
        dataset: the same as a ``pyarrow.dataset.Dataset``; None if ``files`` are to be read.
        is_former: whether it was written in layout 1, so that columns and values may have their former names.
    """

    schema: pa.Schema
    files: DataFiles | None
    dataset: Any | None
    is_former: bool = False

    def rows_sql(self, table: Table, files: DataFiles) -> str:
        """A query for the rows in its ``files``; ``$paths`` in it stands for their list."""
        return f"SELECT {self.columns_sql(table)} FROM {files.sql('$paths')}"  # noqa: S608 - our names

    def columns_sql(self, table: Table) -> str:
        """The columns of ``table`` for a SELECT; those that the files of an older release lack are null."""
        known = set(self.schema.names)
        renamed = {name: one for one in table.columns if one.has_former and (name := name_in(known, one))}
        there = [
            column_sql(name, renamed[name])
            if self.is_former and name in renamed
            else '"' + name.replace('"', '""') + '"'
            for name in self.schema.names
        ]
        known |= {one.name for one in renamed.values()}
        lacking = [f'NULL::{duckdb_type(one.type)} AS "{one.name}"' for one in table.columns if one.name not in known]
        return ", ".join([*there, *lacking])


def duckdb_type(name: str) -> str:
    """DuckDB's name of a type of the registry."""
    inner = name.removeprefix("array<").removesuffix(">")
    return f"{_DUCKDB_TYPES.get(inner, inner)}{'[]' if name.startswith('array<') else ''}"


def open_table(lake: str, table: Table) -> OpenTable | None:
    """A table of the lake for DuckDB; None if it is not there.

    DuckDB reads files some ten times as fast as a data set of Arrow, since it reads of a column only what the other
    columns have not ruled out. So it gets the files wherever they are the table: in a folder of this machine, with a
    log that names each partition as the file's folder does.

    Args:
        lake: the lake's folder or URL.
        table: one of :mod:`pipeline.tables`.

    Raises:
        UserError: see :func:`open_dataset`.
    """
    found = _found(lake, table)
    if found is None:
        return None
    plain = _plain_files(found)
    if plain is not None:
        return plain
    dataset = _dataset(found, lake)
    return OpenTable(dataset.schema, None, dataset, found.is_former)


@dataclass(frozen=True, slots=True)
class _Found:
    """A table with its log, under the name by which it is in the lake."""

    delta: DeltaTable
    actions: pa.Table
    folder: str | None
    table: Table
    is_former: bool


def open_dataset(lake: str, table: Table) -> Any | None:
    """A table of the lake as a ``pyarrow.dataset.Dataset``; None if it is not there.

    The log is a list of paths, which a stranger's lake may lead anywhere: it is opened only if everything that it
    names is in the table's folder, and nothing on the way there is a link.

    Files of a folder are opened by Arrow's own file system. The one that deltalake hands to Arrow by default is written
    in Python, so that the bytes it reads are Python objects, and the last of Arrow's threads to let go of them takes
    the interpreter's lock to do so. A thread that asks for it while the interpreter ends is unwound by Python, through
    a C++ destructor that must not be: the process dies by SIGABRT, after all its work is done.

    Args:
        lake: the lake's folder or URL.
        table: one of :mod:`pipeline.tables`.

    Raises:
        UserError: it cannot be read, it leads out of its folder, or see :func:`pipeline.lake.layout.demand_layout`.
    """
    found = _found(lake, table)
    return None if found is None else _dataset(found, lake)


def read_table(lake: str, table: Table) -> pa.Table | None:
    """All rows of a table of the lake; None if it is not there.

    Args:
        lake: the lake's folder or URL.
        table: one of :mod:`pipeline.tables`.

    Raises:
        UserError: as :func:`open_dataset`, or one of its files is damaged or missing.
    """
    rows = _read(lake, table, lambda dataset: dataset.to_table())
    return None if rows is None else current_rows(rows, table)


def count_rows(lake: str, table: Table) -> int | None:
    """How many rows a table of the lake has, as its files state; arguments and errors as of :func:`read_table`."""
    return _read(lake, table, lambda dataset: int(dataset.count_rows()))


def _read(lake: str, table: Table, read: Callable[[Any], T]) -> T | None:
    dataset = open_dataset(lake, table)
    try:
        return None if dataset is None else read(dataset)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(lake, table, error) from error


def schema_stated(lake: str, table: Table) -> pa.Schema | None:
    """A table's columns as its log states them, whatever its files hold; None if it is not there.

    Args:
        lake: the lake's folder.
        table: one of :mod:`pipeline.tables`.

    Raises:
        UserError: its log cannot be read, or see :mod:`pipeline.lake.layout`.
    """
    try:
        held = delta_table(lake, table)
        schema, stated = pa.schema(held.schema().to_arrow()), Stated.of(held)
    except TableNotFoundError:
        return schema_stated(lake, table.former) if table.former else None
    except UserError:
        raise
    except Exception as error:  # delta-rs has one error for each kind of what it does not read
        raise unreadable(lake, table, error) from error
    demand_layout(lake, stated.properties)
    demand_readable(lake, table, stated)
    schema = current_schema(schema, table) if is_former(stated.properties) else schema
    demand_types(lake, table, schema)
    return schema


def _found(lake: str, table: Table) -> _Found | None:
    found = _found_as(lake, table)
    return _found_as(lake, table.former) if found is None and table.former else found


def _found_as(lake: str, table: Table) -> _Found | None:
    folder = _local(lake)
    try:
        if folder is not None:
            if not _has_log(folder, table):
                return None
            _demand_own_log(folder, table)
        delta = delta_table(folder or lake, table)
        stated = Stated.of(delta)
        demand_layout(lake, stated.properties)
        demand_readable(lake, table, stated)
        actions = pa.table(delta.get_add_actions())
        _demand_own_files(actions, folder, table)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(lake, table, error) from error
    return _Found(delta, actions, folder, table, is_former(stated.properties))


def _has_log(folder: str, table: Table) -> bool:
    """Whether a table is there.

    Raises:
        UserError: this user may not look, or there are files of a table without its log.
    """
    place = f"{folder}/{table.path}"
    try:
        os.lstat(f"{place}/{LOG}")
    except PermissionError as error:
        raise UserError(why_unreadable(place) or f"cannot read {place}: permission denied") from error
    except (FileNotFoundError, NotADirectoryError):
        if any(_data_files(place)):
            raise UserError(
                f"cannot read {place}: it has Parquet files, but no log ({LOG}): it was written in part, or damaged. "
                "Write the lake again, or bring the log back from a backup"
            ) from None
        return False
    return True


def _data_files(place: str) -> Iterator[str]:
    try:
        with os.scandir(place) as entries:
            yield from (one.name for one in entries if one.name.endswith(".parquet") or one.name.startswith("date="))
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError as error:
        raise UserError(why_unreadable(place) or f"cannot read {place}: permission denied") from error


def _plain_files(found: _Found) -> OpenTable | None:
    """The table as its files; None if they are not all of it, or cannot be opened: then Arrow says why."""
    try:
        partitions = found.delta.metadata().partition_columns
        schema = pa.schema(found.delta.schema().to_arrow())
    except Exception:  # delta-rs has one error for each kind of what it does not read
        return None
    if found.folder is None or partitions not in ([], ["date"]) or not found.actions.num_rows:
        return None
    needed = ["path", "modification_time", *(["partition"] if partitions else [])]  # statistics are long
    actions = found.actions.select(needed).to_pylist()
    for action in actions:
        path = PurePosixPath(action["path"])
        day = f"date={action['partition']['date']}" if partitions else "."
        if str(path.parent) != day or _READ_AS_PATTERN.search(f"{found.folder}/{path.name}"):
            return None
    actions.sort(key=lambda action: (action["modification_time"], action["path"]), reverse=True)
    paths = tuple(f"{found.folder}/{found.table.path}/{action['path']}" for action in actions)
    try:
        newest, oldest = (set(pq.read_schema(path).names) for path in (paths[0], paths[-1]))
    except (OSError, pa.ArrowException):
        return None
    there = newest | oldest | set(partitions)
    files = DataFiles(paths, bool(partitions), newest != oldest)
    return OpenTable(pa.schema([field for field in schema if field.name in there]), files, None, found.is_former)


def _dataset(found: _Found, lake: str) -> Any:
    try:
        if not found.actions.num_rows:
            import pyarrow.dataset as ds  # noqa: PLC0415 - loads pandas

            return ds.dataset(pa.schema(found.delta.schema().to_arrow()).empty_table())
        if found.folder is None:
            return found.delta.to_pyarrow_dataset()
        files = fs.SubTreeFileSystem(f"{found.folder}/{found.table.path}", fs.LocalFileSystem())
        return found.delta.to_pyarrow_dataset(filesystem=files)
    except Exception as error:  # e.g. a feature that delta-rs does not read: it has one error for each kind
        raise unreadable(lake, found.table, error) from error


def _local(lake: str) -> str | None:
    """The lake's folder without links; None if it is not on this machine."""
    if "://" not in lake:
        return os.path.realpath(lake)
    url = urlsplit(lake)
    return os.path.realpath(unquote(url.path)) if url.scheme.lower() == "file" else None


def _demand_own_log(folder: str, table: Table) -> None:
    log = f"{folder}/{table.path}/{LOG}"
    if os.path.realpath(log) != log:
        raise _leaves(table, f"{table.path}/{LOG} is a link, or is behind one")
    newest = ""
    for entry in os.scandir(log):
        if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
            raise _leaves(table, f"{LOG}/{entry.name} is a link or no file")
        if checkpoint := _CHECKPOINT.fullmatch(entry.name):
            if not _PARTS.fullmatch(checkpoint[1]):
                raise _with_sidecars(table)
            newest = max(newest, entry.path)
    if newest and _names_sidecars(newest):
        raise _with_sidecars(table)


def _names_sidecars(checkpoint: str) -> bool:
    """Whether a row has one; delta-rs writes the column in any case."""
    with pq.ParquetFile(checkpoint) as file:
        if "sidecar" not in file.schema_arrow.names:
            return False
        return any(batch.column(0).null_count < batch.num_rows for batch in file.iter_batches(columns=["sidecar"]))


def _demand_own_files(actions: pa.Table, folder: str | None, table: Table) -> None:
    paths = [str(path) for path in actions.column("path").to_pylist()]
    parents: set[str] = set()
    for path in paths:
        plain = _decoded(path)
        if plain is None or plain.startswith(("/", "\\")) or _SCHEME.match(plain) or ".." in re.split(r"[/\\]", plain):
            raise _leaves(table, f"its log names {path!r}")
        if folder is not None:
            file = f"{folder}/{table.path}/{unquote(path)}"
            parents.add(str(PurePosixPath(file).parent))
            try:
                mode = os.lstat(file).st_mode
            except (FileNotFoundError, NotADirectoryError):
                continue  # the query reports it if it reads the file
            if not stat.S_ISREG(mode):
                raise _leaves(table, f"{path!r} is a link or no file")
    for parent in parents:
        if os.path.realpath(parent) != parent:
            raise _leaves(table, f"{parent!r} is a link, or is behind one")


def _decoded(path: str) -> str | None:
    """A path without percent-encoding, of whatever depth; None if that does not end."""
    for _ in range(_MOST_DECODINGS):
        if (plain := unquote(path)) == path:
            return plain
        path = plain
    return None


def _leaves(table: Table, why: str) -> UserError:
    return UserError(
        f"{table.full_name} leads out of its folder: {why}. It is not read: somebody else may have made it"
    )


def _with_sidecars(table: Table) -> UserError:
    return UserError(
        f"{table.full_name} has a checkpoint with sidecars, which `wirelake` does not write and which may lead out of "
        "its folder. It is not read"
    )
