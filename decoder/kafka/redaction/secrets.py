"""What may be stored of each field of Kafka's messages: derived from the schema by names, unless somebody decided.

A field whose name smells of a secret, or that holds bytes, is overwritten unless :data:`REVIEWED` exempts it: so a
field of a release to come is safe before anybody has looked at it. All other fields are names and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from decoder.kafka.apis import ApiKey
from decoder.kafka.schema import table
from decoder.kafka.schema.table import StructLayout
from decoder.model import Direction


class Fate(Enum):
    """What becomes of the content of a field."""

    STAYS = "stays"
    """A name or a number."""
    SECRET = "zeros under every policy"  # noqa: S105
    """A credential, or what may hold or quote one."""
    RECORDS = "as the payload policy says"
    """Record batches."""
    MEMBER = "topics and partitions stay, the rest becomes zeros but under `full`"
    """What a group member states or is given: Kafka's consumer protocol, or any bytes of the application."""
    OPAQUE = "zeros but under `full`"
    """Bytes of an application that are not read here."""


SMELL = re.compile(
    "pass|pwd|hmac|salt|sasl|auth|token|key|secret|credential|value|config|signature|cert|private|metadata|message",
    re.IGNORECASE,
)
"""In the name of a field, or of the struct that it is in."""

_OF_BYTES = ("bytes", "records")


@dataclass(frozen=True, slots=True)
class Review:
    """What somebody decided, and why.

    Attributes:
        end: last names of the path, all of it or behind a slash.
        fate: see Fate.
        reason: in words.
        api_keys: of these apis only; empty: of all.
        direction: in this only; None: in both.
    """

    end: str
    fate: Fate
    reason: str
    api_keys: tuple[int, ...] = ()
    direction: Direction | None = None

    def is_of(self, api_key: int, direction: Direction, path: str) -> bool:
        """Whether it speaks of this field."""
        is_there = not self.api_keys or api_key in self.api_keys
        is_there = is_there and self.direction in (None, direction)
        return is_there and (path == self.end or path.endswith("/" + self.end))


