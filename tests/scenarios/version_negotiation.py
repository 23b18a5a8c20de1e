"""How clients and brokers find common versions: unknown versions and keys, refusals, fallbacks, on brokers old and new.

A raw client asks Kafka 4.4.0 for ApiVersions 99 (answered in version 0 with error 35), falls back to version 0, then
sends an unknown api key and Produce v0 (both times the broker closes). librdkafka and kafka-python negotiate with
either broker; the 0.10.2.2 broker knows ApiVersions v0 only and answers newer versions in v0 with error 35, too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.scenarios import librdkafka as rd
from tests.scenarios import python_client as kp
from tests.scenarios.raw import API_VERSIONS, API_VERSIONS_FLEXIBLE, PRODUCE, UNKNOWN_API, RawClient, string
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1", "kafka010": "127.0.0.2"}
TOPIC = "greetings"
UNSUPPORTED_VERSION = 35
FINDINGS = {
    ("unsupported_version", "raw-new/Produce v0"),
    ("unsupported_version", "raw-new/api 999 v0"),
    ("kip896_incompatible_client", "raw-new"),
    ("old_message_format", TOPIC),
}


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Play all negotiations one after another."""
    new, old = bootstraps["kafka4"], bootstraps["kafka010"]
    rd.create_topics(truth, new, {TOPIC: 1})
    _raw(truth, new)
    _libraries(truth, new, "new")
    with RawClient(truth, old, "raw-old") as raw:
        _ask_for_version_99(raw)
    _libraries(truth, old, "old")
    capture_over()


def _raw(truth: Truth, bootstrap: str) -> None:
    with RawClient(truth, bootstrap, "raw-new") as raw:
        _ask_for_version_99(raw)
        assert raw.call(API_VERSIONS, 3, API_VERSIONS_FLEXIBLE, flexible=True) is not None
    with RawClient(truth, bootstrap, "raw-new") as raw:
        assert raw.call(UNKNOWN_API, 0, b"\0\0\0\0") is None, "the broker answered an unknown api key"
    with RawClient(truth, bootstrap, "raw-new") as raw:
        # acks 1, timeout 1000 ms, one topic, one partition, an empty message set
        body = struct.pack(">hii", 1, 1000, 1) + string(TOPIC) + struct.pack(">iii", 1, 0, 0)
        assert raw.call(PRODUCE, 0, body) is None, "the broker answered Produce v0"


def _ask_for_version_99(raw: RawClient) -> None:
    """Ask for a version that no broker has, be told so, fall back to version 0 on the same connection."""
    answer = raw.call(API_VERSIONS, 99, API_VERSIONS_FLEXIBLE, flexible=True)
    assert answer is not None, "the broker closed on ApiVersions v99"
    (error,) = struct.unpack_from(">h", answer)
    assert error == UNSUPPORTED_VERSION, error
    assert raw.call(API_VERSIONS, 0, b"") is not None, "the broker closed on ApiVersions v0"


def _libraries(truth: Truth, bootstrap: str, age: str) -> None:
    with rd.Sender(truth, bootstrap, f"rdkafka-{age}", TOPIC, partitions=1, interval_s=0.02, count=5) as sender:
        sender.join()
    kp.produce(truth, bootstrap, f"python-{age}", TOPIC, partitions=1, count=5)
    reader = f"rdkafka-reader-{age}"
    with rd.GroupMember(truth, bootstrap, reader, f"readers-{age}", TOPIC):
        truth.wait_for(1, client_id=reader, kind="consumed", offset=9)
        truth.wait_for(1, client_id=reader, kind="commit_ok", offset=10)
