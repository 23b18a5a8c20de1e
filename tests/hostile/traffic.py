"""Kafka and MongoDB traffic that is made to be expensive to judge: a recipe in, landed rows out.

A recipe names apis, how many distinct names there are of each kind, which arrays are long, and how far apart messages
are. Bodies follow from Kafka's own schemas, so that every api with an array is tried without a line about it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from pipeline.lake.arrow import arrow_array, arrow_type
from pipeline.tables import FRAMES, LANDING_COLUMNS
from tests.decoder.kafka import encode
from tests.decoder.kafka.batches import TRANSACTIONAL, batch, control, record
from tests.decoder.kafka.encode import consumer_protocol, find_layout
from tests.decoder.mongodb.build import command, reply
from tests.pipeline.rows import row

KINDS = ("group", "member", "topic", "partition", "txn", "client", "connection", "generation", "offset", "cursor")
"""Of these a recipe says how many distinct ones there are; 0: each is another one."""

MODELLED = (
    0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 22, 24, 25, 26, 27, 28, 35, 42, 47, 60, 61, 65, 66, 68, 69,
    75, 76, 77, 78, 79, 88, 89,
)  # fmt: skip
"""Apis that analysis looks into."""
MONGODB = 1000
"""Stands for MongoDB commands among the apis of a recipe."""
_VERSIONS = {0: 8, 1: 11, 8: 8, 9: 7, 3: 8}
"""Of apis whose newest version names topics by id alone, one that has names."""
START_US = 1_770_000_000_000_000
_MOST = {"int8": 127, "int16": 32_767, "uint16": 65_535}
_MOST_ELEMENTS = 6000
"""Of all arrays of an exchange together."""
_PACKET = 66
"""Headers of a packet, which are captured with each frame."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What traffic is made of.

    Attributes:
        apis: one after the other.
        errors: codes of responses.
        counts: of each kind of name how many there are; see ``KINDS``.
        width: elements of the outermost array of a body.
        depth_width: elements of arrays within arrays.
        step_us: time from one exchange to the next.
        answered: part of the requests that have a response.
        name_size: bytes of a name.
        names: is at the end of each name.
    """

    seed: int
    apis: tuple[int, ...]
    errors: tuple[int, ...] = (0,)
    counts: tuple[tuple[str, int], ...] = ()
    width: int = 1
    depth_width: int = 1
    step_us: int = 1000
    latency_us: int = 500
    answered: float = 1.0
    name_size: int = 0
    names: str = ""

    def count(self, kind: str) -> int:
        return dict(self.counts).get(kind, 1)

    def __str__(self) -> str:
        return (
            f"apis {list(self.apis)} errors {list(self.errors)} counts {dict(self.counts)} width {self.width}x"
            f"{self.depth_width} step {self.step_us} us, latency {self.latency_us}, answered {self.answered}, "
            f"names {self.name_size}, seed {self.seed}"
        )


@dataclass(slots=True)
class Landing:
    """Rows of a landing zone, in the making."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    wire_bytes: int = 0
    _seqs: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(
        self, exchange: int, direction: str, frame: bytes, ts: int, connection: int, *, server: int = 0,
        api: tuple[int, int] | None = None, protocol: str = "kafka", flags: int = 0,
        ids: tuple[int, int | None] = (0, None),
    ) -> None:  # fmt: skip
        """A frame of an exchange."""
        name = f"connection-{connection}"
        seq = self._seqs.get((name, direction), 0)
        self._seqs[name, direction] = seq + 1
        port = 9092 if protocol == "kafka" else 27017
        self.wire_bytes += len(frame) + 4 + _PACKET
        values = {
            "agent_id": "agent", "connection_id": name, "exchange_id": f"{name}/{exchange}", "seq": seq,
            "direction": direction, "ts": ts, "ts_end": ts, "client_ip": f"10.{connection >> 16 & 255}."
            f"{connection >> 8 & 255}.{connection & 255}", "client_port": 40_000, "server_ip": f"10.255.0.{server + 1}",
            "server_port": port, "protocol": protocol, "api_key": api[0] if api else None,
            "api_version": api[1] if api else None, "correlation_id": ids[0], "reply_to": ids[1], "size": len(frame),
            "frame": frame, "flags": flags, "flow_id": name, "payload_policy": "lengths",
        }  # fmt: skip
        self.rows.append(tuple(row(FRAMES, **values)[column.name] for column in LANDING_COLUMNS))

    def exchange(
        self, number: int, key: int, version: int, asked: dict[str, Any], answer: dict[str, Any] | None, ts: int,
        *, latency_us: int = 500, connection: int = 0, client_id: str | None = "client", server: int = 0,
    ) -> None:  # fmt: skip
        """A Kafka request, and its response if there is one."""
        sent = encode.request(key, version, asked, client_id=client_id, correlation_id=number & 0x7FFFFFFF)
        flags = 0
        self.add(number, "request", sent, ts, connection, api=(key, version), server=server, flags=flags)
        if answer is not None:
            got = encode.response(key, version, answer, correlation_id=number & 0x7FFFFFFF)
            self.add(number, "response", got, ts + latency_us, connection, api=(key, version), server=server)

    def table(self) -> pa.Table:
        """As they would be read from landing files."""
        columns = list(zip(*self.rows, strict=True)) or [() for _ in LANDING_COLUMNS]
        return pa.table(
            {
                column.name: arrow_array(list(values), arrow_type(column.type))
                for column, values in zip(LANDING_COLUMNS, columns, strict=True)
            }
        )


