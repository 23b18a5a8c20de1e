"""What each MongoDB exchange states: its command, and what clients state of themselves in their first message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from decoder.fields import integer, parsed
from decoder.mongodb.extractors import Half, command_facts, handshake
from pipeline.analysis.safety.guard import contain
from pipeline.lake.arrow import arrow_array, arrow_type
from pipeline.tables import Table

FROM_HANDSHAKE = ("application", "driver", "driver_version")
"""What a command takes from its connection's handshake."""
CONTEXT = (
    "date", "exchange_id", "connection_id", "ts", "server", "client", "client_ip", "status", "opcode", "request_id",
    "latency_us", "request_size", "response_size", "request_status", "response_status",
)  # fmt: skip
"""Columns that are the exchange's own."""
HALVES = ("request_header", "request_body", "request_flags", "response_header", "response_body", "response_flags")
REMEMBERED_DAYS = 30
"""Of an older connection the name is forgotten: otherwise each batch would read all handshakes ever seen."""
_LARGEST = {"int": 2**31 - 1, "bigint": 2**63 - 1}

Extract = Callable[["Half | None", "Half | None"], "Mapping[str, Any] | None"]


def command_values(request: Half | None, response: Half | None) -> Mapping[str, Any]:
    """The columns of ``silver.mongo_commands`` that the halves of an exchange give."""
    values = asdict(command_facts(request, response))
    return {**values, "reply_to": integer(response.header, "responseTo") if response is not None else None}


def handshake_values(request: Half | None, _: Half | None) -> Mapping[str, Any] | None:
    """The columns of ``silver.mongo_handshakes`` that a request gives; None if it is no handshake."""
    stated = handshake(request) if request is not None else None
    return None if stated is None else asdict(stated)


def statements(
    batch: pa.RecordBatch, table: Table, context: list[str], extract: Extract, without: tuple[str, ...] = ()
) -> pa.RecordBatch:
    """The columns ``context`` of a batch, and what ``extract`` makes of its halves; rows without that are left out."""
    found = list(_extracted(batch, extract))
    kept = batch.select(context).filter(arrow_array([values is not None for values in found], pa.bool_()))
    columns = dict(zip(context, kept.columns, strict=True))
    rows = [values for values in found if values is not None]
    for column in table.columns:
        if column.name not in (*context, *without):
            values = [_fitting(row[column.name], column.type) for row in rows]
            columns[column.name] = arrow_array(values, arrow_type(column.type))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _extracted(batch: pa.RecordBatch, extract: Extract) -> Iterator[Mapping[str, Any] | None]:
    for row in batch.select(["exchange_id", *HALVES]).to_pylist():
        try:
            yield extract(*_halves(row))
        except Exception as error:
            contain(error, "statements of an exchange", row["exchange_id"])
            yield None


def _halves(row: Mapping[str, Any]) -> tuple[Half | None, Half | None]:
    return _half(row, "request"), _half(row, "response")


def _half(row: Mapping[str, Any], side: str) -> Half | None:
    flags = row[f"{side}_flags"]
    if flags is None:
        return None
    return Half(parsed(row[f"{side}_header"]), parsed(row[f"{side}_body"]), flags)


def _fitting(value: Any, kind: str) -> Any:
    """A number that its column cannot hold is none that a server or driver would write."""
    if kind.startswith("array<"):
        of = kind.removeprefix("array<").removesuffix(">")
        return None if value is None else [one for one in (_fitting(one, of) for one in value) if one is not None]
    is_too_large = value is not None and kind in _LARGEST and not -_LARGEST[kind] <= value <= _LARGEST[kind]
    return None if is_too_large else value
