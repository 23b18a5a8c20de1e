"""What each exchange states of offsets, records, state and names, in one pass: parsing bodies is the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from decoder.columns import Bools, Ints
from decoder.fields import elements, parsed
from decoder.kafka.extractors import exchanges, offsets, state
from decoder.kafka.extractors.statement import Repeated
from pipeline.analysis.columns.compiled import pays
from pipeline.analysis.columns.nullable import Numbers, spans_of
from pipeline.analysis.safety.guard import TooMuchToJudge, contain, report
from pipeline.analysis.statements import new_groups, subscriptions
from pipeline.analysis.tables import address
from pipeline.lake.arrow import arrow_array, arrow_type, fitting_array, with_plain_texts
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


KERNEL_AFTER = 500
"""Exchanges from which on compiled code reads bodies of the apis that most traffic consists of; see ``_weight``."""
COMPILING_AFTER = 10_000
"""Exchanges from which on compiling it pays."""
_LARGE = 1_000
"""Bytes of bodies that take as long to read as a small exchange: one can name thousands of partitions."""
_KERNEL = ("decoder.kernel", "leaf_kernel.read_leaves")
_STEP = "statements of an exchange"
_OURS = {"date", "exchange_id", "connection_id", "ts", "cluster", "server", "client", "client_id"}
"""Columns that follow from the exchange, not from its bodies."""
_ROWS_AT_ONCE = 20_000
"""Statements that are Python objects at a time: a message of 1 MB makes a quarter of a million."""
_ARE_MANY = 16
"""Statements of one :class:`Repeated` from which on they become columns without a row of each."""
_OF_SOME = {"subtopology", "partitions"}
"""The last columns, which most statements do not have."""
BODIES = (
    "api_key", "api_version", "request_body", "response_body", "request_embedded", "response_embedded",
)  # fmt: skip
FACT = tuple(Column(name, "string", "") for name in ("stated_by", "cluster", "topic_id", "topic"))


@dataclass(frozen=True, slots=True)
class _Fact:
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


def _facts(item: ParsedExchange) -> Iterator[_Fact | Repeated[_Fact]]:
    cluster = exchanges.cluster_id(item.api_key, item.response)
    if cluster is not None:
        brokers = (address(host, port) for host, port in exchanges.cluster_addresses(item.api_key, item.response))
        for server in sorted({item.server, *brokers}):
            yield _Fact(server, cluster)
    topics = exchanges.topic_ids(item.api_key, item.response)
    if topics:
        ids, names = zip(*topics, strict=True)
        yield Repeated(_Fact(item.server, cluster), {"topic_id": ids, "topic": names})


def _subscriptions(item: ParsedExchange) -> Iterable[object]:
    return subscriptions.subscriptions(item.request, item.response)


Rows = Callable[[object], Iterable[tuple[Any, ...]]]
"""What gives the values of a statement's columns; of one that stands for many, those of each."""


class Part(NamedTuple):
    """One kind of statement: which apis make it, its columns, and what extracts it from an exchange."""

    apis: frozenset[int]
    columns: tuple[Column, ...]
    extract: Callable[[ParsedExchange], Iterable[object]]


def _own(table: Table) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if column.name not in _OURS)


PARTS = {
    "event": Part(frozenset(offsets.OFFSET_APIS), _own(OFFSET_EVENTS), _events),
    "batch": Part(frozenset(exchanges.BATCH_APIS), _own(RECORD_BATCHES), _batches),
    "state": Part(frozenset({*state.STATE_APIS, *new_groups.APIS}), _own(STATE_EVENTS), _states),
    "fact": Part(frozenset(exchanges.FACT_APIS), FACT, _facts),
    "subscription": Part(frozenset({subscriptions.API}), subscriptions.COLUMNS, _subscriptions),
}


def statements(batch: pa.RecordBatch, context: Sequence[str] = CONTEXT) -> Iterator[tuple[str, pa.RecordBatch]]:
    """What exchanges state, in batches of one kind each: its name in PARTS, and rows with ``context`` and columns."""
    rest = batch
    if pays(_weight(batch), after=KERNEL_AFTER, compiling_after=COMPILING_AFTER, kernel=_KERNEL):
        found, is_read = _read_at_once(batch)
        for name, sources, columns in found:
            if len(sources):
                who = batch.select(list(context)).take(Numbers.all_known(sources).arrow(pa.int64()))
                yield name, _beside_columns(who, columns, kind_of(PARTS[name]))
        rest = batch.filter(Numbers.all_known(~is_read).arrow(pa.bool_()))
    yield from one_by_one(rest.filter(rest.column("api_key").is_valid()), context)


def _weight(batch: pa.RecordBatch) -> int:
    """How many small exchanges take as long to read as these."""
    rows = np.arange(batch.num_rows)
    spans = [spans_of(batch.column(name), rows) for name in ("request_body", "response_body")]
    size = sum(int((one.ends - one.begins).sum()) for one in spans)
    return int(batch.num_rows) + size // _LARGE


