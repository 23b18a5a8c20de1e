"""Decodes many frames in one go: by the kernel what it can, and returns which ones are left for the plain reader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from decoder.columns import Bools, Bytes, Ints, Texts, joined, json_text
from decoder.kafka.codec.embedded import EMBEDDING_APIS, embedded_messages
from decoder.kafka.codec.messages import BATCHES_AT
from decoder.kafka.codec.program import compile_programs
from decoder.kafka.kernel import bodies as kernel
from decoder.kafka.kernel.message import CLIENT, ELEMENT, PARTITION, STACK, TOPIC, TOPIC_ID, Tables
from decoder.kafka.schema.table import request_header_version, response_header_version
from decoder.kernel.text import end_to_end
from decoder.model import Direction, Message
from decoder.protocol import Column, ManyRead

_ROLES = {
    "name": TOPIC,
    "topic": TOPIC,
    "topicId": TOPIC_ID,
    "index": PARTITION,
    "partitionIndex": PARTITION,
    "clientId": CLIENT,
    "": ELEMENT,
}


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """What the kernel made of a batch of frames; one entry a frame.

    Attributes:
        outcomes: kernel.DECODED, NO_CLIENT_ID or GIVEN_BACK.
        api_keys, api_versions: of a request as in its header, else as given; -1 is none.
        header, body: Kafka's JSON, as ``orjson.dumps`` would write what Codec.decode gives.
        batches: JSON list of the batch summaries, empty if there are none.
        client_id: raw text.
    """

    outcomes: Bytes
    api_keys: Ints
    api_versions: Ints
    header: Texts
    body: Texts
    batches: Texts
    client_id: Texts


def read_batch(
    frames: Sequence[bytes], is_response: Bools, api_keys: Ints, api_versions: Ints, flags: Ints
) -> ReadBatch:
    """Read frames by the kernel. Never raises on a frame's account: what it cannot read, it gives back.

    Args:
        frames: bytes without Kafka's length prefix.
        is_response, flags: of each frame, as for Codec.decode.
        api_keys, api_versions: of the request, decoder.protocol.NONE if it was not seen.
    """
    count, read = len(frames), joined(frames)
    total = int(read.offsets[-1])
    columns = [
        np.empty(size, np.uint8)
        for size in (192 * count + 4096, 3 * total + 512 * count + 4096, total + 256 * count + 4096, 32 * count + 4096)
    ]
    ends = np.zeros((max(count, 1), kernel.COLUMNS), np.int64)
    outcomes = np.empty(count, np.uint8)
    keys, versions = np.empty(count, np.int64), np.empty(count, np.int64)
    given = (is_response.view(np.uint8), api_keys, api_versions, flags)
    tables = kernel_tables()
    stack, where = np.zeros(STACK, np.int64), np.zeros((4, 2), np.int64)
    done = 0
    while done < count:
        done = kernel.read_frames(
            tables, stack, where, read.data, read.offsets, *given, done, *columns, ends, outcomes, keys, versions
        )
        if done < count:
            columns = [_doubled(column, int(ends[done - 1, i]) if done else 0) for i, column in enumerate(columns)]
    texts = [
        Texts(column, np.concatenate(([0], ends[:count, number])))
        for number, column in enumerate(columns)
    ]  # fmt: skip
    return ReadBatch(outcomes, keys, versions, *texts)


def _doubled(column: Bytes, used: int) -> Bytes:
    """A column with twice the room, and what it holds so far: the rest is not touched, and so takes no memory."""
    larger = np.empty(2 * len(column), np.uint8)
    larger[:used] = column[:used]
    return larger


def read_many(frames: Sequence[bytes], is_response: Bools, api_keys: Ints, api_versions: Ints, flags: Ints) -> ManyRead:
    """See decoder.protocol.WireProtocol.decode_many."""
    read = read_batch(frames, is_response, api_keys, api_versions, flags)
    is_read = read.outcomes != kernel.GIVEN_BACK
    columns = {
        "api_name": Column(np.where(is_read, read.api_keys, 0), is_read, _api_names()),
        "client_id": Column(read.client_id, read.outcomes == kernel.DECODED),
        "header": Column(read.header, is_read),
        "body": Column(read.body, is_read),
        "record_batches": Column(read.batches, np.diff(read.batches.offsets) > 0),
    }
    embedded = dict(embedded_in(read, is_response, flags))
    if embedded:
        texts = [json_text(embedded[number]) if number in embedded else None for number in range(len(frames))]
        columns["embedded"] = Column(texts, is_read)
    return ManyRead(is_read, columns)


def embedded_in(batch: ReadBatch, is_response: Bools, flags: Ints) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Number and ``Message.embedded`` of each frame that the kernel read and that carries messages inside.

    Args:
        batch: what the kernel made of the frames.
        is_response, flags: as they were given to :func:`read_batch`.
    """
    may_carry = np.isin(batch.api_keys, list(EMBEDDING_APIS)) & (batch.outcomes != kernel.GIVEN_BACK)
    for number in np.flatnonzero(may_carry).tolist():
        body = orjson.loads(batch.body[number])
        message = Message({}, body, "ok", api_key=int(batch.api_keys[number]))
        direction: Direction = "response" if is_response[number] else "request"
        found = embedded_messages(compile_programs(), message, direction, int(flags[number]))
        if found:
            yield number, found


@lru_cache(maxsize=1)
def _api_names() -> list[str | None]:
    """Name of each api key, by its number."""
    names = compile_programs().api_names
    return [names.get(key) for key in range(max(names) + 1)]


@lru_cache(maxsize=1)
def kernel_tables() -> Tables:
    """The programs as the kernel takes them."""
    programs = compile_programs()
    names, name_at = end_to_end(
        [f'"{name}":' for name in programs.names] + [f'"{name}SizeInBytes":' for name in programs.names]
    )
    defaults, default_at = end_to_end(
        [json.dumps(value, separators=(",", ":"), ensure_ascii=False) for value in programs.constants]
    )
    roles = np.array([_ROLES.get(name, 0) for name in programs.names], np.uint8)
    shape = (2, 1 + max(key for key, _ in programs.requests), 1 + max(v for _, v in programs.requests))
    bodies, headers = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
    for (key, version), entry in programs.requests.items():
        bodies[0, key, version] = entry.start
        header_version = request_header_version(key, version, entry.flexible)
        headers[0, key, version] = programs.headers["RequestHeader", header_version].start
    for (key, version), entry in programs.responses.items():
        bodies[1, key, version] = entry.start
        header_version = response_header_version(key, entry.flexible)
        headers[1, key, version] = programs.headers["ResponseHeader", header_version].start
    is_batch_api = np.zeros(shape[:2], np.uint8)
    for direction, key in BATCHES_AT:
        is_batch_api[int(direction == "response"), key] = 1
    code = np.array(programs.code, np.int32)
    tables = Tables(code, names, name_at, roles, defaults, default_at, headers, bodies, is_batch_api)
    for table in tables:
        table.setflags(write=False)
    return tables
