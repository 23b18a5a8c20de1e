"""Is there a field in Kafka's messages that may hold a secret and that nobody thought of?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from decoder.kafka.schema import table
from decoder.kafka.secrets import SECRET_FIELDS
from tests.decoder.kafka.credentials import credentials

SMELL = re.compile(
    "pass|pwd|hmac|salt|auth|token|key|secret|credential|value|config|signature|cert|private|metadata|message",
    re.IGNORECASE,
)
"""In the name of a field; of fields of type bytes every name smells."""

HARMLESS = {
    "configs/name": "the name of a config",
    "configs/documentation": "Kafka's own description of a config",
    "errorMessage": "the broker's words for an error code; passwords it prints as [hidden]",
    "batchIndexErrorMessage": "the same",
    "acknowledgeErrorMessage": "the same",
    "configurationKeys": "names of configs",
    "topicConfigs/key": "the name of a config",
    "clientTags/key": "a label of a Streams client, such as its zone",
    "clientTags/value": "a label of a Streams client, such as its zone",
    "coordinatorKeys": "group and transactional ids",
    "coordinators/key": "a group or transactional id",
    "key": "FindCoordinator: a group or transactional id",
    "ops/key": "the name of a quota",
    "values/key": "the name of a quota",
    "tokenId": "names a delegation token; worth nothing without its hmac",
    "tokens/tokenId": "names a delegation token; worth nothing without its hmac",
    "tokenRequesterPrincipalType": "a kind of principal",
    "tokenRequesterPrincipalName": "a user's name",
    "tokens/tokenRequesterPrincipalType": "a kind of principal",
    "tokens/tokenRequesterPrincipalName": "a user's name",
    "tokens/principalType": "a kind of principal",
    "tokens/principalName": "a user's name",
    "committedMetadata": "what a consumer notes beside its offset, by Kafka's own clients a leader epoch",
    "metadata": "OffsetFetch: the same note",
    "protocols/metadata": "JoinGroup: topics and owned partitions of a member",
    "members/metadata": "JoinGroup: topics and owned partitions of a member",
    "assignments/assignment": "SyncGroup: partitions of a member",
    "assignment": "SyncGroup: partitions of a member",
    "members/memberMetadata": "DescribeGroups: topics of a member",
    "members/memberAssignment": "DescribeGroups: partitions of a member",
    "clientHostAddress": "Envelope: the client's address",
    "metrics": "PushTelemetry: counters of a client",
    "resourceName": "ListConfigResources: the name of a broker, topic, group or subscription",
}
"""Fields whose names smell but that hold no secret: the end of their path, and why."""

RECORDS = {"ProduceRequest", "FetchResponse", "ShareFetchResponse"}
"""Their records follow the payload policy."""


def fields() -> Iterator[tuple[str, int, Any, str, str]]:
    """Message, api key, kind, path and type of each field that can hold a text or bytes."""

    def walk(layout: list[list[Any]], above: str) -> Iterator[tuple[str, str]]:
        for name, type_, *_, nested in layout:
            if nested:
                yield from walk(nested, f"{above}{name}/")
            elif type_.removeprefix("[]") in ("string", "bytes", "records"):
                yield f"{above}{name}", type_

    for message in table.messages():
        if message.kind in ("request", "response") and message.api_key is not None:
            for path, type_ in walk(message.definition["fields"], ""):
                yield message.name, message.api_key, message.kind, path, type_


def smells(path: str, type_: str) -> bool:
    return type_ not in {"string", "[]string"} or any(SMELL.search(part) for part in path.split("/")[-2:])


def test_every_field_that_smells_of_a_secret_is_removed_or_known_to_be_harmless():
    unknown = {
        f"{name}: {path}"
        for name, key, kind, path, type_ in fields()
        if smells(path, type_)
        and path not in SECRET_FIELDS.get((key, kind), ())
        and not (type_ == "records" and name in RECORDS)
        and not any(path == end or path.endswith("/" + end) for end in HARMLESS)
    }
    assert unknown == set()


def test_every_secret_field_exists():
    known = {(key, kind, path) for _, key, kind, path, _ in fields()}
    named = {(key, kind, path) for (key, kind), paths in SECRET_FIELDS.items() for path in paths}
    assert named - known == set()


def test_the_tests_of_redaction_know_every_message_with_secrets():
    assert {(key, kind) for kind, key, _, _ in credentials(b"secret").values()} == set(SECRET_FIELDS)


def test_every_exception_is_of_some_use():
    paths = [path for _, _, _, path, type_ in fields() if smells(path, type_)]
    assert [end for end in HARMLESS if not any(p == end or p.endswith("/" + end) for p in paths)] == []


@pytest.mark.parametrize("name", ["saslPassword", "tokens/hmac", "newSecret", "authBytes", "credentials/user"])
def test_a_new_secret_would_be_noticed(name):
    assert smells(name, "string")
    assert smells("anything", "bytes")
