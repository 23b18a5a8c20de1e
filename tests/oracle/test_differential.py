"""The decoder gives what Kafka's own classes give, for every api, version and kind of two releases.

Between the two every version of the schema table is covered: the newest release has the newest versions, 3.9 those that
KIP-896 removed. What both have is compared with the newest; `make proofs` compares it with the older one too.
"""

from __future__ import annotations

import base64
import gc
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pytest

from decoder import Codec, Message
from decoder.kafka.codec.program import compile_programs
from decoder.kafka.errors import ERROR_NAMES
from decoder.kafka.kernel import bodies as kernel
from tests.decoder.kafka.kernel.asked import Asked, differences, read
from tests.oracle.oracle import RELEASES, SEEDS, Vector, error_names, vectors
from tests.requirements import require_java, require_maven

pytestmark = pytest.mark.java

_ADDITIONS = ("recordBatches", "unknownTaggedFields")
"""What our JSON has beside Kafka's; compared on its own."""

Renames = dict[str, str]
Sort = tuple[int, int, str]
"""Api key, version and kind."""

RENAMED_SINCE: dict[str, dict[tuple[int, int, str], Renames]] = {
    "4.4.0": {},
    "3.9.2": {
        (28, 3, "request"): {"generationId": "generationIdOrMemberEpoch"},
        (28, 4, "request"): {"generationId": "generationIdOrMemberEpoch"},
        (52, 0, "request"): {"candidateEpoch": "replicaEpoch", "candidateId": "replicaId"},
        (52, 1, "request"): {
            "candidateEpoch": "replicaEpoch",
            "candidateId": "replicaId",
            "candidateDirectoryId": "replicaDirectoryId",
        },
        (74, 0, "response"): {"clientMetricsResources": "configResources", "name": "resourceName"},
    },
}
"""Fields that a later release calls otherwise, and we with it; their bytes are the same."""

REDEFINED_SINCE = {"4.4.0": set(), "3.9.2": {(87, 0, "response")}}
"""Versions whose bytes a later release changed, which Kafka allows itself only before a version is released:
ReadShareGroupStateSummary v0 got a leader epoch in the middle. The table has what was released."""


@dataclass(slots=True)
class Outcome:
    """What came of one release."""

    total: int = 0
    equal: int = 0
    redefined: int = 0
    different: list[str] = field(default_factory=list)
    wrong_tags: list[str] = field(default_factory=list)
    wrong_batches: list[str] = field(default_factory=list)
    tags: int = 0
    batches: Counter[str] = field(default_factory=Counter)
    frames: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    by_kernel: int = 0
    left_to_plain: Counter[str] = field(default_factory=Counter)
    kernel_differences: list[str] = field(default_factory=list)
    equal_frames: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)


def without_additions(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_additions(part) for name, part in value.items() if name not in _ADDITIONS}
    return [without_additions(part) for part in value] if isinstance(value, list) else value


def renamed(value: Any, names: Renames) -> Any:
    if isinstance(value, dict):
        return {names.get(name, name): renamed(part, names) for name, part in value.items()}
    return [renamed(part, names) for part in value] if isinstance(value, list) else value