def landed(recipe: Recipe, size: int) -> Landing:
    """Traffic by a recipe, of about this many bytes on the wire."""
    maker, landing = Maker(recipe), Landing()
    while landing.wire_bytes < size:
        maker.add_to(landing)
    return landing


class Maker:
    """Makes exchanges by a recipe, one after the other.

    Args:
        recipe: what they are made of.
        first_exchange: number of the first.
        connection: added to the numbers of connections.
        start_us: when they begin, µs since the epoch.
        servers: how many servers answer, in turn.
    """

    def __init__(
        self, recipe: Recipe, *, first_exchange: int = 0, connection: int = 0, start_us: int = START_US,
        servers: int = 3,
    ) -> None:  # fmt: skip
        self._recipe = recipe
        self._random = random.Random(recipe.seed)
        self._number, self._connection, self._servers = first_exchange, connection, servers
        self._drawn = dict.fromkeys(KINDS, 0)
        self._ts = start_us
        self._elements = 0
        self._most = min(_MOST_ELEMENTS, 300_000 // max(recipe.name_size, 1))
        self._error = 0
        self._once: dict[str, int] = {}

    def _draw(self, kind: str) -> int:
        self._drawn[kind] += 1
        count = self._recipe.count(kind)
        return self._drawn[kind] % count if count else self._drawn[kind]

    def _name(self, kind: str, number: int) -> str:
        if self._recipe.names:
            return kind + self._recipe.names
        return f"{kind}-{number}".ljust(min(self._recipe.name_size, 30_000), "x")

    def add_to(self, landing: Landing) -> None:
        """Add the next exchange."""
        recipe = self._recipe
        key = recipe.apis[self._number % len(recipe.apis)]
        self._number += 1
        self._ts += recipe.step_us
        connection, client = self._connection + self._draw("connection"), self._draw("client")
        self._error = self._random.choice(recipe.errors)
        is_answered = self._random.random() < recipe.answered
        if key == MONGODB:
            self._add_command(landing, connection, client, is_answered=is_answered)
            return
        version = _version(key)
        self._elements = 0
        self._once = {kind: self._draw(kind) for kind in ("group", "member", "txn", "generation")}
        asked = self._struct(find_layout("request", key, version)[0], "request", 0)
        answer = self._struct(find_layout("response", key, version)[0], "response", 0) if is_answered else None
        landing.exchange(
            self._number, key, version, asked, answer, self._ts, latency_us=recipe.latency_us, connection=connection,
            client_id=self._name("client", client), server=self._number % self._servers,
        )  # fmt: skip

    def _struct(self, layout: Any, side: str, depth: int) -> dict[str, Any]:
        return {
            item.name: self._value(item, side, depth)
            for item in layout.fields
            if item.name not in ("unknownTaggedFields",)
        }

    def _value(self, item: Any, side: str, depth: int) -> Any:
        if item.array:
            width = self._recipe.width if depth == 0 else self._recipe.depth_width
            width = min(width, self._most - self._elements)
            self._elements += width
            return [self._element(item, side, depth + 1) for _ in range(width)]
        return self._element(item, side, depth)

    def _element(self, item: Any, side: str, depth: int) -> Any:
        if item.struct is not None:
            return self._struct(item.struct, side, depth)
        name = item.name.lower()
        if item.type == "string":
            return self._text(name)
        if item.type == "uuid":
            return uuid(self._draw("topic"))
        if item.type == "bool":
            return self._random.random() < 0.5
        if item.type == "bytes":
            return self._bytes(name)
        if item.type == "records":
            return self._records(side)
        if item.type == "float64":
            return 1.0
        return self._number_of(name, item.type)

    def _text(self, name: str) -> str:
        for kind in ("group", "member", "txn", "client"):
            if kind in name or (kind == "txn" and "transactionalid" in name):
                return self._name(kind, self._once[kind] if kind in self._once else self._draw(kind))
        fixed = {"protocoltype": "consumer", "protocolname": "range", "host": "10.255.0.1", "errormessage": "error",
                 "clusterid": "cluster", "leader": "member-0", "groupstate": "Stable", "assignor": "range"}  # fmt: skip
        if name in fixed:
            return fixed[name]
        return self._name("topic", self._draw("topic")) if "topic" in name or name == "name" else name[:8]

    def _number_of(self, name: str, kind: str) -> int:
        found = self._meant(name, kind)
        return found if kind not in _MOST else min(found, _MOST[kind])

    def _meant(self, name: str, kind: str) -> int:
        if "errorcode" in name:
            return self._error
        if "partition" in name or name == "index":
            return self._draw("partition")
        if name == "producerid":
            return 1000 + self._once["txn"]
        if "generation" in name or "memberepoch" in name:
            return 1 + self._once["generation"] % 30_000
        if "offset" in name or "watermark" in name:
            return self._draw("offset")
        if "port" in name:
            return 9092
        return 1 if kind in ("int8", "int16", "uint16") else self._number % 1000

    def _bytes(self, name: str) -> bytes:
        topics = [self._name("topic", self._draw("topic")) for _ in range(self._recipe.depth_width)]
        if "assignment" in name:
            parts = [self._draw("partition") for _ in range(self._recipe.depth_width)]
            assigned = [{"topic": topic, "partitions": parts} for topic in topics]
            return consumer_protocol("ConsumerProtocolAssignment", 0, {"assignedPartitions": assigned})
        if "metadata" in name:
            return consumer_protocol("ConsumerProtocolSubscription", 0, {"topics": topics})
        return b""

    def _records(self, side: str) -> bytes:
        ids = (1000 + self._once["txn"], 1, self._number)
        base = self._draw("offset")
        one = batch([record(b"", b"")], base_offset=base, producer=ids, attributes=TRANSACTIONAL)
        return one + (control(self._number % 2, base_offset=base + 1) if side == "response" else b"")

    def _add_command(self, landing: Landing, connection: int, client: int, *, is_answered: bool) -> None:
        recipe, number, ts = self._recipe, self._number, self._ts
        topic, cursor = self._name("topic", self._draw("topic")), self._draw("cursor")
        documents = [{"_id": n} for n in range(recipe.width)]
        kinds: list[dict[str, Any]] = [
            {"find": topic, "filter": {"a": 1}, "$db": "shop"},
            {"getMore": cursor + 1, "collection": topic, "$db": "shop"},
            {"insert": topic, "documents": documents, "$db": "shop", "txnNumber": number, "lsid": {"id": cursor}},
            {"killCursors": topic, "cursors": [cursor + n for n in range(recipe.width)], "$db": "shop"},
            {"aggregate": topic, "pipeline": [{"$changeStream": {}}], "cursor": {}, "$db": "shop"},
            {"hello": 1, "$db": "admin", "client": {"application": {"name": self._name("client", client)}}},
        ]
        asked = kinds[self._random.randrange(len(kinds))]
        answer: dict[str, Any] = {
            "ok": 1.0,
            "cursor": {"id": cursor + 1, "ns": f"shop.{topic}", "nextBatch": documents},
        }
        if self._error:
            answer = {"ok": 0.0, "code": self._error, "errmsg": "error", "codeName": "Error"}
            if self._random.random() < 0.5:
                errors = [{"index": n, "code": self._error, "errmsg": "e"} for n in range(recipe.width)]
                answer = {"ok": 1.0, "n": 0, "writeErrors": errors}
        ids = number & 0x7FFFFFFF
        landing.add(
            number,
            "request",
            command(asked, request_id=ids),
            ts,
            connection,
            protocol="mongodb",
            ids=(ids, None),
            api=(2013, 0),
        )
        if is_answered:
            landing.add(
                number, "response", reply(answer, response_to=ids), ts + recipe.latency_us, connection,
                protocol="mongodb", ids=(ids, ids), api=(2013, 0),
            )  # fmt: skip


@lru_cache
def _version(key: int) -> int:
    from decoder.kafka.schema.table import api_versions  # noqa: PLC0415

    return _VERSIONS.get(key, api_versions()[key][1])


@lru_cache(maxsize=100_000)
def uuid(number: int) -> str:
    return base64.urlsafe_b64encode(hashlib.md5(str(number).encode()).digest()).decode().rstrip("=")  # noqa: S324


ERRORS = (0, 3, 5, 6, 15, 16, 22, 25, 27, 14, 47, 51, 53, 55, 67, 82, 90, 100, 110, 112, 35, 1, 29, 43, 13, 11600)


def recipes(source: random.Random) -> Iterator[Recipe]:
    """Recipes by chance, for ever."""
    while True:
        apis = tuple(source.choice((*MODELLED, MONGODB)) for _ in range(source.choice((1, 1, 2, 2, 3, 4, 6))))
        errors = tuple(source.choice(ERRORS) for _ in range(source.choice((0, 1, 2)))) or (0,)
        if source.random() < 0.3:
            errors = (0, *errors)
        counts = tuple((kind, source.choice((0, 0, 1, 2, 10, 100, 1000))) for kind in KINDS)
        width, deep = source.choice(((1, 1), (3, 1), (1, 10), (30, 30), (1, 1000), (1000, 1), (300, 3), (3, 300)))
        step = source.choice((0, 0, 1, 1000, 100_000, 10_000_000, 3_600_000_000, 86_400_000_000))
        yield Recipe(
            source.randrange(2**31), apis, errors, counts, width, deep, step, source.choice((0, 500, 500, 2_000_000)),
            source.choice((1.0, 1.0, 0.5, 0.0)), source.choice((0, 0, 0, 100, 20_000)),
        )  # fmt: skip


def child(source: random.Random, parent: Recipe) -> Recipe:
    """A recipe that differs from another one in one or two things."""
    found = parent
    for _ in range(source.choice((1, 1, 2))):
        other = next(recipes(source))
        name = source.choice(
            (
                "apis",
                "apis",
                "errors",
                "counts",
                "counts",
                "width",
                "step_us",
                "latency_us",
                "answered",
                "name_size",
                "seed",
            )
        )
        if name == "counts":
            kind = source.choice(KINDS)
            counts = {**dict(found.counts), kind: other.count(kind)}
            found = replace(found, counts=tuple(sorted(counts.items())))
        elif name == "apis":
            kept = [api for api in found.apis if source.random() < 0.8]
            found = replace(found, apis=tuple([*kept, *other.apis][:8]))
        elif name == "width":
            found = replace(found, width=other.width, depth_width=other.depth_width)
        else:
            found = replace(found, **{name: getattr(other, name)})
    return found


def as_json(recipe: Recipe) -> str:
    """To be made again by ``from_json``."""
    return json.dumps({name: getattr(recipe, name) for name in Recipe.__slots__})


def from_json(text: str) -> Recipe:
    values = json.loads(text)
    counts = tuple((kind, count) for kind, count in values.pop("counts"))
    apis, errors = tuple(values.pop("apis")), tuple(values.pop("errors"))
    return Recipe(apis=apis, errors=errors, counts=counts, **values)
