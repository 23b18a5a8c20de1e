"""What is remembered of a connection's requests, and what an id shows: next in line, answered, or near."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np

from decoder.kafka.apis import ApiKey
from decoder.kafka.stream.peek import MAX_KNOWN_API, MAX_KNOWN_VERSION

MAX_MISSED_AT_END = 64
"""Ids in a run with only one end known: before the first request, or behind the last."""

MAX_STEP_BACK = 16
MAX_STEP = 1 << 20
"""By how much ids may go back from one captured request to the next, and how far on. Copies of what a client sent
before, inside its messages, have lower ids."""

MAX_APIS = 32
"""Apis and versions remembered that this connection uses."""

MAX_OUTSTANDING_KEPT = 1000
"""The newest requests without a response that a pairer's state holds: a capture of one direction never sees any."""

_FIND_COORDINATOR = int(ApiKey.FIND_COORDINATOR)


class Waiting(NamedTuple):
    """A request that waits for its response, as another keeper of the pairing's state needs to know it."""

    ordinal: int
    api_key: int
    api_version: int
    correlation_id: int


class Seen(NamedTuple):
    """What frames have shown of their connection, as another keeper of the pairing's state continues with it.

    Attributes:
        last_request, last_response: their ids; None before the first.
        is_ordered: whether ids go up from request to request, or nearly so.
        apis: with their versions, as far as remembered.
    """

    last_request: int | None
    last_response: int | None
    is_ordered: bool
    apis: frozenset[tuple[int, int]]

    def with_requests(self, ids: np.ndarray[Any, np.dtype[np.int64]], apis: Iterable[tuple[int, int]]) -> Seen:
        """After requests with these ids, in order, and of these apis."""
        first = int(ids[0]) if self.last_request is None else self.last_request
        steps = np.diff(ids, prepend=first) + MAX_STEP_BACK  # as in is_near
        ordered = self.is_ordered and bool(np.all(steps % (1 << 32) < MAX_STEP))
        known = {api for api in apis if api[0] <= MAX_KNOWN_API and api[1] <= MAX_KNOWN_VERSION}
        more = known - self.apis if len(self.apis) < MAX_APIS else known & self.apis
        return Seen(int(ids[-1]), self.last_response, ordered, self.apis | more if more else self.apis)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that waits for its response, or a frame that takes the place of one; None: not in the frame."""

    ordinal: int
    api_key: int | None
    api_version: int | None
    correlation_id: int | None
    is_token: bool = False
    may_be_silent: bool = False
    """Whether it may be a Produce with acks=0: the byte that shows it was not captured."""


def answers(request: Request, correlation_id: int | None) -> bool:
    """Whether a response with this id answers the request that is next in line; None: the id was not captured."""
    if correlation_id is None:
        return False
    if request.correlation_id == correlation_id:
        return True
    # Brokers before 0.9 answer the first version of FindCoordinator with correlation id 0.
    return correlation_id == 0 and (request.api_key, request.api_version) == (_FIND_COORDINATOR, 0)


def newest(requests: Collection[Request]) -> list[list[Any]]:
    """The fields of the last MAX_OUTSTANDING_KEPT of them."""
    return [list(astuple(r)) for r in itertools.islice(requests, max(0, len(requests) - MAX_OUTSTANDING_KEPT), None)]


def is_near(last: int, correlation_id: int) -> bool:
    """Whether the request after that with the id ``last`` may have this one, if ids go up."""
    return is_among(correlation_id, last - MAX_STEP_BACK, MAX_STEP)


def is_among(correlation_id: int, first: int, count: int = MAX_MISSED_AT_END) -> bool:
    """Whether an id is one of ``count`` from ``first`` on; ids wrap."""
    return (correlation_id - first) % (1 << 32) < count
