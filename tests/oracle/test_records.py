"""Does each record equal what Kafka's own classes read? Every format and codec, both our readers.

The newest release writes all formats, the old ones too; what an older release writes is compared by `make proofs`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pytest

from decoder.kafka.records.iteration import Record
from tests.decoder.kafka.kernel.same_records import read_both
from tests.oracle.oracle import RELEASES, RecordsVector, records_vectors
from tests.requirements import require_java, require_maven

pytestmark = pytest.mark.java


@dataclass(slots=True)
class Outcome:
    """What came of one release."""

    total: int = 0
    equal: int = 0
    different: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)


def as_kafka_says(record: Record) -> dict[str, Any]:
    facts = {
        name: getattr(record, name)
        for name in ("offset", "timestamp", "timestamp_type", "key_size", "value_size", "sequence", "is_control")
    }
    facts["key"], facts["value"] = _hex(record.key), _hex(record.value)
    facts["headers"] = [
        [name, _hex(value)] for name, value in zip(record.header_keys, record.header_values, strict=True)
    ]
    for name in ("control_type", "coordinator_epoch"):
        if getattr(record, name) is not None:
            facts[name] = getattr(record, name)
    return facts


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def check(vector: RecordsVector, outcome: Outcome) -> None:
    found = read_both(vector.field)
    outcome.total += len(vector.records)
    if bool(found.problems) != vector.is_damaged or len(found.records) != len(vector.records):
        outcome.different.append(f"{vector.name}: {len(found.records)} records, {found.problems}")
        return
    for record, kafka in zip(found.records, vector.records, strict=True):
        facts = {name: value for name, value in kafka.items() if name not in ("magic", "codec")}
        outcome.kinds[f"v{kafka['magic']} {kafka['codec']}"] += 1
        outcome.kinds["control"] += record.is_control
        outcome.kinds["LogAppendTime"] += record.timestamp_type == "LogAppendTime"
        outcome.kinds["null key"] += record.key is None
        outcome.kinds["null value"] += record.value is None
        outcome.kinds["headers"] += bool(record.header_keys)
        outcome.kinds["sequence"] += record.sequence >= 0
        outcome.kinds["sequence behind the wrap"] += record.sequence == 0 and record.offset > 0
        if as_kafka_says(record) == facts:
            outcome.equal += 1
        else:
            outcome.different.append(f"{vector.name}: offset {record.offset}")


@lru_cache
def run(release: str) -> Outcome:
    outcome = Outcome()
    for vector in records_vectors(release):
        check(vector, outcome)
    return outcome


@pytest.fixture(params=[RELEASES[0], *(pytest.param(older, marks=pytest.mark.proof) for older in RELEASES[1:])])
def outcome(request: pytest.FixtureRequest) -> Outcome:
    require_java()
    require_maven()
    return run(request.param)


def test_every_record_equals_kafkas(
    outcome: Outcome, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        release = request.node.callspec.params["outcome"]
        print(f"\nKafka {release}: {outcome.equal}/{outcome.total} records equal, by the plain reader and the kernel")
    assert not outcome.different
    assert outcome.equal == outcome.total > 50_000


def test_every_format_codec_and_kind_of_record_occurs(outcome: Outcome) -> None:
    for magic, codecs in {2: "none gzip snappy lz4 zstd", 1: "none gzip snappy lz4", 0: "none gzip snappy lz4"}.items():
        for name in codecs.split():
            assert outcome.kinds[f"v{magic} {name}"] > 1000
    kinds = ("control", "LogAppendTime", "null key", "null value", "headers", "sequence", "sequence behind the wrap")
    assert all(outcome.kinds[kind] for kind in kinds)


def test_snappy_comes_in_many_blocks() -> None:
    most = 0
    for vector in records_vectors(RELEASES[0]):
        at = vector.field.find(b"\x82SNAPPY\0")
        count, pos = 0, at + 16
        while at >= 0 and pos + 4 <= len(vector.field):
            pos += 4 + int.from_bytes(vector.field[pos : pos + 4], "big")
            count += 1
        most = max(most, count)
    assert most > 50
