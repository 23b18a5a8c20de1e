"""Makes rows of the landing zone of many frames without an object for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from decoder.model import Frame
from pipeline.capture.fast_path.lane_kernel import gather, put_exchange_ids
from pipeline.capture.fast_path.response_silence import UNKNOWN
from pipeline.capture.sessions.sides import Labels
from pipeline.lake.arrow import arrow_schema
from pipeline.tables import LANDING_COLUMNS

Ints = np.ndarray[Any, np.dtype[np.int64]]

SCHEMA = arrow_schema(LANDING_COLUMNS)
_DIRECTIONS = pa.array(["request", "response"])
_ID_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class Rows:
    """Frames as columns.

    Attributes:
        data: bytes that the frames point into.
        begin, size: of each frame in ``data``.
        which: number of each frame's connection.
        is_response: of each frame.
        seq, ts, ts_end, ordinal, api_key, api_version, correlation_id, flags: see decoder.model.Frame.
        idle_us: likewise, UNKNOWN for None.
    """

    data: np.ndarray[Any, np.dtype[np.uint8]]
    begin: Ints
    size: Ints
    which: Ints
    is_response: Ints
    seq: Ints
    ts: Ints
    ts_end: Ints
    ordinal: Ints
    api_key: Ints
    api_version: Ints
    correlation_id: Ints
    flags: Ints
    idle_us: Ints

    def at(self, numbers: Ints) -> Rows:
        """Some of the rows."""
        return Rows(self.data, *(getattr(self, name)[numbers] for name in _COLUMNS))

    def alone(self, numbers: Ints) -> Rows:
        """Some of the rows, with a copy of their bytes."""
        some = self.at(numbers)
        ends = np.cumsum(some.size)
        data = np.empty(int(some.size.sum()), np.uint8)
        gather(self.data, some.begin, some.size, ends, data)
        return replace(some, data=data, begin=ends - some.size)


class Row(NamedTuple):
    """A frame among rows: their connections' labels, its number, bytes, and capture time of the last byte (µs)."""

    rows: Rows
    labels: Sequence[Labels]
    number: int
    size: int
    ts_end: int

    def as_frame(self) -> Frame:
        """The frame alone."""
        return frames_of(self.rows.at(np.array([self.number])), self.labels)[0]


_COLUMNS = [name for name in Rows.__dataclass_fields__ if name != "data"]


def frames_of(rows: Rows, labels: Sequence[Labels]) -> list[Frame]:
    """The rows one by one; ``labels`` are those of each connection."""
    found = []
    for (
        begin, size, which, is_response, seq, ts, ts_end, ordinal, api_key, api_version, correlation_id, flags, idle_us,
    ) in zip(*(getattr(rows, name).tolist() for name in _COLUMNS), strict=True):  # fmt: skip
        label = labels[which]
        frame = Frame(
            agent_id=label.agent_id,
            connection_id=label.connection_id,
            exchange_id=f"{label.connection_id}-{ordinal}",
            seq=seq,
            direction="response" if is_response else "request",
            ts=ts,
            ts_end=ts_end,
            client_ip=label.client[0],
            client_port=label.client[1],
            server_ip=label.server[0],
            server_port=label.server[1],
            protocol=label.protocol,
            api_key=api_key,
            api_version=api_version,
            correlation_id=correlation_id,
            reply_to=None,
            size=size,
            frame=rows.data[begin : begin + size].tobytes(),
            flags=flags,
            flow_id=label.flow_id,
            payload_policy=label.payload_policy,
            idle_us=None if idle_us == UNKNOWN else idle_us,
        )
        found.append(frame)
    return found


def rows_by_id(rows: Rows, labels: Sequence[Labels]) -> Iterator[tuple[str, Row]]:
    """Each row with its exchange id."""
    columns = zip(rows.which.tolist(), rows.ordinal.tolist(), rows.size.tolist(), rows.ts_end.tolist(), strict=True)
    for number, (which, ordinal, size, ts_end) in enumerate(columns):
        yield f"{labels[which].connection_id}-{ordinal}", Row(rows, labels, number, size, ts_end)


def tables_of(held: Iterable[Row]) -> Iterator[pa.Table]:
    """As :func:`table_of`, for rows of several origins."""
    by_origin: dict[int, list[Row]] = {}
    for row in held:
        by_origin.setdefault(id(row.rows), []).append(row)
    for some in by_origin.values():
        yield table_of(some[0].rows.at(np.array([row.number for row in some])), some[0].labels)


def table_of(rows: Rows, labels: Sequence[Labels]) -> pa.Table:
    """A table of the landing zone's schema; ``labels`` are those of each connection."""
    count = len(rows.begin)
    which = pa.array(rows.which)

    def label(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind).take(which)

    columns = {
        "agent_id": pa.repeat(labels[0].agent_id, count),
        "connection_id": label([each.connection_id for each in labels], pa.string()),
        "exchange_id": _exchange_ids(rows, labels),
        "seq": pa.array(rows.seq),
        "direction": _DIRECTIONS.take(pa.array(rows.is_response)),
        "ts": _times(rows.ts),
        "ts_end": _times(rows.ts_end),
        "client_ip": label([each.client[0] for each in labels], pa.string()),
        "client_port": label([each.client[1] for each in labels], pa.int32()),
        "server_ip": label([each.server[0] for each in labels], pa.string()),
        "server_port": label([each.server[1] for each in labels], pa.int32()),
        "protocol": label([each.protocol for each in labels], pa.string()),
        "api_key": pa.array(rows.api_key.astype(np.int32)),
        "api_version": pa.array(rows.api_version.astype(np.int32)),
        "correlation_id": pa.array(rows.correlation_id),
        "reply_to": pa.nulls(count, pa.int64()),
        "size": pa.array(rows.size.astype(np.int32)),
        "frame": _frames(rows),
        "flags": pa.array(rows.flags.astype(np.int32)),
        "flow_id": label([each.flow_id for each in labels], pa.string()),
        "payload_policy": pa.repeat(labels[0].payload_policy, count),
        "idle_us": pa.array(rows.idle_us, mask=rows.idle_us == UNKNOWN),
    }
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _times(values: Ints) -> pa.Array:
    return pa.array(values).cast(SCHEMA.field("ts").type)


def _frames(rows: Rows) -> pa.Array:
    ends = np.cumsum(rows.size)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    gather(rows.data, rows.begin, rows.size, ends, out)
    return _binary(pa.binary(), ends, out)


def _exchange_ids(rows: Rows, labels: Sequence[Labels]) -> pa.Array:
    digits = np.searchsorted(_POWERS, rows.ordinal, side="right") + 1
    ends = np.cumsum(digits + _ID_CHARACTERS + 1)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    ids = np.frombuffer("".join(each.connection_id for each in labels).encode(), np.uint8)
    put_exchange_ids(ids, rows.which, rows.ordinal, out)
    return _binary(pa.string(), ends, out)


_POWERS = 10 ** np.arange(1, 19)


def _binary(kind: pa.DataType, ends: Ints, data: np.ndarray[Any, Any]) -> pa.Array:
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.Array.from_buffers(kind, len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
