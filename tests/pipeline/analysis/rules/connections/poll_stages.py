"""Connections on which a client waits for records, and gives up."""

from __future__ import annotations

from decoder.kafka.apis import ApiKey
from tests.pipeline.analysis.rules.connections.doors import Door, door

_WAIT_MS = 40_000
_ASKED = {
    "maxWaitMs": _WAIT_MS, "minBytes": 1, "maxBytes": 1000, "replicaId": -1,
    "topics": [{"topic": "orders", "partitions": [{"partition": 0, "fetchOffset": 5, "partitionMaxBytes": 1000}]}],
}  # fmt: skip
_NOTHING = {
    "responses": [{"topic": "orders", "partitions": [{"partitionIndex": 0, "highWatermark": 5, "lastStableOffset": 5}]}]
}


def polls(
    *, times: int = 8, waits: float = 30, spread: float = 0, resets: bool = False, answers: bool = False
) -> list[Door]:
    """A client asks for records of a partition without news, on one connection after the other.

    Args:
        times: connections.
        waits: after how many seconds it closes each.
        spread: this many seconds longer each time.
        resets: whether it ends them by RST.
        answers: whether the broker answers before.
    """
    found = []
    for number in range(times):
        some = door(number, (waits + spread * times + 1) * number).begun().ask(ApiKey.FETCH, 4, _ASKED)
        some.acknowledge(1)
        some.wait(waits + spread * number)
        if answers:
            some.answer(ApiKey.FETCH, 4, _NOTHING)
        if resets:
            some.reset(0)
        else:
            some.closes(0)
        found.append(some)
    return found
