"""The decoder reads the messages inside bytes fields as Kafka's own classes do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pytest

from decoder import Codec
from decoder.kafka.codec.embedded import ASSIGNMENT, SUBSCRIPTION
from decoder.kafka.codec.program import compile_programs
from tests.oracle.oracle import RELEASES, EmbeddedVector, embedded_vectors
from tests.oracle.test_differential import REDEFINED_SINCE, RENAMED_SINCE, renamed, without_additions
from tests.requirements import require_java, require_maven

pytestmark = pytest.mark.java

CODEC = Codec()
NEWEST = 3
ENVELOPE = 58


@dataclass(slots=True)
class Outcome:
    """What came of one release; ``kinds`` counts name and version of what was embedded."""

    total: int = 0
    equal: int = 0
    different: list[str] = field(default_factory=list)
    kinds: Counter[tuple[str, int]] = field(default_factory=Counter)
    outer: set[tuple[int, str, int]] = field(default_factory=set)


def expected_of(release: str, kafka: dict[str, Any]) -> dict[str, Any]:
    """Our form of what Kafka says."""
    names = RENAMED_SINCE[release].get((kafka.get("api_key", -1), kafka["version"], "request"), {})
    expected = {
        "path": kafka["path"], "name": kafka["name"], "version": kafka["version"], "status": "ok",
        "body": renamed(kafka["body"], names),
    }  # fmt: skip
    if "header" in kafka:
        expected["header"] = kafka["header"]
        expected["name"] = compile_programs().requests[kafka["api_key"], kafka["version"]].name
    elif kafka["version"] > NEWEST:
        expected["readAsVersion"] = NEWEST
    if kafka["trailing"]:
        expected["trailingBytes"] = kafka["trailing"]
    return expected


def check(release: str, vector: EmbeddedVector, outcome: Outcome) -> None:
    message = CODEC.decode(
        vector.frame, direction=vector.kind, api_key=vector.api_key, api_version=vector.version
    )  # fmt: skip
    assert message.status == "ok", vector
    outcome.outer.add((vector.api_key, vector.kind, vector.version))
    ours = without_additions(message.embedded)
    expected = [expected_of(release, each) for each in vector.embedded]
    outcome.total += len(expected)
    outcome.kinds.update((each["name"], each["version"]) for each in expected)
    equal = sum(a == b for a, b in zip(ours, expected, strict=False)) if len(ours) == len(expected) else 0
    outcome.equal += equal
    if equal != len(expected):
        outcome.different.append(f"{vector}: {ours} but Kafka says {expected}"[:2000])


@lru_cache
def run(release: str) -> Outcome:
    outcome = Outcome()
    for vector in embedded_vectors(release):
        check(release, vector, outcome)
    return outcome


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    require_java()
    require_maven()


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_embedded_message_equals_kafkas_json(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(release)
    with capsys.disabled():
        print(f"\nKafka {release}: {outcome.equal}/{outcome.total} embedded messages equal")
    assert not outcome.different
    assert outcome.equal == outcome.total > 2000


def test_every_version_of_the_consumer_protocol_and_newer_ones_are_among_them(release: str) -> None:
    kinds = run(release).kinds
    for name in (SUBSCRIPTION, ASSIGNMENT):
        versions = {version for found, version in kinds if found == name}
        assert versions == {0, 1, 2, 3, 4, 10, 32767}


def test_every_request_that_an_envelope_can_carry_is_among_them(release: str) -> None:
    forwarded = {kind for kind in run(release).kinds if kind[0] not in (SUBSCRIPTION, ASSIGNMENT)}
    assert len(forwarded) > 280
    assert not REDEFINED_SINCE[release] & {(ENVELOPE, 0, "request")}


def test_they_stand_in_every_version_of_the_group_apis() -> None:
    outer = set().union(*(run(release).outer for release in RELEASES))
    programs = compile_programs()
    assert outer == {
        *((key, "request", version) for key, version in programs.requests if key in (11, 14)),
        *((key, "response", version) for key, version in programs.responses if key in (11, 14, 15)),
        *((15, "request", version) for key, version in programs.requests if key == 15),
        (ENVELOPE, "request", 0),
    }
