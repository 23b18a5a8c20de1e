"""One recording as the traffic of many clusters: each copy has addresses and a cluster id of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

_LOOPBACK = re.compile(r"127\.0\.")
_IDS = ("connection_id", "flow_id", "exchange_id")
_ID_LENGTH = 16
"""Hex digits of a connection's or flow's id, of which the last two tell the copies apart."""


def clusters(rows: pa.Table, cluster_ids: Sequence[str], number: int) -> pa.Table:
    """Landed rows, or gaps, of so many clusters, the first of them as it was recorded.

    Args:
        rows: of a recording on the loopback.
        cluster_ids: that its frames name.
        number: fewer than 100.
    """
    return pa.concat_tables([rows, *(_copy(rows, cluster_ids, n) for n in range(1, number))])


def _copy(rows: pa.Table, cluster_ids: Sequence[str], number: int) -> pa.Table:
    ids = [(name.encode(), f"{name[:-2]}{number:02}".encode()) for name in cluster_ids]

    def of_frame(frame: bytes) -> bytes:
        for old, new in ids:
            frame = frame.replace(old, new)
        return frame.replace(b"127.0.", f"127.{number}.".encode())

    def of_life(text: str) -> str:
        life = json.loads(text)
        life |= {
            name: _LOOPBACK.sub(f"127.{number}.", life[name]) for name in ("client_ip", "server_ip") if name in life
        }
        life |= {name: of_id(life[name]) for name in ("flow_id",) if name in life}
        life["isn"] = [None if one is None else (one + number) % 2**32 for one in life.get("isn") or (None, None)]
        return json.dumps(life)

    def of_id(name: str) -> str:
        return f"{name[: _ID_LENGTH - 2]}{number:02}{name[_ID_LENGTH:]}"

    ways: dict[str, Callable[[Any], Any]] = {
        **dict.fromkeys(_IDS, of_id),
        **dict.fromkeys(("client_ip", "server_ip"), lambda ip: _LOOPBACK.sub(f"127.{number}.", ip)),
        "frame": of_frame,
        "life": of_life,
    }
    columns = {name: rows.column(name) for name in rows.column_names}
    for name, way in ways.items():
        if name in columns:
            values = [None if value is None else way(value) for value in columns[name].to_pylist()]
            columns[name] = pa.array(values, rows.schema.field(name).type)
    return pa.table(columns, schema=rows.schema)