def all_tags(value: Any, pointer: str = "") -> Iterator[tuple[str, int, bytes]]:
    """Struct (as JSON pointer), tag and content of each unknown tagged field that the decoder kept."""
    if isinstance(value, dict):
        for tag, content in value.get("unknownTaggedFields", {}).items():
            yield pointer, int(tag), base64.b64decode(content, validate=True)
        for name, part in value.items():
            if name not in _ADDITIONS:
                yield from all_tags(part, f"{pointer}/{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from all_tags(part, f"{pointer}/{index}")


def expected_tags(added: list[dict[str, Any]], names: Renames) -> list[tuple[str, int, bytes]]:
    return sorted(
        ("/".join(names.get(part, part) for part in tag["pointer"].split("/")), tag["tag"],
         base64.b64decode(tag["content"]))
        for tag in added
    )  # fmt: skip


def all_record_fields(value: Any) -> Iterator[list[dict[str, Any]]]:
    """The batches of each records field, in order."""
    if isinstance(value, dict):
        if "recordBatches" in value:
            yield value["recordBatches"]
        for name, part in value.items():
            if name not in _ADDITIONS:
                yield from all_record_fields(part)
    elif isinstance(value, list):
        for part in value:
            yield from all_record_fields(part)


def batch_difference(ours: list[dict[str, Any]], kafka: dict[str, Any]) -> str | None:
    """Every fact that Kafka tells of the batches of one field must be in our summary, with the same value."""
    whole = [batch for batch in ours if batch["status"] == "ok"]
    partial = [batch for batch in ours if batch["status"] == "partial"]
    if len(whole) + len(partial) != len(ours) or len(whole) != len(kafka["batches"]):
        return f"{[batch['status'] for batch in ours]} but Kafka sees {len(kafka['batches'])} batches"
    tail = 0 if not kafka["partialBytes"] else 1
    if len(partial) != tail:
        return f"{len(partial)} partial batches, {kafka['partialBytes']} bytes left over"
    for batch, facts in zip(whole, kafka["batches"], strict=True):
        wrong = {name: (batch.get(name, "absent"), fact) for name, fact in facts.items() if batch.get(name) != fact}
        if wrong or not facts.keys() <= batch.keys():
            return f"ours, Kafka's: {wrong}"
    return None


def check(vector: Vector, message: Message, names: Renames, outcome: Outcome) -> None:
    header, body = without_additions(message.header), without_additions(message.body)
    if message.status == "ok" and header == vector.header and body == renamed(vector.body, names):
        outcome.equal += 1
    else:
        outcome.different.append(f"{vector}: {message.status} {message.error_detail}")
    for ours, added in ((message.header, vector.header_tags), (message.body, vector.body_tags)):
        outcome.tags += len(added)
        if sorted(all_tags(ours)) != expected_tags(added, names):
            outcome.wrong_tags.append(str(vector))
    fields = list(all_record_fields(message.body))
    if len(fields) != len(vector.records):
        outcome.wrong_batches.append(f"{vector}: {len(fields)} records fields, Kafka has {len(vector.records)}")
    for ours, kafka in zip(fields, vector.records, strict=False):
        for facts in kafka["batches"]:
            outcome.batches[f"magic {facts['magic']} {facts['compressionType']}"] += 1
            outcome.batches["control"] += facts["isControlBatch"]
            outcome.batches["bad crc"] += not facts["crcValid"]
        outcome.batches["partial"] += kafka["partialBytes"] > 0
        if difference := batch_difference(ours, kafka):
            outcome.wrong_batches.append(f"{vector}: {difference}")


def check_kernel(vector: Vector, message: Message, outcome: Outcome) -> None:
    """The kernel's text must be that of the plain reader, which in turn is compared with Kafka's."""
    asked = [Asked(vector.frame, vector.kind, vector.api_key, vector.version)]
    batch = read(asked)
    if batch.outcomes[0] == kernel.GIVEN_BACK:
        outcome.left_to_plain[message.api_name or ""] += 1
    else:
        outcome.by_kernel += 1
        outcome.kernel_differences += differences(asked, batch, [message])


def check_redefined(vector: Vector, message: Message, outcome: Outcome) -> None:
    """Equal as long as the changed struct does not occur; else the decoder must not claim to have understood all."""
    if message.status == "ok" and without_additions(message.body) == vector.body:
        outcome.equal += 1
    elif message.status == "ok" and message.error_code is None:  # bytes behind the body are a doubt that is told
        outcome.different.append(f"{vector}: decodes to something else, and calls it ok")
    else:
        outcome.redefined += 1


@lru_cache
def run(release: str, known: frozenset[Sort] = frozenset()) -> Outcome:
    """Compare all of a release but what is ``known``."""
    codec, found = Codec(), Outcome()
    gc.disable()  # this many small dicts make the collector the slowest part
    for vector in vectors(release, known):
        message = codec.decode(vector.frame, direction=vector.kind, api_key=vector.api_key, api_version=vector.version)
        check_kernel(vector, message, found)
        sort = (vector.api_key, vector.version, vector.kind)
        equal = found.equal
        found.total += 1
        found.frames[sort] += 1
        found.shapes[vector.shape] += 1
        if sort in REDEFINED_SINCE[release]:
            check_redefined(vector, message, found)
        else:
            check(vector, message, RENAMED_SINCE[release].get(sort, {}), found)
        found.equal_frames[sort] += found.equal - equal
    gc.enable()
    return found


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    require_java()
    require_maven()


def only_in(older: str) -> Outcome:
    """What came of those that the newest release lacks."""
    return run(older, frozenset(run(RELEASES[0]).frames))


@pytest.fixture(params=[RELEASES[0], *(pytest.param(older, marks=pytest.mark.proof) for older in RELEASES[1:])])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def outcome(release: str) -> Outcome:
    return run(release)


def test_every_header_and_body_equals_kafkas_json(
    release: str, outcome: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        redefined = f", {outcome.redefined} of a version that was redefined" if outcome.redefined else ""
        print(f"\nKafka {release}: {outcome.equal}/{outcome.total} frames equal{redefined}")
    assert not outcome.different
    assert outcome.equal + outcome.redefined == outcome.total
    assert outcome.redefined <= SEEDS * len(REDEFINED_SINCE[release])


def test_the_kernel_gives_the_same(release: str, outcome: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    equal = outcome.by_kernel - len(outcome.kernel_differences)
    with capsys.disabled():
        print(f"\nKafka {release}, kernel: {equal}/{outcome.by_kernel} equal, left to the plain reader: ", end="")
        print(", ".join(f"{name} {count}" for name, count in outcome.left_to_plain.most_common()))
    assert not outcome.kernel_differences
    assert outcome.by_kernel > 0.9 * outcome.total


@pytest.mark.parametrize("older", RELEASES[1:])
def test_what_the_newest_release_lacks_is_read_as_an_older_one_does(older: str) -> None:
    outcome = only_in(older)
    assert (outcome.different, outcome.wrong_tags, outcome.wrong_batches, outcome.kernel_differences) == ([],) * 4
    assert outcome.equal == outcome.total > 500
    assert outcome.by_kernel > 0.9 * outcome.total
    assert outcome.tags > 0
    assert set(outcome.frames.values()) == {SEEDS}


def test_unknown_tagged_fields_are_kept_raw_where_they_stood(outcome: Outcome) -> None:
    assert outcome.tags > 1000
    assert not outcome.wrong_tags


def test_record_batches_equal_what_kafkas_record_classes_say(outcome: Outcome) -> None:
    assert not outcome.wrong_batches
    for magic, codecs in {2: "none gzip snappy lz4 zstd", 1: "none gzip snappy lz4", 0: "none gzip snappy lz4"}.items():
        for name in codecs.split():
            assert outcome.batches[f"magic {magic} {name}"]
    assert all(outcome.batches[kind] for kind in ("control", "bad crc", "partial"))


def test_every_api_version_and_kind_comes_in_every_shape(outcome: Outcome) -> None:
    assert set(outcome.frames.values()) == {SEEDS}
    assert set(outcome.shapes) == {"EMPTY", "GREATEST", "LEAST", "LONG_ARRAYS", "UNKNOWN_TAGS", "RANDOM"}


def test_the_two_releases_cover_exactly_the_schema_table() -> None:
    programs = compile_programs()
    table = {(*sort, "request") for sort in programs.requests} | {(*sort, "response") for sort in programs.responses}
    assert set(run(RELEASES[0]).frames).union(*(only_in(older).frames for older in RELEASES[1:])) == table


@pytest.mark.parametrize("release", RELEASES)
def test_error_codes_are_the_newest_releases(release: str) -> None:
    theirs = error_names(release)
    assert theirs.items() <= ERROR_NAMES.items()
    assert release != RELEASES[0] or theirs == ERROR_NAMES
