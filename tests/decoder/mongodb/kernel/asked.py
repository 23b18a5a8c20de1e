"""How is MongoDB's kernel compared with the plain readers? Message by message, text by text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import orjson

from decoder import Codec, Message
from decoder.model import Direction
from decoder.mongodb.batch import NONE, Fronts, ReadBatch, read_batch, read_fronts
from decoder.mongodb.codec.compression import COMPRESSORS
from decoder.mongodb.codec.summary import Summary, summarise
from decoder.mongodb.codec.wire import Header
from decoder.mongodb.kernel import fronts as kernel_fronts
from decoder.mongodb.kernel import messages as kernel

CODEC = Codec()


class Given(Protocol):
    """A message, and what its reader needs to know."""

    @property
    def data(self) -> bytes: ...
    @property
    def direction(self) -> Direction: ...
    @property
    def flags(self) -> int: ...


class Asked(NamedTuple):
    data: bytes
    direction: Direction = "request"
    flags: int = 0


def plainly(one: Given) -> Message:
    return CODEC.decode(one.data, protocol="mongodb", direction=one.direction, flags=one.flags)


def compare(given: Sequence[Given], messages: Sequence[Message] | None = None) -> list[bool]:
    """Which messages the kernel reads; what it reads must be what the plain reader gives (``messages``, if known)."""
    flags = np.array([one.flags for one in given], np.int64)
    batch = read_batch([one.data for one in given], _is_response(given), flags)
    is_read = (batch.outcomes != kernel.GIVEN_BACK).tolist()
    for index in np.flatnonzero(is_read).tolist():
        plain = messages[index] if messages is not None else plainly(given[index])
        assert (plain.status, plain.embedded, plain.record_batches) == ("ok", [], []), given[index]
        wanted = orjson.dumps(plain.header), orjson.dumps(plain.body), plain.api_name, plain.client_id
        assert _texts(batch, index) == wanted, given[index]
    return is_read


def compare_fronts(given: Sequence[Given]) -> list[bool]:
    """Which fronts the kernel reads; what it reads must be what ``summarise`` gives."""
    flags = np.array([one.flags for one in given], np.int64)
    fronts = read_fronts([one.data for one in given], _is_response(given), flags)
    is_read = (fronts.rows[:, kernel_fronts.READ] != 0).tolist()
    for index in np.flatnonzero(is_read).tolist():
        one = given[index]
        assert _summary(fronts, index) == summarise(one.data, one.direction, one.flags), one
    return is_read


def _is_response(given: Sequence[Given]) -> np.ndarray:
    return np.array([one.direction == "response" for one in given], np.bool_)


def _texts(batch: ReadBatch, index: int) -> tuple[bytes, bytes, str | None, str | None]:
    outcome = batch.outcomes[index]
    name = batch.api_name[index].decode() if outcome & kernel.HAS_NAME else None
    client_id = batch.client_id[index].decode() if outcome & kernel.HAS_CLIENT_ID else None
    return batch.header[index], batch.body[index], name, client_id


def _summary(fronts: Fronts, index: int) -> Summary:
    row, compressor = fronts.rows[index].tolist(), fronts.compressors[index]
    places = zip(row[kernel_fronts.COMMAND :: 2], row[kernel_fronts.COMMAND_END :: 2], strict=True)
    texts = (
        None if begin == NONE else fronts.data[begin:end].tobytes().decode(errors="replace") for begin, end in places
    )
    header = Header(*row[kernel_fronts.LENGTH : kernel_fronts.OPCODE])
    name = None if compressor == NONE else COMPRESSORS[int(compressor)]
    return Summary(header, row[kernel_fronts.OPCODE], name, row[kernel_fronts.FLAGS], *texts)
