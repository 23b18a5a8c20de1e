"""Requests that a broker refused with a code that has no rule of its own.

A table of error codes says what each of them means (pipeline.analysis.codes); rules look more closely at some codes, as
answers of some apis. All others are symptoms of one rule, so that no code at no api goes unreported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from decoder.fields import Json, integer, items, natural, text
from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.codes.model import HEALTH
from pipeline.analysis.rules.kafka.api_groups import NAMING_THINGS

_HEARTBEATS = (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT)
_COMMITS = (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT)
_COORDINATED = frozenset(
    (
        *_HEARTBEATS, *_COMMITS, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_FETCH, ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
    )
)  # fmt: skip
"""Of these the rule coordinator_unavailable judges what a coordinator that is away answers.

Not of SyncGroup: whoever sends it was let in by JoinGroup, and each accepted JoinGroup shows that rule a coordinator.
"""
_AT_ANY: Final = KAFKA.of_area("login", "right", "version")
"""Rules judge these as the answer of any api: auth_failed, unsupported_version."""
_FENCED: Final = KAFKA.of_area("fencing")
_LEADERS: Final = (
    KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.NOT_LEADER_OR_FOLLOWER,
    KafkaError.CORRUPT_MESSAGE,
)  # fmt: skip
_WITHOUT_LEADER: Final = (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.LISTENER_NOT_FOUND)
"""In Metadata the rule partition_unavailable judges these of partitions; of a topic as a whole they name none."""
_OF_LEADERS: Final = KAFKA.of_area("leader")
"""Codes of partitions without a leader: the rule partition_unavailable judges them."""
_MEMBERSHIP: Final = KAFKA.of_area("membership")
_JOINS: Final = (*KAFKA.of_area("join"), *_MEMBERSHIP)
_ELSEWHERE: Final[Mapping[int, frozenset[int]]] = {
    ApiKey.PRODUCE: frozenset(
        (
            *_LEADERS, *_OF_LEADERS, *KAFKA.of_area("record", "replicas", "storage", api=int(ApiKey.PRODUCE)),
            KafkaError.INVALID_TOPIC_EXCEPTION, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
            KafkaError.UNKNOWN_PRODUCER_ID,
        )
    ),
    ApiKey.FETCH: frozenset((*_LEADERS, *_OF_LEADERS, KafkaError.UNKNOWN_TOPIC_OR_PARTITION)),
    ApiKey.LIST_OFFSETS: frozenset((*_LEADERS, *_OF_LEADERS)),
    ApiKey.METADATA: frozenset((KafkaError.UNKNOWN_TOPIC_OR_PARTITION, *_WITHOUT_LEADER)),
    ApiKey.JOIN_GROUP: frozenset(_JOINS),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: frozenset(_JOINS),
    **dict.fromkeys(_HEARTBEATS[1:], frozenset((*KAFKA.of_area("join"), KafkaError.FENCED_INSTANCE_ID))),
    ApiKey.HEARTBEAT: frozenset(_MEMBERSHIP),
    **dict.fromkeys(_COMMITS, frozenset(KAFKA.of_area("membership", "commit", api=int(ApiKey.OFFSET_COMMIT)))),
}  # fmt: skip
"""Codes that rules judge as the answer of an api, by api key."""
_NOT_REACHED: Final = KAFKA.of_area("coordinator")

THING: Final = r'"(?:groupId|transactionalId|v3AndBelowTransactionalId|key|coordinatorKeys)":\[?"((?:[^"\\]|\\.)*)"'
"""Finds in the text of a request the group or transactional id that it is about: its first group."""
_THING = re.compile(THING)
_TOPICS, _PARTITIONS = ("topics", "responses"), ("partitions", "partitionResponses")
_MOST_TOPICS = 50
"""Of one answer; more add nothing that can be read."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One code in one answer.

    Attributes:
        code: its number.
        topic: name or id; None: the code is not about a topic.
        partition: the lowest that was refused so; None: the code is about all of the topic.
        thing: group or transactional id that the request names; empty: none.
    """

    code: int
    topic: str | None = None
    partition: int | None = None
    thing: str = ""


def is_judged_elsewhere(api_key: int, code: int) -> bool:
    """Whether a rule of its own judges a code as the answer of an api, or the code is a part of normal operation."""
    if KAFKA.meaning(api_key, code).kind == HEALTH or code in _AT_ANY:
        return True
    if code in _FENCED:
        return api_key != ApiKey.SASL_AUTHENTICATE
    return code in _ELSEWHERE.get(api_key, ()) or (code in _NOT_REACHED and api_key in _COORDINATED)


def refusals(api_key: int, error_codes: tuple[int, ...], request: Json, response: Json) -> Iterator[Refusal]:
    """What an answer refuses, one for each code and topic.

    Args:
        api_key: of the request.
        error_codes: all that are anywhere in the answer, each once.
        request, response: bodies, whole or not.
    """
    for code in error_codes:
        if api_key == ApiKey.METADATA and code in _WITHOUT_LEADER:
            yield from (Refusal(code, topic) for topic, at in sorted(_places(response, code))[:_MOST_TOPICS] if at < 0)
        if is_judged_elsewhere(api_key, code) or (code == KafkaError.OPERATION_NOT_ATTEMPTED and len(error_codes) > 1):
            continue
        thing = _group(response, code) or _thing(api_key, request)
        named = dict(_places(response, code))
        for topic, partition in sorted(named.items())[:_MOST_TOPICS]:
            yield Refusal(code, topic, None if partition < 0 else partition, thing)
        if not named:
            yield Refusal(code, thing=thing)


def subject_of(client_id: str | None, api_name: str, error: str, about: str | None) -> str:
    """The subject of a finding about a refusal; ``about``: the topic, group or transactional id."""
    return f"{client_id or '?'}/{api_name}/{error}{f'/{about}' if about else ''}"


def about_of(subject: str, error: str) -> str:
    """What :func:`subject_of` was given as ``about``; empty if nothing."""
    return subject.partition(f"/{error}/")[2]


def _thing(api_key: int, request: Json) -> str:
    found = _THING.search(orjson.dumps(request).decode()) if api_key in NAMING_THINGS else None
    return found[1] if found else ""


def _group(response: Json, code: int) -> str:
    """Of several groups in one answer (OffsetFetch v8+) the first that has the code."""
    groups = items(response, "groups")
    refused = (one for one in groups if _code(one) == code or any(True for _ in _places(one, code)))
    return next((text(one, "groupId") or "" for one in refused), "") if len(groups) > 1 else ""


def _places(response: Json, code: int) -> Iterator[tuple[str, int]]:
    """Topics with the lowest partition that has the code, -1 where the topic itself has it."""
    for group in items(response, "groups"):
        yield from _places(group, code)
    for topic in (one for name in _TOPICS for one in items(response, name)):
        name = text(topic, "name") or text(topic, "topic") or text(topic, "topicId")
        refused = [_index(part) for each in _PARTITIONS for part in items(topic, each) if _code(part) == code]
        if name and (refused or _code(topic) == code):
            yield name, min(refused, default=-1)


def _code(part: Json) -> int | None:
    return integer(part, "errorCode")


def _index(part: Json) -> int:
    found = (natural(part, name) for name in ("partitionIndex", "index", "partition"))
    return next((number for number in found if number is not None), -1)
