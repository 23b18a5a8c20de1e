"""The statements of completed exchanges as rows of silver, with clusters and topic names as far as they are known."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.kafka.extractors.exchanges import FACT_FIELDS
from pipeline.analysis.cluster_catalog import ClusterCatalog, Fact
from pipeline.analysis.columns.nullable import chosen, whole_array
from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.statements import mongodb
from pipeline.analysis.statements.kafka import BODIES, CONTEXT, FACT, PARTS, in_one_column, kind_of, statements
from pipeline.analysis.tables import ADDRESS, Tables
from pipeline.lake.arrow import arrow_array, int_values, plain_texts, text_sizes
from pipeline.tables import MONGO_COMMANDS, MONGO_HANDSHAKES, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, Table

_AT_ONCE = 20_000
"""Exchanges whose bodies are parsed together."""
_APIS = sorted({api for part in PARTS.values() for api in part.apis})
_LARGE = 65_536
"""Bytes of a body from which on parsing only what is read of it pays."""
_NAMING = sorted(PARTS["fact"].apis - {api for name, part in PARTS.items() if name != "fact" for api in part.apis})
"""Apis that state names alone: of their large responses all but these is left out before they are parsed."""
_LESS = f"""
    SELECT coalesce(TRY(json_transform(body, '{json.dumps(FACT_FIELDS)}'))::JSON::VARCHAR, body) AS body FROM bodies
"""
_WHO = (
    "exchange_id", "connection_id", "request_ts", "response_ts", "client_ip", "client_port", "server_ip", "server_port",
    "client_id",
)  # fmt: skip
_KAFKA = f"""
    SELECT exchange_id, connection_id, epoch_us(coalesce(response_ts, request_ts)) AS ts_us,
        {ADDRESS["server"]} AS server, {ADDRESS["client"]} AS client, client_id
    FROM exchanges
"""
_MONGODB = f"""
    SELECT date, exchange_id, connection_id, ts, {ADDRESS["server"]} AS server, {ADDRESS["client"]} AS client,
        client_ip, status, api_key AS opcode, correlation_id AS request_id, latency_us, request_size, response_size,
        request_status, response_status, {", ".join(mongodb.HALVES)}
    FROM exchanges WHERE protocol = 'mongodb'
