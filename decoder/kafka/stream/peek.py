"""The first fields of a request, without a schema, and whether bytes could be a Kafka request at all."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from decoder import limits

MAX_KNOWN_API = 100
"""Kafka 4.4 knows keys up to 93; a few to come."""

MAX_KNOWN_VERSION = 30
"""The highest version of any api is 18 (Fetch); some to come."""

MAX_CLIENT_ID_BYTES = 300
"""Kafka sets no limit; real client ids have fewer than 100 bytes. Longer ones are unusual, see RequestPeek.is_odd."""

MIN_REQUEST_BYTES = 10
"""Key, version, correlation id and the length of the client id."""

HEADER_BYTES = 4 + MIN_REQUEST_BYTES
"""Bytes of the stream that a first look at a request needs: length prefix and fixed part of the header."""

_FIXED = struct.Struct(">hhi")
_PREFIX = struct.Struct(">i")
_NOT_IN_A_CLIENT_ID = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")

REQUEST_CANDIDATES = re.compile(
    # size < 128 MiB, key and version below 128, client id null or shorter than 512 bytes
    rb"(?=[\x00-\x08]...\x00[\x00-\x7f]\x00[\x00-\x7f]....(?:\xff\xff|[\x00\x01].))(?!\x00\x00\x00[\x00-\x09])",
    re.DOTALL,
)
"""Where in a stream a request might begin; every match needs a closer look."""


@dataclass(frozen=True, slots=True)
class RequestPeek:
    """The fixed part of a request header.

    Attributes:
        client_id: its bytes; None if null, or if the header does not reach that far.
        client_end: offset behind the client id; None if its length does not fit the frame.
        usual: whether the client id looks like one: not too long, UTF-8, without control characters.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: bytes | None
    client_end: int | None
    usual: bool

    @property
    def known(self) -> bool:
        """Whether this looks like a request of an api and version that Kafka has."""
        return self.possible and self._has_known_api

    @property
    def possible(self) -> bool:
        """Whether this could be a request, of a future api too."""
        return self.api_key >= 0 and self.api_version >= 0 and self.client_end is not None and self.usual

    @property
    def is_odd(self) -> bool:
        """Whether this looks like a request that is known but for its client id: more than the header is needed then.

        Kafka takes any bytes for a client id; other protocols have any bytes there.
        """
        return not self.usual and self.client_end is not None and self._has_known_api

    @property
    def _has_known_api(self) -> bool:
        return 0 <= self.api_key <= MAX_KNOWN_API and 0 <= self.api_version <= MAX_KNOWN_VERSION


def peek_request(data: bytes | bytearray | memoryview, at: int = 0, size: int | None = None) -> RequestPeek | None:
    """Read the fixed part of a request header (versions 1 and 2 are alike in it).

    Args:
        data: bytes that hold the frame, perhaps not to its end.
        at: where the frame begins, behind its length prefix.
        size: bytes of the frame; by default all of ``data`` from ``at`` on.

    Returns:
        None if fewer than 8 bytes are there.
    """
    end = len(data) if size is None else at + size
    if min(end, len(data)) - at < _FIXED.size:
        return None
    key, version, correlation_id = _FIXED.unpack_from(data, at)
    client_id, client_end, usual = None, None, True
    if min(end, len(data)) - at >= MIN_REQUEST_BYTES:
        length = int.from_bytes(data[at + 8 : at + 10], "big", signed=True)
        if length >= -1 and at + MIN_REQUEST_BYTES + max(length, 0) <= end:
            client_end = MIN_REQUEST_BYTES + max(length, 0)
            if length >= 0:
                client_id = bytes(data[at + MIN_REQUEST_BYTES : at + client_end])
                usual = length <= MAX_CLIENT_ID_BYTES and _is_printable(client_id, cut=len(client_id) < length)
    return RequestPeek(key, version, correlation_id, client_id, client_end, usual)


def peek_prefixed(data: bytes | bytearray, at: int) -> tuple[int, RequestPeek] | None:
    """Size and header of a request whose length prefix is at ``at``; None unless it looks like one that is known.

    It may be odd. ``data`` must hold HEADER_BYTES from ``at`` on.
    """
    size = _PREFIX.unpack_from(data, at)[0]
    if not MIN_REQUEST_BYTES <= size <= limits.MAX_FRAME_BYTES:
        return None
    key, version, _ = _FIXED.unpack_from(data, at + 4)
    if not (0 <= key <= MAX_KNOWN_API and 0 <= version <= MAX_KNOWN_VERSION):
        return None  # most candidates end here
    peek = peek_request(data, at + 4, size)
    return (size, peek) if peek is not None and (peek.known or peek.is_odd) else None


def _is_printable(client_id: bytes, *, cut: bool) -> bool:
    if _NOT_IN_A_CLIENT_ID.search(client_id):
        return False
    try:
        client_id.decode()
    except UnicodeDecodeError as error:
        return cut and error.reason == "unexpected end of data"
    return True
