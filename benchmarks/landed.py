"""How is there more to read than was captured? Landing files are copied as another agent would have landed them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import traffic
from decoder.kafka.apis import ApiKey
from pipeline.capture.landing.stores import LocalStore
from pipeline.capture.landing.writer import LandingWriter
from pipeline.capture.runs.reading import read_capture

_ID_LENGTH = 16
"""Characters of a connection's id; an exchange's begins with them."""
_APART = timedelta(minutes=2)
"""From the load of one cluster to that of the next."""
_NAMING = [int(ApiKey.METADATA), int(ApiKey.DESCRIBE_CLUSTER)]
"""What names a cluster."""


def recorded(landing: Path) -> pa.Table:
    """The frames of the recorded minute of load, which are landed there."""
    read_capture([traffic.capture()], landing)
    return rows_of(landing)


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
    return _with(rows, news)


def of_another_cluster(rows: pa.Table, number: int, later: timedelta) -> pa.Table:
    """The same traffic of a cluster of its own: a log that repeats its offsets would look like one that was cut off.

    Frames that name the cluster are left out, so that its server's address stands for it.

    Args:
        rows: landed frames.
        number: of the cluster.
        later: after the rows.
    """
    named = pc.and_(pc.equal(rows["protocol"], "kafka"), pc.is_in(rows["api_key"], pa.array(_NAMING, pa.int32())))
    some = another(rows.filter(pc.invert(pc.fill_null(named, False))), f"agent-{number}", later)
    return _with(some, {"server_ip": pa.repeat(f"10.1.{number >> 8}.{number & 255}", len(some))})


def land_clusters(load: pa.Table, frames: int, landing: Path) -> None:
    """Land as many clusters with the same load, each by an agent of its own, as make about this number of frames.

    They come one after the other: else they are copies of each other, of which one counts, and gold has little to do.
    """
    for number in range(max(1, round(frames / len(load)))):
        land(of_another_cluster(load, number, _APART * number), landing)


def _with(rows: pa.Table, news: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    return pa.table([news.get(name, rows[name]) for name in rows.column_names], schema=rows.schema)


def land(rows: pa.Table, landing: Path) -> None:
    """Write the landing files of one agent, as it writes them."""
    with LandingWriter(LocalStore(landing), rows["agent_id"][0].as_py()) as writer:
        writer.add_table(rows)
        writer.publish()


def _renamed(ids: pa.ChunkedArray, agent_id: str) -> pa.ChunkedArray:
    encoded = ids.combine_chunks().dictionary_encode()
    rename: Callable[[str], str] = lambda name: hashlib.sha256(f"{agent_id}/{name}".encode()).hexdigest()[:_ID_LENGTH]  # noqa: E731
    return pa.array([rename(name.as_py()) for name in encoded.dictionary], pa.string()).take(encoded.indices)