"""
_NOTHING = pa.schema(
    [pa.field(name, pa.int64() if name == "ts_us" else pa.string()) for name in CONTEXT]
    + [pa.field(name, kind_of(part)) for name, part in PARTS.items()]
)
TABLES = {"event": OFFSET_EVENTS, "batch": RECORD_BATCHES, "state": STATE_EVENTS}
"""Where statements of each kind go, by the names of PARTS."""


def statement_rows(exchanges: pa.Table) -> pa.Table:
    """All that exchanges state: a row each, in one of the columns ``event``, ``batch``, ``state``, ``fact``, structs.

    Beside it is which exchange states it (``CONTEXT``).
    """
    found = [in_one_column(*one) for one in _statements(exchanges)]
    return pa.Table.from_batches(found) if found else _NOTHING.empty_table()


def inputs(exchanges: pa.Table) -> pa.Table:
    """Of Kafka exchanges what statements are read of: their bodies, who speaks to whom, and when.

    Bodies, which are most of it, are neither given to a query nor filtered, which would copy them: of an exchange
    that states nothing ``api_key`` is null.
    """
    is_read = pc.and_(
        pc.equal(exchanges.column("protocol"), "kafka"),
        pc.is_in(exchanges.column("api_key"), arrow_array(_APIS, exchanges.schema.field("api_key").type)),
    )
    is_read = pc.fill_null(is_read, fill_value=False)
    if not pc.any(is_read).as_py():
        exchanges, is_read = exchanges.slice(0, 0), is_read.slice(0, 0)
    some = exchanges.select([*_WHO, *BODIES])
    some = some.set_column(
        some.schema.get_field_index("api_key"), "api_key", pc.if_else(is_read, some.column("api_key"), None)
    )
    tables = Tables({"exchanges": some.select(_WHO)})
    try:
        found = tables.table(_KAFKA)
    finally:
        tables.close()
    bodies = {**{name: some.column(name) for name in BODIES}, "response_body": _less(some)}
    for name, column in bodies.items():
        found = found.append_column(name, column)
    return found


def _less(exchanges: pa.Table) -> pa.ChunkedArray:
    """Bodies of responses, of large ones that state names alone the rest left out."""
    bodies, apis = exchanges.column("response_body"), exchanges.column("api_key")
    is_large = pc.and_(pc.greater(text_sizes(bodies), _LARGE), pc.is_in(apis, arrow_array(_NAMING, apis.type)))
    is_large = pc.fill_null(is_large, fill_value=False)
    if not pc.any(is_large).as_py():
        return bodies
    bodies = plain_texts(bodies)
    tables = Tables({"bodies": pa.table({"body": bodies.filter(is_large)})})
    try:
        less = tables.table(_LESS).column("body")
    finally:
        tables.close()
    return pa.chunked_array(
        [pc.replace_with_mask(whole_array(bodies), whole_array(is_large), whole_array(less).cast(bodies.type))]
    )


def _statements(exchanges: pa.Table) -> Iterator[tuple[str, pa.RecordBatch]]:
    for batch in inputs(exchanges).combine_chunks().to_batches(_AT_ONCE):
        yield from statements(batch)


class KafkaStatements:
    """What completed Kafka exchanges state, as :data:`pipeline.analysis.statements.kafka.PARTS` sorts it."""

    def __init__(self, parts: Mapping[str, pa.Table]) -> None:
        self._parts = parts

    @classmethod
    def of(cls, exchanges: pa.Table) -> KafkaStatements:
        """What these rows of ``silver.exchanges`` state."""
        found = defaultdict(list)
        for name, batch in _statements(exchanges):
            found[name].append(batch)
        return cls({name: pa.Table.from_batches(batches) for name, batches in found.items()})

    @classmethod
    def in_columns(cls, rows: pa.Table) -> KafkaStatements:
        """The same from what :func:`statement_rows` gave."""
        return cls({name: _part(rows, name) for name in PARTS})

    def facts(self) -> list[Fact]:
        """What is stated of clusters and topic ids, each statement once."""
        rows = self._parts.get("fact")
        if rows is None or not rows.num_rows:
            return []
        tables = Tables({"facts": rows})
        try:
            names = ", ".join(column.name for column in FACT)
            found = tables.rows(
                f"SELECT {names}, min(ts_us) AS first_us, max(ts_us) AS last_us FROM facts GROUP BY ALL"
            )
        finally:
            tables.close()
        return [Fact(*row) for row in found]

    def subscriptions(self) -> pa.Table:
        """What members of the consumer protocol subscribe to, and are given (statements.subscriptions)."""
        rows = self._parts.get("subscription")
        return _NOTHING.empty_table().select(list(CONTEXT)) if rows is None else rows

    def table(self, part: str, catalog: ClusterCatalog) -> pa.Table:
        """Rows of ``silver.offset_events`` (event), ``record_batches`` (batch) or ``state_events`` (state)."""
        rows, table = self._parts.get(part), TABLES[part]
        if rows is None or not rows.num_rows:
            return schema_of(table).empty_table()
        us = rows.column("ts_us")
        timed = rows.append_column("ts", us.cast(pa.timestamp("us", "UTC")))
        dated = timed.append_column("date", us.cast(pa.timestamp("us")).cast(pa.date32(), safe=False))
        return placed(fit(dated, table), catalog)


def _part(rows: pa.Table, name: str) -> pa.Table:
    found = rows.select([*CONTEXT, name]).filter(pc.is_valid(rows.column(name)))
    values = found.column(name).combine_chunks()
    columns = {field.name: values.field(number) for number, field in enumerate(values.type)}
    return pa.table({**{key: found.column(key) for key in CONTEXT}, **columns})


def placed(rows: pa.Table, catalog: ClusterCatalog) -> pa.Table:
    """Rows of these tables with their clusters, and names of topics given by id, as known now."""
    if not rows.num_rows:
        return rows
    found = _with(rows, "cluster", _clusters(rows, catalog))
    topics, ids = rows.column("topic"), rows.column("topic_id").combine_chunks()
    if ids.null_count < len(ids):
        encoded = ids.dictionary_encode()
        names = arrow_array([catalog.names.get(id_) for id_ in encoded.dictionary.to_pylist()], pa.string())
        found = _with(found, "topic", pc.coalesce(names.take(encoded.indices), topics.combine_chunks()))
    return found


def _clusters(rows: pa.Table, catalog: ClusterCatalog) -> pa.Array:
    """The cluster of each server at the time of its row: few servers, and hardly one that had several."""
    servers = rows.column("server").combine_chunks().dictionary_encode(null_encoding="encode")
    times, which = int_values(rows.column("ts").combine_chunks()), int_values(servers.indices)
    earliest, latest = times.min(), times.max()
    names = servers.dictionary.to_pylist()
    numbers = np.arange(len(names))
    several = []
    for number, server in enumerate(names[:]):
        spans = catalog.spans_of(server)
        if len(spans) == 1 and spans[0][0] <= earliest and latest < spans[0][1]:
            numbers[number] = len(names)
            names.append(spans[0][2])
        elif spans:
            several.append((number, spans))
    places = numbers[which]
    for number, spans in several:
        at = np.flatnonzero(which == number)
        begins, ends = np.array([begin for begin, _, _ in spans]), np.array([end for _, end, _ in spans])
        span = np.searchsorted(begins, times[at], side="right") - 1
        is_in = (span >= 0) & (times[at] < ends[span])
        places[at[is_in]] = len(names) + span[is_in]
        names += [cluster for _, _, cluster in spans]
    return chosen(names, places)


def _with(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)


def mongodb_statements(exchanges: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of ``silver.mongo_commands``, without what handshakes state, and of ``silver.mongo_handshakes``."""
    if not pc.any(pc.equal(exchanges.column("protocol"), "mongodb")).as_py():
        return schema_of(MONGO_COMMANDS).empty_table(), schema_of(MONGO_HANDSHAKES).empty_table()
    tables = Tables({"exchanges": exchanges})
    try:
        inputs = tables.table(_MONGODB).combine_chunks()
    finally:
        tables.close()
    return (
        _map(inputs, MONGO_COMMANDS, mongodb.command_values, mongodb.FROM_HANDSHAKE),
        _map(inputs, MONGO_HANDSHAKES, mongodb.handshake_values),
    )


