"""How does kafka-python read a frame, and a batch? It also writes the batches that all read."""

from __future__ import annotations

import importlib
import io
import pkgutil
from collections.abc import Iterator
from typing import Any

import kafka
import kafka.protocol
from kafka.protocol.api_message import ApiMessage
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from benchmarks.candidates import Candidate, PerItem
from benchmarks.corpus import CorpusFrame

_NAME = f"kafka-python {kafka.__version__}"


def _subclasses(of: type) -> Iterator[Any]:
    one: Any
    for one in of.__subclasses__():
        yield one
        yield from _subclasses(one)


def _classes() -> dict[tuple[str, int], Any]:
    """The class of each direction and api key."""
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and not module.name.endswith("generate_stubs"):
            importlib.import_module(module.name)
    found: dict[tuple[str, int], Any] = {}
    for one in _subclasses(ApiMessage):
        if one._json is not None:
            found.setdefault((one.type, one.API_KEY), one)
    return found


_CLASSES = _classes()


def _decode(frame: CorpusFrame) -> object:
    return _CLASSES[frame.direction, frame.api_key].decode(frame.data, version=frame.api_version, header=True)


def _ends_where_the_frame_ends(frame: CorpusFrame) -> bool:
    message = _CLASSES[frame.direction, frame.api_key]
    _decode(frame)
    data = io.BytesIO(frame.data)
    message.parse_header(data, version=frame.api_version)
    flexible = message.flexible_version_q(frame.api_version)
    read = message._struct.compiled_decode_from(
        frame.api_version, compact=flexible, tagged=flexible, data_class=message[None]
    )
    _, end = read(memoryview(frame.data), data.tell())
    return bool(end == len(frame.data))


def frame_readers() -> list[Candidate[CorpusFrame]]:
    return [PerItem(_NAME, "objects; records stay bytes", _decode, _ends_where_the_frame_ends)]


def _records(data: bytes) -> int:
    count = 0
    for batch in MemoryRecords(data):
        for record in batch:
            count += 1
            _ = record.offset, record.timestamp, record.key, record.value, record.headers
    return count


def record_readers() -> list[Candidate[bytes]]:
    return [PerItem(_NAME, "objects", _records)]


def build_batch(codec: int, records: list[tuple[bytes, bytes, list[tuple[str, bytes]]]]) -> bytes:
    """A v2 batch.

    Raises:
        AssertionError, UnsupportedCodecError: the codec's package is not installed.
    """
    builder = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=1 << 30)
    for index, (key, value, headers) in enumerate(records):
        builder.append(timestamp=1_700_000_000_000 + index, key=key, value=value, headers=headers)
    builder.close()
    return bytes(builder.buffer())
