"""The records of a message, each as one line, for ``wirelake decode --records``."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from rich.text import Text

from decoder import Codec
from decoder.kafka.codec.frame_records import PartitionRecords
from decoder.kafka.records.iteration import BatchProblem, Record
from pipeline.commands.messages.descriptions import Describers
from pipeline.commands.messages.messages import Decoded, iso_time
from pipeline.terminal.console import printable

Item = tuple[PartitionRecords, Record | BatchProblem]


def records_of(decoded: Decoded, codec: Codec, describers: Describers, *, payload: bool) -> Iterator[Item]:
    """The records of a message with their partition, then why some of that partition could not be read.

    A topic that stands by its id has its name, too, if a response named it before.
    """
    frame = decoded.frame
    found = codec.records(
        frame.frame,
        protocol=frame.protocol,
        direction=frame.direction,
        api_key=frame.api_key,
        api_version=frame.api_version,
        flags=frame.flags,
        payload=payload,
    )
    for one in found.partitions:
        is_named = one.topic is not None or one.topic_id is None
        partition = one if is_named else replace(one, topic=describers.topic_of(decoded, one.topic_id or ""))
        for record in partition.records:
            yield partition, record
        for problem in partition.problems:
            yield partition, problem


def record_object(decoded: Decoded, item: Item, *, payload: bool) -> dict[str, Any]:
    """One record as the JSON object of ``wirelake decode --records --json``; bytes are base64."""
    partition, record = item
    common = {
        "frame": decoded.number,
        "ts": iso_time(decoded.frame.ts),
        "api_name": decoded.message.api_name,
        "topic": partition.topic,
        "topic_id": partition.topic_id,
        "partition": partition.partition,
    }
    if isinstance(record, BatchProblem):
        return common | {
            "error_code": record.error_code,
            "error_offset": record.error_offset,
            "error_detail": record.error_detail,
        }
    common |= {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": record.timestamp_type,
        "key_size": record.key_size,
        "value_size": record.value_size,
        "headers": list(record.header_keys),
        "sequence": record.sequence,
        "control_type": record.control_type,
    }
    if payload:
        common["key"], common["value"] = _text(record.key), _text(record.value)
        common["header_values"] = [_text(value) for value in record.header_values]
    return common


def record_line(decoded: Decoded, item: Item, *, payload: bool) -> Text:
    """One record for a person to read."""
    partition, record = item
    text = Text()
    text.append(f"{decoded.number:>6} ", "dim")
    text.append(f"{printable(str(partition.topic or partition.topic_id))}-{partition.partition} ", "bold")
    if isinstance(record, BatchProblem):
        text.append(f"{record.error_code} at byte {record.error_offset}: {record.error_detail}", "red")
        return text
    text.append(f"@{record.offset} ", "blue")
    if record.timestamp >= 0:
        text.append(f"{_time(record.timestamp)} ")
    if record.is_control:
        text.append(f"marker {record.control_type}", "yellow")
        return text
    text.append(f"key {_size(record.key_size)} value {_size(record.value_size)}")
    if record.header_keys:
        text.append(f" headers {', '.join(map(repr, record.header_keys))}", "magenta")
    if payload:
        text.append(f" {record.key!r} {record.value!r}")
    return text


def _time(ms: int) -> str:
    """A record's time (ms since the epoch) in UTC; as it is, where no calendar has such a day."""
    try:
        moment = datetime.fromtimestamp(ms // 1000, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03d}"


def _size(size: int | None) -> str:
    return "null" if size is None else f"{size} B"


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")
