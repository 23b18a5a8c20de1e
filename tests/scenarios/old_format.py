"""Old clients on Kafka 0.10.2.2: message sets v0 and v1 with every codec of their time, requests Kafka 4 refuses.

Java 0.9.0.1 writes magic 0 (Produce v1), Java 0.10.2.2 magic 1 (Produce v2), kafka-python told to be as old as 0.8,
0.9 and 0.10 the same, a raw client Produce v0 and Fetch v0. Two Java groups read all and commit.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from tests.scenarios import librdkafka as rd
from tests.scenarios import python_client as kp
from tests.scenarios.java_client import JavaClient
from tests.scenarios.raw import FETCH, PRODUCE, RawClient, string
from tests.scenarios.truth import Truth

BROKERS = {"kafka010": "127.0.0.1"}
JAVA_VERSIONS = ("0.9.0.1", "0.10.2.2")
CODECS = ("none", "gzip", "snappy", "lz4")
COUNT = 12
PYTHON_VERSIONS = {"python-08": (0, 8, 2), "python-09": (0, 9), "python-10": (0, 10)}
_UNASKED = [f"java-0.9.0.1-{codec}" for codec in CODECS]
_UNASKED += [f"{name}-{codec}" for name in ("python-08", "python-09") for codec in ("none", "gzip")]
_UNASKED += ["reader-0.9.0.1", "reader-python-09", "reader-python-10", "raw-v0"]
FINDINGS = {
    *(("old_message_format", topic) for topic in ("java-0.9.0.1", "java-0.10.2.2", "python")),
    *(("kip896_incompatible_client", client) for client in _UNASKED),
}
"""The producers of Java 0.10.2.2 and python-10 ask the broker for its versions, and it has no newer ones: nothing can
be said of them. The reader of python-10 asks, too, and uses older versions than it could."""


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Write with every client and codec, read everything back, commit."""
    bootstrap = bootstraps["kafka010"]
    topics = {}
    for version in JAVA_VERSIONS:
        topic = f"java-{version}"
        for codec in CODECS:
            options: dict[str, Any] = {"topic": topic, "count": COUNT, "compression": codec, "bootstrap": bootstrap}
            name = f"java-{version}-{codec}"
            with JavaClient(truth, "produce", client_id=name, version=version, **options) as client:
                client.wait()
        topics[topic] = COUNT * len(CODECS)
    for name, api_version in PYTHON_VERSIONS.items():
        for compression in (None, "gzip"):
            client_id = f"{name}-{compression or 'none'}"
            config = {"compression_type": compression, "api_version": api_version}
            kp.produce(truth, bootstrap, client_id, "python", partitions=1, count=COUNT, **config)
    topics["python"] = COUNT * 2 * len(PYTHON_VERSIONS)
    _read(truth, bootstrap, topics)
    _raw(truth, bootstrap)
    groups = [f"readers-{name}" for name in (*JAVA_VERSIONS, "python-09", "python-10")]
    for topic in topics:
        committed = {group: rd.committed(truth, bootstrap, group, topic, 1) for group in groups}
        ends = rd.high_watermarks(truth, bootstrap, topic, 1)
        truth.outcome(**{topic: {"high_watermark": ends, "committed": committed}})
    capture_over()


def _read(truth: Truth, bootstrap: str, topics: dict[str, int]) -> None:
    """Let old consumers read: each topic by both Java versions, the one of kafka-python also by kafka-python."""
    for version in JAVA_VERSIONS:
        for topic, count in topics.items():
            options: dict[str, Any] = {"topic": topic, "count": count, "bootstrap": bootstrap}
            options["group"] = f"readers-{version}"
            with JavaClient(truth, "consume", client_id=f"reader-{version}", version=version, **options) as client:
                client.wait()
    for name, api_version in PYTHON_VERSIONS.items():
        if api_version < (0, 9):
            continue  # groups came with 0.9
        reader = f"reader-{name}"
        with kp.GroupMember(truth, bootstrap, reader, f"readers-{name}", "python", api_version=api_version):
            truth.wait_for(1, client_id=reader, kind="commit_ok", offset=topics["python"])


def _raw(truth: Truth, bootstrap: str) -> None:
    """Write one message by Produce v0 and fetch it by Fetch v0."""
    message = struct.pack(">bb", 0, 0) + struct.pack(">i", 3) + b"key" + struct.pack(">i", 5) + b"value"
    message = struct.pack(">I", zlib.crc32(message)) + message
    message_set = struct.pack(">qi", 0, len(message)) + message
    with RawClient(truth, bootstrap, "raw-v0") as raw:
        body = struct.pack(">hii", 1, 1000, 1) + string("python")
        body += struct.pack(">iii", 1, 0, len(message_set)) + message_set
        answer = raw.call(PRODUCE, 0, body)
        assert answer is not None, "the broker closed on Produce v0"
        *_, error, offset = struct.unpack(">i8siihq", answer)
        assert error == 0, error
        truth.add("raw-v0", "produced", topic="python", partition=0, offset=offset)
        # replica -1, wait at most 500 ms for 1 byte, one topic, one partition from this offset, 4096 bytes
        body = struct.pack(">iiii", -1, 500, 1, 1) + string("python") + struct.pack(">iiqi", 1, 0, offset, 4096)
        assert raw.call(FETCH, 0, body) is not None
        truth.add("raw-v0", "consumed", topic="python", partition=0, first_offset=offset, offset=offset, count=1)
