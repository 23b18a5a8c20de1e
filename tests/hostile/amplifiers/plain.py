"""Traffic that multiplies nothing: the smallest honest exchanges, whose cost for each MB is the floor of all others."""

from __future__ import annotations

from collections.abc import Callable

from decoder.kafka.apis import ApiKey
from tests.hostile.amplifiers.talk import Talk, asked_for, fetched
from tests.hostile.traffic import Landing


def heartbeats(n: int) -> Landing:
    """Heartbeats of one member."""
    talk = Talk()
    for _ in range(n):
        talk.say(ApiKey.HEARTBEAT, 3, {"groupId": "g", "generationId": 1, "memberId": "m"}, {"errorCode": 0})
    return talk


def commits(n: int) -> Landing:
    """Commits of one partition."""
    talk = Talk()
    for i in range(n):
        topics = [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": i}]}]
        asked = {"groupId": "g", "generationIdOrMemberEpoch": 1, "memberId": "m", "topics": topics}
        done = [{"name": "t", "partitions": [{"partitionIndex": 0}]}]
        talk.say(ApiKey.OFFSET_COMMIT, 7, asked, {"topics": done})
    return talk


def empty_fetches(n: int) -> Landing:
    """Fetches of one partition that has nothing new."""
    talk = Talk()
    for _ in range(n):
        part = {"partitionIndex": 0, "highWatermark": 9, "lastStableOffset": 9}
        talk.say(ApiKey.FETCH, 11, asked_for("t", [0]), fetched("t", [part]))
    return talk


PLAIN: dict[str, Callable[[int], Landing]] = {one.__name__: one for one in (heartbeats, commits, empty_fetches)}
