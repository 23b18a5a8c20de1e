"""How is there more to read than was captured? Landing files are copied as another agent would have landed them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_ID_LENGTH = 16
"""Characters of a connection's id; an exchange's begins with them."""


def rows_of(landing: Path) -> pa.Table:
    """The frames of a landing zone in the order in which they landed."""
    files = sorted(landing.glob("date=*/*.parquet"))
    return pa.concat_tables(pq.ParquetFile(file).read() for file in files)


def another(rows: pa.Table, agent_id: str, later: timedelta) -> pa.Table:
    """The same traffic, seen by another agent on other connections so much later: the lake takes it for news."""
    connections = _renamed(rows["connection_id"], agent_id)
    rest = pc.utf8_slice_codeunits(rows["exchange_id"], _ID_LENGTH)
    shift = pa.scalar(later, pa.duration("us"))
    news = {
        "agent_id": pa.repeat(agent_id, len(rows)),
        "connection_id": connections,
        "exchange_id": pc.binary_join_element_wise(connections, rest, ""),
        "flow_id": _renamed(rows["flow_id"], agent_id),
        "ts": pc.add(rows["ts"], shift),
        "ts_end": pc.add(rows["ts_end"], shift),
    }
    columns = [news.get(name, rows[name]) for name in rows.column_names]
    return pa.table(columns, schema=rows.schema)


def land(rows: pa.Table, landing: Path) -> None:
    """Write a landing file, whole as it appears."""
    begun = pc.min(rows["ts"]).as_py()
    folder = landing / f"date={begun:%Y-%m-%d}"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{rows['agent_id'][0].as_py()}-{int(begun.timestamp() * 1e6)}-0000.parquet"
    pq.write_table(rows, folder / f".{name}", compression="zstd")
    (folder / f".{name}").rename(folder / name)


def _renamed(ids: pa.ChunkedArray, agent_id: str) -> pa.ChunkedArray:
    encoded = ids.combine_chunks().dictionary_encode()
    rename: Callable[[str], str] = lambda name: hashlib.sha256(f"{agent_id}/{name}".encode()).hexdigest()[:_ID_LENGTH]  # noqa: E731
    return pa.array([rename(name.as_py()) for name in encoded.dictionary], pa.string()).take(encoded.indices)