def with_handshakes(commands: pa.Table, handshakes: pa.Table) -> pa.Table:
    """Rows of ``silver.mongo_commands`` with what their clients state of themselves.

    A client states its name in the first message of a connection; a later one is refused by servers.
    """
    stated = ", ".join(mongodb.FROM_HANDSHAKE)
    tables = Tables({"commands": commands, "handshakes": handshakes})
    try:
        named = tables.table(f"""
            WITH first AS (
                SELECT connection_id, date AS handshake_date, {stated} FROM handshakes
                QUALIFY row_number() OVER (PARTITION BY connection_id ORDER BY ts, exchange_id) = 1
            )
            SELECT commands.* EXCLUDE ({stated}), {", ".join(f"first.{name}" for name in mongodb.FROM_HANDSHAKE)}
            FROM commands LEFT JOIN first
                ON commands.connection_id = first.connection_id AND date - handshake_date <= {mongodb.REMEMBERED_DAYS}
        """)
    finally:
        tables.close()
    return fit(named, MONGO_COMMANDS)


def renamed(commands: pa.Table, handshakes: pa.Table) -> pa.Table:
    """Of rows of ``silver.mongo_commands`` those to which handshakes give another name, with it.

    Args:
        commands: rows as they were written.
        handshakes: of connections, each of them with all that are known of it; of other connections nothing changes.
    """
    ours = commands.filter(
        pc.is_in(commands.column("connection_id"), pc.unique(handshakes.column("connection_id").combine_chunks()))
    )
    named = with_handshakes(ours, handshakes)
    tables = Tables({"named": named, "ours": ours})
    differs = " OR ".join(f"named.{name} IS DISTINCT FROM ours.{name}" for name in mongodb.FROM_HANDSHAKE)
    try:
        return fit(
            tables.table(f"SELECT named.* FROM named JOIN ours USING (exchange_id) WHERE {differs}"), MONGO_COMMANDS
        )
    finally:
        tables.close()


def _map(inputs: pa.Table, table: Table, extract: mongodb.Extract, without: Iterable[str] = ()) -> pa.Table:
    context = [name for name in mongodb.CONTEXT if name in table.column_names]
    batches = [
        mongodb.statements(batch, table, context, extract, tuple(without)) for batch in inputs.to_batches(_AT_ONCE)
    ]
    return fit(pa.Table.from_batches(batches) if batches else pa.table({}), table)
