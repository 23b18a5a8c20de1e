"""Records of a frame with topic and partition: Produce requests, Fetch and ShareFetch responses.

Kept apart from decoding the frame: most who read a message need the headers of its batches only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from decoder.kafka.codec.bodies import FieldSpan
from decoder.kafka.codec.messages import BATCHES_AT, decode_frame
from decoder.kafka.codec.program import Programs
from decoder.kafka.records.compression import Budget
from decoder.kafka.records.iteration import BatchProblem, Record, read_records
from decoder.model import Direction, FrameFlags, Status


@dataclass(frozen=True, slots=True)
class PartitionRecords:
    """The records of one records field.

    Attributes:
        topic: its name; None from Produce v13 and Fetch v13 on, which give only the id (KIP-516).
        topic_id: Kafka's base64url form; None before.
        start, end: the field in the frame, end exclusive: what ``read_records`` and ``read_columns`` take.
        records, problems: see :class:`~decoder.kafka.records.iteration.RecordsResult`. A batch whose records the
            payload policy overwrote is a problem ``payload_removed``.
    """

    topic: str | None
    topic_id: str | None
    partition: int
    start: int
    end: int
    records: list[Record] = field(default_factory=list)
    problems: list[BatchProblem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FrameRecords:
    """The records of one frame.

    Attributes:
        status, error_code, error_offset, error_detail: of the frame, see :class:`~decoder.model.Message`.
        partitions: in the order of the frame, without those whose records are null; empty for a frame that carries no
            records.
    """

    status: Status
    error_code: str | None
    error_offset: int | None
    error_detail: str | None
    partitions: list[PartitionRecords]


def read_frame_records(
    programs: Programs,
    data: bytes,
    direction: Direction,
    api_key: int | None,
    api_version: int | None,
    flags: int = 0,
    *,
    payload: bool = False,
) -> FrameRecords:
    """Decode a frame and read its records. Never raises, whatever the bytes. Arguments as for ``decode_frame``.

    Args:
        payload: keep the bytes of keys, values and headers.
    """
    spans: list[FieldSpan] = []

    def keep_records(span: FieldSpan) -> None:
        if span.type.endswith("records") and span.value is not None:
            spans.append(span)

    message = decode_frame(programs, data, direction, api_key, api_version, flags, keep_records)
    names = BATCHES_AT.get((direction, -1 if message.api_key is None else message.api_key))
    budget = Budget()
    partitions = []
    for span in spans if names else ():
        topic, partition = _where(message.body, span.path)
        result = read_records(
            data, span.content_start, span.end, payload=payload, budget=budget,
            removed=bool(flags & FrameFlags.PAYLOAD_REMOVED),
        )  # fmt: skip
        partitions.append(
            PartitionRecords(
                topic=topic.get("name", topic.get("topic")),
                topic_id=topic.get("topicId"),
                partition=partition[names[2]] if names else -1,
                start=span.content_start,
                end=span.end,
                records=result.records,
                problems=result.problems,
            )
        )
    return FrameRecords(message.status, message.error_code, message.error_offset, message.error_detail, partitions)


def _where(body: dict[str, Any], path: tuple[str | int, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The topic and the partition of a records field: ``(topics, 0, partitions, 1, records)``."""
    topic: dict[str, Any] = body[str(path[0])][path[1]]
    return topic, topic[str(path[2])][path[3]]