_CONFIGS_SET = (ApiKey.CREATE_TOPICS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
_STREAMS = (ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE)
_SECRET, _STAYS = Fate.SECRET, Fate.STAYS

REVIEWED = (
    # what is overwritten
    Review(
        "configs/value", _SECRET, "any config may be a password or a JAAS line, and the broker alone knows which",
        (*_CONFIGS_SET, ApiKey.DESCRIBE_CONFIGS),
    ),
    Review("synonyms/value", _SECRET, "a config, too", (ApiKey.DESCRIBE_CONFIGS,), "response"),
    Review("topicConfigs/value", _SECRET, "a config, too", _STREAMS),
    Review(
        "errorMessage", _SECRET, "may quote the config that the broker refuses",
        _CONFIGS_SET, "response",
    ),
    Review(
        "status/statusDetail", _SECRET, "may quote the config of an internal topic that the broker refuses",
        (ApiKey.STREAMS_GROUP_HEARTBEAT,), "response",
    ),
    Review("authBytes", _SECRET, "a SASL token", (ApiKey.SASL_AUTHENTICATE,)),
    Review(
        "hmac", _SECRET, "the secret of a delegation token",
        (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN),
    ),
    Review("tokens/hmac", _SECRET, "the secret of a delegation token", (ApiKey.DESCRIBE_DELEGATION_TOKEN,), "response"),
    Review("upsertions/salt", _SECRET, "of a SCRAM password", (ApiKey.ALTER_USER_SCRAM_CREDENTIALS,), "request"),
    Review("upsertions/saltedPassword", _SECRET, "a SCRAM password", (ApiKey.ALTER_USER_SCRAM_CREDENTIALS,), "request"),
    Review("requestData", _SECRET, "another request, with whatever it carries", (ApiKey.ENVELOPE,), "request"),
    Review("requestPrincipal", _SECRET, "a principal, serialised by a plugin", (ApiKey.ENVELOPE,), "request"),
    Review("clientHostAddress", _SECRET, "behind a wrong length it may be that request", (ApiKey.ENVELOPE,), "request"),
    Review("responseData", _SECRET, "another response, with whatever it carries", (ApiKey.ENVELOPE,), "response"),
    Review(
        "unalignedRecords", _SECRET, "a piece of the cluster's own log: SCRAM keys, tokens, configs",
        (ApiKey.FETCH_SNAPSHOT,),
    ),
    # what the payload policy is for
    Review("partitionData/records", Fate.RECORDS, "Produce", (ApiKey.PRODUCE,), "request"),
    Review("partitions/records", Fate.RECORDS, "Fetch, ShareFetch", (ApiKey.FETCH, ApiKey.SHARE_FETCH), "response"),
    # bytes of applications
    Review(
        "protocols/metadata", Fate.MEMBER, "topics and owned partitions of a member",
        (ApiKey.JOIN_GROUP,), "request",
    ),
    Review(
        "members/metadata", Fate.MEMBER, "topics and owned partitions of a member",
        (ApiKey.JOIN_GROUP,), "response",
    ),
    Review("assignments/assignment", Fate.MEMBER, "partitions of a member", (ApiKey.SYNC_GROUP,), "request"),
    Review("assignment", Fate.MEMBER, "partitions of a member", (ApiKey.SYNC_GROUP,), "response"),
    Review("members/memberMetadata", Fate.MEMBER, "topics of a member", (ApiKey.DESCRIBE_GROUPS,), "response"),
    Review("members/memberAssignment", Fate.MEMBER, "partitions of a member", (ApiKey.DESCRIBE_GROUPS,), "response"),
    Review(
        "metrics", Fate.OPAQUE, "a client's measurements with its own labels, compressed",
        (ApiKey.PUSH_TELEMETRY,), "request",
    ),
    # what stays though it smells
    Review("configs/name", _STAYS, "the name of a config"),
    Review("configs/synonyms/name", _STAYS, "the name of a config", (ApiKey.DESCRIBE_CONFIGS,), "response"),
    Review(
        "configs/documentation", _STAYS, "Kafka's own description of a config",
        (ApiKey.DESCRIBE_CONFIGS,), "response",
    ),
    Review("errorMessage", _STAYS, "the broker's words for an error code"),
    Review("batchIndexErrorMessage", _STAYS, "the broker's words for an error code", (ApiKey.PRODUCE,), "response"),
    Review(
        "acknowledgeErrorMessage", _STAYS, "the broker's words for an error code",
        (ApiKey.SHARE_FETCH,), "response",
    ),
    Review("configurationKeys", _STAYS, "names of configs", (ApiKey.DESCRIBE_CONFIGS,), "request"),
    Review("topicConfigs/key", _STAYS, "the name of a config", _STREAMS),
    Review("clientTags/key", _STAYS, "a label of a Streams client", _STREAMS),
    Review("clientTags/value", _STAYS, "a label of a Streams client", _STREAMS),
    Review("coordinatorKeys", _STAYS, "group and transactional ids", (ApiKey.FIND_COORDINATOR,), "request"),
    Review("coordinators/key", _STAYS, "a group or transactional id", (ApiKey.FIND_COORDINATOR,), "response"),
    Review("key", _STAYS, "a group or transactional id", (ApiKey.FIND_COORDINATOR,), "request"),
    Review("ops/key", _STAYS, "the name of a quota", (ApiKey.ALTER_CLIENT_QUOTAS,), "request"),
    Review("values/key", _STAYS, "the name of a quota", (ApiKey.DESCRIBE_CLIENT_QUOTAS,), "response"),
    Review(
        "tokenId", _STAYS, "names a delegation token; worth nothing without its hmac",
        (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN), "response",
    ),
    Review(
        "tokenRequesterPrincipalType", _STAYS, "a kind of principal",
        (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN), "response",
    ),
    Review(
        "tokenRequesterPrincipalName", _STAYS, "a user's name",
        (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN), "response",
    ),
    Review("tokens/principalType", _STAYS, "a kind of principal", (ApiKey.DESCRIBE_DELEGATION_TOKEN,), "response"),
    Review("tokens/principalName", _STAYS, "a user's name", (ApiKey.DESCRIBE_DELEGATION_TOKEN,), "response"),
    Review(
        "committedMetadata", _STAYS, "a consumer's note beside its offset, of Kafka's own an epoch",
        (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT),
    ),
    Review("metadata", _STAYS, "the same note", (ApiKey.OFFSET_FETCH,), "response"),
    Review(
        "resourceName", _STAYS, "the name of a broker, topic, group or subscription",
        (ApiKey.LIST_CONFIG_RESOURCES,), "response",
    ),
)  # fmt: skip
"""Decisions, the first that speaks of a field counts."""

SECRET_TOPICS = frozenset({"__cluster_metadata", "AAAAAAAAAAAAAAAAAAAAAQ"})
"""Topics whose records hold SCRAM keys, delegation tokens and configs of the whole cluster, by name and, from Fetch v13
on, by id (Uuid.METADATA_TOPIC_ID, 00000000-0000-0000-0000-000000000001)."""


def review_of(api_key: int, direction: Direction, path: str) -> Review | None:
    """What was decided of a field; None if nothing was."""
    return next((review for review in REVIEWED if review.is_of(api_key, direction, path)), None)


def smells(path: str, type_: str) -> bool:
    """Whether somebody must decide about a field of this type (without ``[]``)."""
    return type_ in _OF_BYTES or (type_ == "string" and any(SMELL.search(part) for part in path.split("/")[-2:]))


def fate_of(api_key: int, direction: Direction, path: str, type_: str) -> Fate:
    """What becomes of a field."""
    review = review_of(api_key, direction, path)
    if review is not None:
        return review.fate
    return Fate.SECRET if smells(path, type_) else Fate.STAYS


@lru_cache(maxsize=1)
def fates() -> Mapping[tuple[Direction, int, int], Mapping[str, Fate]]:
    """By direction, api key and version: the fields that do not just stay, by their path without array indexes."""
    found: dict[tuple[Direction, int, int], Mapping[str, Fate]] = {}
    for message in table.messages():
        direction = _DIRECTIONS.get(message.kind)
        if direction is None or message.api_key is None:
            continue
        for version in range(message.versions[0], message.versions[1] + 1):
            named = {
                path: fate_of(message.api_key, direction, path, type_)
                for path, type_ in fields_of(table.layout(message.definition, version))
            }
            kept = {path: fate for path, fate in named.items() if fate is not Fate.STAYS}
            found[direction, message.api_key, version] = MappingProxyType(kept)
    return MappingProxyType(found)


_DIRECTIONS: Mapping[str, Direction] = {"request": "request", "response": "response"}


def fields_of(layout: StructLayout, above: str = "") -> Iterator[tuple[str, str]]:
    """Path and type of each field of a layout that can hold text or bytes."""
    for item in layout.fields:
        path = above + item.name
        if item.struct is not None:
            yield from fields_of(item.struct, path + "/")
        elif item.type == "string" or item.type in _OF_BYTES:
            yield path, item.type


@lru_cache(maxsize=1)
def secret_apis() -> frozenset[int]:
    """Apis that carry credentials in some version, either way."""
    return frozenset(key for (_, key, _), named in fates().items() if Fate.SECRET in named.values())
