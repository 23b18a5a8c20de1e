"""What does each exchange state of offsets, records, state and names? All in one pass: parsing bodies is the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from decoder.fields import elements, parsed
from decoder.kafka.facts import exchanges, offsets, state
from decoder.kafka.facts.statement import Repeated
from pipeline.analysis.safety.guard import TooMuchToJudge, contain, report
from pipeline.analysis.statements import new_groups
from pipeline.arrow import arrow_array, arrow_type, fitting_array
from pipeline.tables import OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, Column, Table

CONTEXT = ("exchange_id", "connection_id", "ts_us", "server", "client", "client_id")
"""Of each statement: which exchange makes it, when (µs), who speaks to whom."""


class ParsedExchange(NamedTuple):
    """An exchange with parsed bodies."""

    api_key: int
    api_version: int
    client_id: str | None
    server: str
    request: dict[str, Any] | None
    response: dict[str, Any] | None
    request_embedded: list[dict[str, Any]] | None
    response_embedded: list[dict[str, Any]] | None


_STEP = "statements of an exchange"
_OURS = {"date", "exchange_id", "connection_id", "ts", "cluster", "server", "client", "client_id"}
"""Columns that follow from the exchange, not from its bodies."""
_ROWS_AT_ONCE = 20_000
"""Statements that are Python objects at a time: a message of 1 MB makes a quarter of a million."""
_OF_SOME = {"subtopology"}
"""The last columns, which most statements do not have."""
BODIES = (
    "api_key", "api_version", "request_body", "response_body", "request_embedded", "response_embedded",
)  # fmt: skip
FACT = tuple(Column(name, "string", "") for name in ("stated_by", "cluster", "topic_id", "topic"))


class _Fact(NamedTuple):
    """A statement about names, with the columns of ``FACT``."""

    stated_by: str
    cluster: str | None
    topic_id: str | None = None
    topic: str | None = None


def _events(item: ParsedExchange) -> Iterable[object]:
    return offsets.offset_events(item.api_key, item.api_version, item.request, item.response, item.client_id)


def _batches(item: ParsedExchange) -> Iterable[object]:
    return exchanges.record_batch_rows(item.api_key, item.request, item.response)


def _states(item: ParsedExchange) -> Iterable[object]:
    if item.api_key in new_groups.APIS:
        return new_groups.group_statements_alike(item.api_key, item.request, item.response)
    return state.state_statements(
        item.api_key, item.api_version, item.request, item.response, item.request_embedded, item.response_embedded
    )


def _facts(item: ParsedExchange) -> Iterator[_Fact]:
    cluster = exchanges.cluster_id(item.api_key, item.response)
    if cluster is not None:
        brokers = (
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            for host, port in exchanges.cluster_addresses(item.api_key, item.response)
        )
        for server in sorted({item.server, *brokers}):
            yield _Fact(server, cluster)
    for topic in exchanges.topic_ids(item.api_key, item.response):
        yield _Fact(item.server, cluster, topic.topic_id, topic.topic)


Rows = Callable[[object], Iterable[tuple[Any, ...]]]
"""What gives the values of a statement's columns; of one that stands for many, those of each."""


class _Part(NamedTuple):
    """One kind of statement: which apis make it, its columns, and what extracts it from an exchange."""

    apis: frozenset[int]
    columns: tuple[Column, ...]
    extract: Callable[[ParsedExchange], Iterable[object]]


def _own(table: Table) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if column.name not in _OURS)


PARTS = {
    "event": _Part(frozenset(offsets.OFFSET_APIS), _own(OFFSET_EVENTS), _events),
    "batch": _Part(frozenset(exchanges.BATCH_APIS), _own(RECORD_BATCHES), _batches),
    "state": _Part(frozenset({*state.STATE_APIS, *new_groups.APIS}), _own(STATE_EVENTS), _states),
    "fact": _Part(frozenset(exchanges.FACT_APIS), FACT, _facts),
}


