"""How does kio read a frame, and a batch? By generated classes (the reader is native), and in plain Python."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.records.readers import read_batch
from kio.serial import entity_reader

from benchmarks.candidates import Candidate, PerItem
from benchmarks.corpus import CorpusFrame

_NAME = f"kio {version('kio')}"


@cache
def _readers(direction: str, api_key: int, api_version: int) -> tuple[Any, Any]:
    """Of header and body."""
    schema: Any = (load_request_schema if direction == "request" else load_response_schema)(api_key, api_version)
    return entity_reader(schema.__header_schema__), entity_reader(schema)


def _decode(frame: CorpusFrame) -> bool:
    read_header, read_body = _readers(frame.direction, frame.api_key, frame.api_version)
    _, size = read_header(frame.data, 0)
    _, rest = read_body(frame.data, size)
    return bool(size + rest == len(frame.data))


def frame_readers() -> list[Candidate[CorpusFrame]]:
    return [PerItem(_NAME, "objects; records stay bytes", _decode)]


def _records(data: bytes) -> int:
    batch, _ = read_batch(data, 0)
    return len(batch.records)


def record_readers() -> list[Candidate[bytes]]:
    return [PerItem(_NAME, "objects; checksum", _records)]
