"""How is the kernel compared with the plain reader? Frame by frame, text by text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import orjson

from decoder import Codec, Message
from decoder.kafka.batch import ReadBatch, embedded_in, read_batch
from decoder.kafka.codec.program import compile_programs
from decoder.kafka.kernel import bodies as kernel
from decoder.protocol import NONE

CODEC = Codec()


class Asked(NamedTuple):
    """A frame, and what its reader needs to know."""

    data: bytes
    direction: Any
    api_key: int | None
    api_version: int | None
    flags: int = 0


def read(frames: Sequence[Asked]) -> ReadBatch:
    return read_batch(
        [one.data for one in frames],
        np.array([one.direction == "response" for one in frames], np.bool_),
        np.array([NONE if one.api_key is None else one.api_key for one in frames], np.int64),
        np.array([NONE if one.api_version is None else one.api_version for one in frames], np.int64),
        np.array([one.flags for one in frames], np.int64),
    )


def plainly(one: Asked) -> Message:
    return CODEC.decode(
        one.data, direction=one.direction, api_key=one.api_key, api_version=one.api_version, flags=one.flags
    )


def differences(frames: Sequence[Asked], batch: ReadBatch, messages: Sequence[Message] | None = None) -> list[str]:
    """What the kernel gives otherwise than the plain reader, of the frames that it did not give back."""
    found = []
    for index, one in enumerate(frames):
        if batch.outcomes[index] == kernel.GIVEN_BACK:
            continue
        message = messages[index] if messages else plainly(one)
        ours = (batch.header[index], batch.body[index], batch.batches[index])
        client_id = batch.client_id[index].decode() if batch.outcomes[index] == kernel.DECODED else None
        batches = orjson.dumps(message.record_batches) if message.record_batches else b""
        if (
            message.status != "ok"
            or ours != (orjson.dumps(message.header), orjson.dumps(message.body), batches)
            or (batch.api_keys[index], batch.api_versions[index]) != (message.api_key, message.api_version)
            or client_id != message.client_id
        ):
            found.append(f"{one.direction} {one.api_key} v{one.api_version} {one.data.hex()}: {message.status}")
    return found


def messages(frames: Sequence[Asked]) -> list[Message]:
    """Each frame's message by the kernel where it can, else by the plain reader."""
    batch = read(frames)
    is_response = np.array([one.direction == "response" for one in frames], np.bool_)
    embedded = dict(embedded_in(batch, is_response, np.array([one.flags for one in frames], np.int64)))
    return [
        plainly(one)
        if batch.outcomes[index] == kernel.GIVEN_BACK
        else replace(_message(batch, index), embedded=embedded.get(index, []))
        for index, one in enumerate(frames)
    ]


def _message(batch: ReadBatch, index: int) -> Message:
    header, batches = orjson.loads(batch.header[index]), batch.batches[index]
    key = int(batch.api_keys[index])
    return Message(
        header=header,
        body=orjson.loads(batch.body[index]),
        status="ok",
        api_key=key,
        api_version=int(batch.api_versions[index]),
        api_name=compile_programs().api_names[key],
        client_id=header.get("clientId"),
        record_batches=orjson.loads(batches) if batches else [],
    )
