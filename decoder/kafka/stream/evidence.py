"""What is known of a connection that distinguishes its frames from other bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from decoder.kafka.apis import ApiKey
from decoder.model import Direction
from decoder.stream.resync import Connection

Reads = Callable[[bytes, Direction, int, int], bool | None]
"""A trial decoder: whether a whole frame (no length prefix) decodes as this api key and version to its last byte and no
further; None if nothing is known of them."""


DISTINCTIVE_APIS = tuple(map(int, (
    *(ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FETCH, ApiKey.PRODUCE, ApiKey.FIND_COORDINATOR),
    *(ApiKey.OFFSET_FETCH, ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, ApiKey.LIST_OFFSETS),
)))  # fmt: skip
"""Apis whose responses hold so much that hardly anything else decodes as them; likeliest first."""

DISTINCTIVE_BYTES = 24
"""A response smaller than this shows too little, whatever its api."""

_VERSIONS = range(20)


def is_distinctive_response(reads: Reads, frame: bytes) -> bool:
    """Whether a frame decodes as a response of some size and of some api whose responses are distinctive."""
    return len(frame) >= DISTINCTIVE_BYTES and any(
        reads(frame, "response", key, version) for key in DISTINCTIVE_APIS for version in _VERSIONS
    )


class Evidence(Connection, Protocol):
    """Asked where a frame may begin in a stream that was joined midway or has lost bytes."""

    @property
    def last_answer(self) -> int | None:
        """The id of the last response; None before the first."""

    def uses_client_id(self, client_id: bytes | None) -> bool | None:
        """Whether requests of this connection carry it; None before any was seen."""

    def may_be_next(self, correlation_id: int) -> bool:
        """Whether the next request may carry this id: it is not far behind the last, nor too far ahead."""

    def awaits(self, correlation_id: int) -> bool:
        """Whether a request with this id waits for its response."""

    def may_have_missed(self, correlation_id: int) -> bool:
        """Whether a request with this id may have been sent, though the capture does not hold it."""

    def reads_request(self, frame: bytes, api_key: int, api_version: int) -> bool | None:
        """See Reads."""

    def reads_response(self, frame: bytes, correlation_id: int) -> bool | None:
        """See Reads: as the response to the request with this id; if that was missed, to any other seen here."""


class NoEvidence:
    """Nothing is known: any id may be awaited."""

    is_new = False
    is_one_sided = False
    last_answer: int | None = None

    def uses_client_id(self, client_id: bytes | None) -> bool | None:
        """See Evidence."""
        return None

    def may_be_next(self, correlation_id: int) -> bool:
        """See Evidence."""
        return True

    def awaits(self, correlation_id: int) -> bool:
        """See Evidence."""
        return True

    def may_have_missed(self, correlation_id: int) -> bool:
        """See Evidence."""
        return False

    def reads_request(self, frame: bytes, api_key: int, api_version: int) -> bool | None:
        """See Evidence."""
        return None

    def reads_response(self, frame: bytes, correlation_id: int) -> bool | None:
        """See Evidence."""
        return None
