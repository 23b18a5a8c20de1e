"""A capture in which captured Kafka traffic travels through Kafka: inside its frames stand whole frames of others.

What looks for frame boundaries after a loss finds thousands that are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from pipeline.capture.packets.packet import Packet
from pipeline.capture.packets.sources import read_packets
from tests.decoder.kafka.batches import batch, record
from tests.decoder.kafka.encode import request, response
from tests.hostile.harm import segment_of
from tests.pipeline.capture.wire import Flow, prefixed

TOPIC = "wire"


def nested(path: Path, seed: int = 1) -> list[Packet]:
    """A producer and a consumer carry the streams of a recorded capture.

    Not their own: copies of frames that this very connection has just sent, where those were lost, look the same.
    """
    source = Random(seed)
    producer = Flow(client=("127.0.0.1", 40_001), server=("127.0.0.1", 9092), isn=(1000, 5000)).open()
    consumer = Flow(client=("127.0.0.1", 40_002), server=("127.0.0.1", 9092), isn=(7000, 9000)).open()
    offset = 0
    for number, chunk in enumerate(_chunks(path, source), 1):
        records = batch([record(b"key", chunk), record(None, b"")], base_offset=offset)
        offset += 2
        consumer.ts = producer.ts = max(consumer.ts, producer.ts)
        producer.send(0, prefixed(_produce(number, records)), 60_000)
        producer.send(1, prefixed(_produced(number, offset)), 60_000).acknowledge(0)
        consumer.send(0, prefixed(_fetch(number, offset)), 60_000)
        consumer.send(1, prefixed(_fetched(number, offset, records)), 60_000).acknowledge(0)
    return sorted([*producer.close().packets, *consumer.close().packets], key=lambda packet: packet.ts_us)


def _chunks(path: Path, source: Random) -> Iterator[bytes]:
    """Pieces of the streams of a capture."""
    streams: dict[object, bytearray] = {}
    for packet in read_packets(str(path)):
        segment = segment_of(packet)
        if segment is not None:
            streams.setdefault((segment.source, segment.destination), bytearray()).extend(segment.payload)
    for stream in streams.values():
        at = 0
        while at < len(stream):
            size = source.choice((100, 500, 2000, 8000))
            yield bytes(stream[at : at + size])
            at += size


def _produce(number: int, records: bytes) -> bytes:
    topic = {"name": TOPIC, "partitionData": [{"index": 0, "records": records}]}
    body = {"acks": -1, "timeoutMs": 1500, "topicData": [topic]}
    return request(0, 8, body, client_id="mirror-producer", correlation_id=number)


def _produced(number: int, offset: int) -> bytes:
    topic = {"name": TOPIC, "partitionResponses": [{"index": 0, "baseOffset": offset}]}
    return response(0, 8, {"responses": [topic]}, correlation_id=number)


def _fetch(number: int, offset: int) -> bytes:
    partition = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
    body = {"maxWaitMs": 500, "minBytes": 1, "topics": [{"topic": TOPIC, "partitions": [partition]}]}
    return request(1, 11, body, client_id="mirror-consumer", correlation_id=number)


def _fetched(number: int, offset: int, records: bytes) -> bytes:
    partition = {"partitionIndex": 0, "highWatermark": offset, "records": records}
    return response(1, 11, {"responses": [{"topic": TOPIC, "partitions": [partition]}]}, correlation_id=number)
