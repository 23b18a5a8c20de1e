"""Every field of every message with every value, one at a time, to the readers of exchanges alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
import pyarrow as pa

from decoder import Codec, Message
from decoder.model import Direction
from decoder.protocols import protocol_of
from pipeline.analysis.descriptions import halves
from pipeline.analysis.errors import response_errors
from pipeline.analysis.statements import kafka, mongodb
from pipeline.lake.arrow import arrow_array, arrow_schema
from pipeline.tables import EXCHANGES_WITH_BODIES, MONGO_COMMANDS, MONGO_HANDSHAKES
from tests.hostile.judging.bodies import EXTREMES, NAMES, places
from tests.hostile.judging.documents import VALUES, keys_of, with_key
from tests.hostile.judging.tally import Tally
from tests.hostile.mongodb import samples as mongodb_samples
from tests.hostile.samples import made_of_every_version

JSON_VALUES: tuple[Any, ...] = (
    None, True, False, 1.5, -1e308, [], {}, [None], [[]], [{}], {"a": {}}, ["x", 7, None], *EXTREMES, *NAMES,
)  # fmt: skip
_CODEC = Codec()


@dataclass(frozen=True, slots=True)
class Pair:
    """An exchange of which one half is changed."""

    protocol: str
    api_key: int | None
    api_version: int | None
    request: Message | None
    response: Message | None

    @property
    def name(self) -> str:
        return f"{self.protocol} api {self.api_key} v{self.api_version}"


@cache
def kafka_pairs() -> tuple[Pair, ...]:
    """Request and response of every api, in its oldest and newest version."""
    found: dict[tuple[int, int], dict[Direction, Message]] = {}
    for one in made_of_every_version():
        message = _CODEC.decode(one.data, direction=one.direction, api_key=one.api_key, api_version=one.api_version)
        found.setdefault((one.api_key, one.api_version), {})[one.direction] = message
    ends = {(key, pick(version for api, version in found if api == key)) for key, _ in found for pick in (min, max)}
    return tuple(Pair("kafka", *api, found[api].get("request"), found[api].get("response")) for api in sorted(ends))


def every_field(tally: Tally) -> None:
    """All of it; a case is a message."""
    for pair in kafka_pairs():
        for side in ("request", "response"):
            _kafka_fields(pair, side, tally)
            tally.cases += 1
    shapes = {(direction, *keys_of(data)): (direction, data) for direction, data in mongodb_samples()}
    for direction, data in shapes.values():
        _mongodb_fields(direction, data, tally)
        tally.cases += 1


def _kafka_fields(pair: Pair, side: str, tally: Tally) -> None:
    message = pair.request if side == "request" else pair.response
    if message is None:
        return
    for part in ("body", "embedded"):
        text = orjson.dumps(getattr(message, part))
        for number in range(len(list(places(orjson.loads(text))))):
            rows = []
            for value in JSON_VALUES:
                copy = orjson.loads(text)
                container, key = list(places(copy))[number]
                container[key] = value
                rows.append(_changed(message, part, copy))
            _read(pair, side, rows, f"{pair.name} {side} {part} place {number}", tally)


def _changed(message: Message, part: str, value: Any) -> Message:
    header, body, embedded = message.header, message.body, message.embedded
    body, embedded = (value, embedded) if part == "body" else (body, value)
    return Message(
        header, body, message.status, api_key=message.api_key, api_version=message.api_version,
        api_name=message.api_name, client_id=message.client_id, embedded=embedded,
    )  # fmt: skip


def _mongodb_fields(direction: Direction, data: bytes, tally: Tally) -> None:
    for key in keys_of(data):
        changed = []
        for value in VALUES:
            with tally.guarded(f"mongodb {key!r} {value}"):
                changed.append(_CODEC.decode(with_key(data, key, value), protocol="mongodb", direction=direction))
        pair = Pair("mongodb", 2013, None, None, None)
        _read(pair, direction, changed, f"mongodb {direction} {key!r}", tally)


def _read(pair: Pair, side: str, changed: list[Message], what: str, tally: Tally) -> None:
    """Give exchanges of which one half is one of these to all that reads exchanges one by one."""
    tally.bodies += len(changed)
    rows = _exchanges(pair, [(one, pair.response) if side == "request" else (pair.request, one) for one in changed])
    describer = protocol_of(pair.protocol).describer()
    for row in rows.to_pylist():
        with tally.guarded(f"{what}, words"):
            request, response = halves(row)
            describer.note(request, response)
            describer.describe(request, response)
            describer.about(request, response)
            describer.of_offset(request, response, "orders", 0, 5)
            if response is not None:
                describer.errors(response)
    for text in rows.column("response_body").to_pylist():
        with tally.guarded(f"{what}, errors"):
            response_errors(pair.protocol, text)
    with tally.guarded(f"{what}, statements"):
        for batch in rows.to_batches():
            if pair.protocol == "kafka":
                list(kafka.statements(batch))
            else:
                context = ["exchange_id", "connection_id"]
                mongodb.statements(batch, MONGO_COMMANDS, context, mongodb.command_values, _OTHERS)
                mongodb.statements(batch, MONGO_HANDSHAKES, context, mongodb.handshake_values, _OTHERS)


_OTHERS = (*mongodb.CONTEXT, *mongodb.FROM_HANDSHAKE)


def _exchanges(pair: Pair, messages: list[tuple[Message | None, Message | None]]) -> pa.Table:
    """What readers of statements get of exchanges."""
    count = len(messages)
    columns: dict[str, list[Any]] = {column.name: [None] * count for column in EXCHANGES_WITH_BODIES.columns}
    columns |= {
        "exchange_id": [str(number) for number in range(count)], "connection_id": ["c"] * count,
        "ts": [1_770_000_000_000_000] * count, "api_key": [pair.api_key] * count,
        "api_version": [pair.api_version] * count, "protocol": [pair.protocol] * count,
    }  # fmt: skip
    for side, number in (("request", 0), ("response", 1)):
        for name, values in _texts([one[number] for one in messages]):
            columns[f"{side}_{name}"] = values
    schema = arrow_schema(EXCHANGES_WITH_BODIES.columns)
    table = pa.table({field.name: arrow_array(columns[field.name], field.type) for field in schema})
    server = arrow_array(["10.0.0.1:9092"] * count, pa.string())
    times = table.column("ts").cast(pa.int64())
    return table.append_column("server", server).append_column("client", server).append_column("ts_us", times)


def _texts(messages: list[Message | None]) -> Iterator[tuple[str, list[Any]]]:
    for name in ("header", "body", "embedded"):
        yield name, [None if one is None else orjson.dumps(getattr(one, name)).decode() for one in messages]
    for name in ("flags", "size"):
        yield name, [None if one is None else 0 for one in messages]
