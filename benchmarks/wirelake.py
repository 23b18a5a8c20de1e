"""How does Wirelake read a frame, and a batch? A new reader is one more line in a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from benchmarks.candidates import AllAtOnce, Candidate, PerItem
from benchmarks.corpus import CorpusFrame
from decoder import Codec
from decoder.columns import Bools
from decoder.kafka.batch import embedded_in, read_batch
from decoder.kafka.kernel.bodies import GIVEN_BACK
from decoder.kafka.kernel.records import read_columns
from decoder.kafka.records.iteration import read_records

_CODEC = Codec()
_AT_ONCE = 5000
"""Spark's maxRecordsPerBatch in conf/spark-defaults.conf."""


def _plain(frame: CorpusFrame) -> bool:
    message = _CODEC.decode(frame.data, direction=frame.direction, api_key=frame.api_key, api_version=frame.api_version)
    orjson.dumps(message.header)
    orjson.dumps(message.body)
    orjson.dumps(message.record_batches)
    return message.status == "ok"


@dataclass(frozen=True, slots=True)
class Batch:
    """Frames as Spark hands them over: columns."""

    frames: Sequence[CorpusFrame]
    data: list[bytes]
    is_response: np.ndarray[Any, Any]
    api_keys: np.ndarray[Any, Any]
    api_versions: np.ndarray[Any, Any]
    flags: np.ndarray[Any, Any]


def batches(frames: Sequence[CorpusFrame]) -> list[Batch]:
    pieces = [frames[start : start + _AT_ONCE] for start in range(0, len(frames), _AT_ONCE)]
    return [
        Batch(
            some,
            [frame.data for frame in some],
            np.array([frame.direction == "response" for frame in some]),
            np.array([frame.api_key for frame in some]),
            np.array([frame.api_version for frame in some]),
            np.zeros(len(some), np.int64),
        )
        for some in pieces
    ]


def _as_in_spark(given: list[Batch]) -> Bools:
    """All columns of bronze.frames: messages inside messages too, which no other candidate reads."""
    return _by_kernel(given, with_embedded=True)


def _by_kernel(given: list[Batch], *, with_embedded: bool = False) -> Bools:
    """With the plain reader for what the kernel gives back."""
    marks = [np.zeros(0, bool)]
    for one in given:
        batch = read_batch(one.data, one.is_response, one.api_keys, one.api_versions, one.flags)
        if with_embedded:
            for _, embedded in embedded_in(batch, one.is_response, one.flags):
                orjson.dumps(embedded)
        marks.append(with_plain(batch.outcomes != GIVEN_BACK, one.frames, _plain))
    return np.concatenate(marks)


def with_plain(understood: Bools, frames: Sequence[CorpusFrame], read: Callable[[CorpusFrame], bool]) -> Bools:
    """Which frames are understood when ``read`` takes those that the kernel gave back."""
    for number in np.flatnonzero(~understood).tolist():
        understood[number] = read(frames[number])
    return understood


def frame_readers() -> list[Candidate[CorpusFrame]]:
    return [
        AllAtOnce("Wirelake, kernel", "JSON text, batch headers, checksums", batches, _by_kernel),
        AllAtOnce("Wirelake, kernel", "the same and embedded messages", batches, _as_in_spark),
        PerItem("Wirelake, plain reader", "JSON text, batch headers, checksums", _plain),
    ]


def record_readers() -> list[Candidate[bytes]]:
    return [
        PerItem("Wirelake, kernel", "columns", lambda data: len(read_columns(data, 0, len(data)).offset)),
        PerItem("Wirelake, plain reader", "objects", lambda data: len(read_records(data, 0, len(data)).records)),
    ]