def statements(batch: pa.RecordBatch, context: Sequence[str] = CONTEXT) -> Iterator[pa.RecordBatch]:
    """For each kind of statement a batch with its rows, in which the columns of the other kinds are null."""
    types = {
        name: pa.struct([(column.name, arrow_type(column.type)) for column in part.columns])
        for name, part in PARTS.items()
    }
    rows_of = {name: _rows_of(part.columns) for name, part in PARTS.items()}
    found: dict[str, list[Any]] = {name: [] for name in PARTS}
    sources: dict[str, list[int]] = {name: [] for name in PARTS}
    who = batch.select(list(context))
    columns = (batch.column(name).to_pylist() for name in ("client_id", "server", *BODIES))
    exchange_ids = batch.column("exchange_id")
    for number, row in enumerate(zip(*columns, strict=True)):
        try:
            item = _parsed(*row)
            stated = _stated(item, rows_of)
        except Exception as error:
            contain(error, _STEP, exchange_ids[number].as_py())
            continue
        try:
            new_groups.check_size(item.api_key, item.request, item.response)
        except TooMuchToJudge as error:
            report(error, _STEP, exchange_ids[number].as_py())
        for name, rows in stated.items():
            found[name] += rows
            sources[name] += [number] * len(rows)
            if len(found[name]) >= _ROWS_AT_ONCE:
                yield _as_batch(found.pop(name), name, types, who.take(arrow_array(sources.pop(name), pa.int32())))
                found[name], sources[name] = [], []
    for name, rows in found.items():
        if rows:
            yield _as_batch(rows, name, types, who.take(arrow_array(sources[name], pa.int32())))


def _as_batch(
    rows: list[Any], name: str, types: Mapping[str, pa.StructType], context: pa.RecordBatch
) -> pa.RecordBatch:
    """Statements of one kind in its column, beside those who make them."""
    fields = [
        fitting_array(column, field.type) for column, field in zip(zip(*rows, strict=True), types[name], strict=True)
    ]
    structs = pa.StructArray.from_arrays(fields, fields=list(types[name]))
    others = [structs if kind == name else pa.nulls(len(rows), types[kind]) for kind in types]
    return pa.RecordBatch.from_arrays([*context.columns, *others], names=[*context.schema.names, *types])


def _stated(item: ParsedExchange, rows_of: Mapping[str, Rows]) -> dict[str, list[tuple[Any, ...]]]:
    """Of each kind that the exchange's api can state the statements, as values of their columns."""
    return {
        name: [row for one in part.extract(item) for row in rows_of[name](one)]
        for name, part in PARTS.items()
        if item.api_key in part.apis
    }


def _rows_of(columns: Sequence[Column]) -> Rows:
    """What gives the columns of a statement; what only some statements have is None where they lack it."""
    names = [column.name for column in columns]
    known = attrgetter(*(name for name in names if name not in _OF_SOME))
    more = [name for name in names if name in _OF_SOME]

    def rows(one: object) -> Iterable[tuple[Any, ...]]:
        if isinstance(one, Repeated):
            values = (*known(one.statement), *(getattr(one.statement, name, None) for name in more))
            return zip(
                *(one.columns.get(name, repeat(value)) for name, value in zip(names, values, strict=True)),
                strict=False,
            )
        return ((*known(one), *(getattr(one, name, None) for name in more)),)

    return rows


def _parsed(
    client_id: str | None, server: str, api_key: int, api_version: int | None, request: str | None,
    response: str | None, request_embedded: str | None, response_embedded: str | None,
) -> ParsedExchange:  # fmt: skip
    return ParsedExchange(
        api_key, -1 if api_version is None else api_version, client_id, server,
        None if request is None else parsed(request), None if response is None else parsed(response),
        None if request_embedded is None else elements(request_embedded),
        None if response_embedded is None else elements(response_embedded),
    )  # fmt: skip
