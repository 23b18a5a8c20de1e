"""The request versions that a broker of each Kafka release answers: reads and answers from ``releases.json``.

Kafka 4.0.0 dropped old versions (KIP-896); 4.0.1 took JoinGroup v0 and v1 back (KAFKA-19444). So "Kafka 4 refuses it"
is a fact of an api, a version and a release.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources

from decoder.kafka.apis import ApiKey
from decoder.kafka.schema.table import Range, within

_AMONG_BROKERS = frozenset({
    *(ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN),
    *(ApiKey.WRITE_TXN_MARKERS, ApiKey.ALTER_PARTITION),
})  # fmt: skip
"""Brokers and controllers send them, who are of the new release themselves after an upgrade."""


@lru_cache(maxsize=1)
def releases() -> dict[str, dict[int, Range]]:
    """Kafka release, oldest first, to api key and the inclusive range of request versions that its brokers answer."""
    text = resources.files("decoder.kafka.schema").joinpath("releases.json").read_text(encoding="utf-8")
    return {
        line["release"]: {int(key): (low, high) for key, (low, high) in line["requests"].items()}
        for line in json.loads(text)
    }


def is_answered(api_key: int, version: int, release: str) -> bool:
    """Whether a broker of ``release`` answers this version of a request."""
    versions = releases()[release].get(api_key)
    return versions is not None and within(version, versions)


def refused_by(api_key: int, version: int | None) -> list[str]:
    """The releases, oldest first, that no longer answer what an older one did; those of ``releases.json``."""
    found: list[str] = []
    was_answered = False
    for release in releases():
        answers = version is not None and is_answered(api_key, version, release)
        if was_answered and not answers:
            found.append(release)
        was_answered |= answers
    return found


def is_removed(api_key: int, version: int | None) -> bool:
    """Whether the newest release refuses a client's request that an older one answered."""
    return api_key not in _AMONG_BROKERS and _newest() in refused_by(api_key, version)


def first_version(api_key: int) -> int:
    """The oldest version of an api that the newest release answers; 0 if it knows none."""
    return releases()[_newest()].get(api_key, (0, 0))[0]


def _newest() -> str:
    return next(reversed(releases()))