def _read_at_once(batch: pa.RecordBatch) -> tuple[list[tuple[str, Ints, Mapping[str, pa.Array]]], Bools]:
    """See :func:`pipeline.analysis.statements.hot.hot_statements`; nothing where that fails, which is noted."""
    from pipeline.analysis.statements import hot  # noqa: PLC0415 - loads compiled code

    try:
        return hot.hot_statements(batch)
    except Exception as error:
        contain(error, _STEP)
        return [], np.zeros(batch.num_rows, np.bool_)


def one_by_one(batch: pa.RecordBatch, context: Sequence[str] = CONTEXT) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The same, an exchange after the other: all that is stated of it is read of its parsed bodies."""
    (batch,) = with_plain_texts(pa.Table.from_batches([batch])).to_batches() or [batch]
    types = {name: kind_of(part) for name, part in PARTS.items()}
    rows_of = {name: _rows_of(part.columns) for name, part in PARTS.items()}
    found: dict[str, list[Any]] = {name: [] for name in PARTS}
    sources: dict[str, list[int]] = {name: [] for name in PARTS}
    repeats: dict[str, list[tuple[int, Repeated[Any]]]] = {name: [] for name in PARTS}
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
        for name, (rows, many) in stated.items():
            found[name] += rows
            sources[name] += [number] * len(rows)
            repeats[name] += ((number, one) for one in many)
            if len(found[name]) + sum(len(one) for _, one in repeats[name]) >= _ROWS_AT_ONCE:
                yield from _of_rows(found.pop(name), name, types[name], who, sources.pop(name))
                yield from _of_repeated(repeats.pop(name), name, types[name], who)
                found[name], sources[name], repeats[name] = [], [], []
    for name, rows in found.items():
        yield from _of_rows(rows, name, types[name], who, sources[name])
        yield from _of_repeated(repeats[name], name, types[name], who)


def _of_rows(
    rows: list[Any], name: str, kinds: pa.StructType, who: pa.RecordBatch, sources: list[int]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """A batch of rows, if there are any; ``sources``: of each the exchange in ``who``."""
    if rows:
        columns = zip(zip(*rows, strict=True), kinds, strict=True)
        values = [fitting_array(column, field.type) for column, field in columns]
        yield name, _beside(who.take(arrow_array(sources, pa.int32())), values, kinds)


def _of_repeated(
    many: Sequence[tuple[int, Repeated[Any]]], name: str, kinds: pa.StructType, who: pa.RecordBatch
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """A batch of statements that are many and alike, if there are any; beside each the number of its exchange."""
    if not many:
        return
    sizes = [len(one) for _, one in many]
    places = Numbers.all_known(np.repeat(np.arange(len(many)), sizes)).arrow(pa.int64())
    differing = {column for _, one in many for column in one.columns}
    values = []
    for field in kinds:
        each = [getattr(one.statement, field.name, None) for _, one in many]
        if field.name in differing:
            columns = (
                one.columns.get(field.name, [value] * len(one)) for value, (_, one) in zip(each, many, strict=True)
            )
            values.append(fitting_array([*chain.from_iterable(columns)], field.type))
        else:
            values.append(fitting_array(each, field.type).take(places))
    of_each = who.take(arrow_array([number for number, _ in many], pa.int32()))
    yield name, _beside(of_each.take(places), values, kinds)


def _beside(context: pa.RecordBatch, values: list[pa.Array], kinds: pa.StructType) -> pa.RecordBatch:
    names = [*context.schema.names, *(field.name for field in kinds)]
    return pa.RecordBatch.from_arrays([*context.columns, *values], names=names)


def _beside_columns(context: pa.RecordBatch, columns: Mapping[str, pa.Array], kinds: pa.StructType) -> pa.RecordBatch:
    count = context.num_rows
    values = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in kinds]
    return _beside(context, values, kinds)


def kind_of(part: Part) -> pa.StructType:
    """The type of a statement."""
    return pa.struct([(column.name, arrow_type(column.type)) for column in part.columns])


def in_one_column(name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of one kind with the statement as a struct in the column of that name; those of other kinds are null."""
    kinds = {other: kind_of(part) for other, part in PARTS.items()}
    context, values = rows.columns[: len(CONTEXT)], rows.columns[len(CONTEXT) :]
    structs = pa.StructArray.from_arrays(values, fields=list(kinds[name]))
    others = [structs if kind == name else pa.nulls(rows.num_rows, kinds[kind]) for kind in kinds]
    return pa.RecordBatch.from_arrays([*context, *others], names=[*CONTEXT, *kinds])


_Stated = tuple[list[tuple[Any, ...]], list[Repeated[Any]]]
"""Statements as values of their columns; and those that are many and differ in a few columns."""


def _stated(item: ParsedExchange, rows_of: Mapping[str, Rows]) -> dict[str, _Stated]:
    """The statements of each kind that the exchange's api can make."""
    found: dict[str, _Stated] = {}
    for name, part in PARTS.items():
        if item.api_key in part.apis:
            rows, many = found.setdefault(name, ([], []))
            for one in part.extract(item):
                if isinstance(one, Repeated) and len(one) >= _ARE_MANY:
                    many.append(one)
                else:
                    rows.extend(rows_of[name](one))
    return found


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
