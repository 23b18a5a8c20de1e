"""Whether a connection is encrypted, and whom its client asked for: reads TLS records and both Hellos, nothing else."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator

_HEADER_BYTES = 5
_CONTENT_TYPES = b"\x14-\x17"  # change cipher spec, alert, handshake, application data
_HEADER = re.compile(b"[" + _CONTENT_TYPES + rb"]\x03[\x00-\x04]")
_MAX_RECORD_BYTES = 16_384 + 2_048
_HANDSHAKE = 22
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
_SERVER_NAME, _SUPPORTED_VERSIONS = 0, 43
_VERSION_AT, _SESSION_ID_AT = 4, 4 + 2 + 32
"""In a Hello, behind its type and length; the random number is between them."""
_VERSIONS = {0x0300: "SSL 3.0", 0x0301: "1.0", 0x0302: "1.1", 0x0303: "1.2", 0x0304: "1.3"}

_ALERT, _ALERT_BYTES, _LEVELS = 21, 2, (1, 2)
_APPLICATION = 23
_CLOSING_BYTES = 64
"""An alert that is encrypted has no more bytes, whatever the cipher of TLS 1.2."""
_HIDDEN_ALERTS = ([19], [35])
"""Sizes of an alert that is encrypted: two bytes, the type, a tag of 16, and with some libraries a padding of 16."""
_BEFORE_KEYS = (20, _ALERT, _HANDSHAKE)
ALERTS = {
    10: "unexpected_message", 20: "bad_record_mac", 40: "handshake_failure", 42: "bad_certificate",
    43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired", 46: "certificate_unknown",
    47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error", 51: "decrypt_error",
    70: "protocol_version", 71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback",
    109: "missing_extension", 110: "unsupported_extension", 112: "unrecognized_name", 116: "certificate_required",
    120: "no_application_protocol",
}  # fmt: skip
"""TLS alerts by their number (RFC 8446, 6.2; 0 is close_notify, which ends a connection in good order)."""

MIN_LINKS_MIDWAY = 2
"""Record headers in a row that are believed if the stream does not begin with one."""


def looks_like_tls(data: bytes) -> bool:
    """Whether a stream is made of TLS records (RFC 8446, 5.1), each ending where the next begins, to its end.

    A stream joined midway may begin inside a record; then several headers must follow each other.
    """
    links = _links(data)
    return links.get(0, 0) > 0 or any(count >= MIN_LINKS_MIDWAY for count in links.values())


def is_client_hello(data: bytes) -> bool:
    """Whether a stream begins with a TLS ClientHello."""
    return looks_like_tls(data) and data[0] == _HANDSHAKE and data[_HEADER_BYTES : _HEADER_BYTES + 1] == b"\x01"


def server_name(data: bytes) -> str | None:
    """The host name in the ClientHello that a stream begins with (RFC 8446, 4.1.2); None if there is none."""
    try:
        return _server_name(_first_handshake_bytes(data))
    except (struct.error, IndexError):
        return None


def alert_of(asks: bytes, answers: bytes) -> str | None:
    """Who ended a handshake with an alert in clear, and with which: ``client unknown_ca``; None if neither did.

    Args:
        asks, answers: what the client and the server sent, from the first byte on.
    """
    for name, data in (("client", asks), ("server", answers)):
        at = 0
        while data[at : at + 1] and data[at] in _BEFORE_KEYS and at + _HEADER_BYTES <= len(data):
            size = int.from_bytes(data[at + 3 : at + 5], "big")
            body = data[at + _HEADER_BYTES : at + _HEADER_BYTES + size]
            if data[at] == _ALERT and size == _ALERT_BYTES and len(body) == size and body[0] in _LEVELS and body[1]:
                return f"{name} {ALERTS.get(body[1], f'alert {body[1]}')}"
            at += _HEADER_BYTES + size
    return None


def hidden_alert(asks: bytes, answers: bytes, latest: bytes) -> str | None:
    """Who ended a handshake with an alert that TLS 1.3 encrypts: ``client encrypted``; None if neither did.

    Only its size shows: smaller than any other message of a handshake. A side that refuses sends nothing else encrypted
    once it has the other's certificate: a server that had answered before closes in good order, as one without a
    login does. What follows a record of that size of the client is no refusal: each side states that it closes, in a
    record of the same size.

    Args:
        asks, answers: what the client and the server sent, from the first byte on.
        latest: what the server sent after the client's first encrypted bytes.
    """
    if not answers or asks[:1] != bytes([_HANDSHAKE]):
        return None
    if [size for kind, size in _records(asks) if kind == _APPLICATION] in _HIDDEN_ALERTS:
        return "client encrypted"
    encrypted = [[size] for kind, size in _records(asks) if kind == _APPLICATION]
    is_one = [size for _, size in _records(latest)] in _HIDDEN_ALERTS and latest[0] == _APPLICATION
    return "server encrypted" if is_one and encrypted and encrypted[-1] not in _HIDDEN_ALERTS else None


def encrypted_from(data: bytes) -> int | None:
    """Where what a side sends under TLS 1.3 begins to be encrypted; None if it does not."""
    at = 0
    for kind, size in _records(data):
        if kind == _APPLICATION:
            return at
        at += _HEADER_BYTES + size
    return None


def says_goodbye(data: bytes) -> bool:
    """Whether a side's last record is an alert, clear or encrypted: it states that it closes (close_notify)."""
    kind, size = (list(_records(data)) or [(0, 0)])[-1]
    return [size] in _HIDDEN_ALERTS if kind == _APPLICATION else kind == _ALERT and size <= _CLOSING_BYTES


def _records(data: bytes) -> Iterator[tuple[int, int]]:
    """Type and size of the records, each ending where the next begins."""
    at = 0
    while at + _HEADER_BYTES <= len(data):
        size = int.from_bytes(data[at + 3 : at + 5], "big")
        yield data[at], size
        at += _HEADER_BYTES + size


def _links(data: bytes) -> dict[int, int]:
    """By place how many record headers are in a row from there to the end of ``data``.

    From the end on, so that each header is looked at once, however many small records there are.
    """
    links: dict[int, int] = {}
    for at in reversed([match.start() for match in _HEADER.finditer(data)]):
        if at + _HEADER_BYTES > len(data):
            continue
        length = int.from_bytes(data[at + 3 : at + 5], "big")
        following = at + _HEADER_BYTES + length
        if 0 < length <= _MAX_RECORD_BYTES:
            behind = links.get(following, 0) if following + _HEADER_BYTES <= len(data) else 0
            if behind or following + _HEADER_BYTES > len(data):
                links[at] = 1 + behind
    return links


def _first_handshake_bytes(data: bytes) -> bytes:
    """Contents of the handshake records at the beginning: a message may span several."""
    parts, at = [], 0
    while data[at : at + 1] == bytes([_HANDSHAKE]) and at + _HEADER_BYTES <= len(data):
        end = at + _HEADER_BYTES + int.from_bytes(data[at + 3 : at + 5], "big")
        parts.append(data[at + _HEADER_BYTES : end])
        at = end
    return b"".join(parts)


def versions(asks: bytes, answers: bytes) -> tuple[str | None, str | None]:
    """The newest version that a client offers and the one that the server chose, as ``1.3``; None if not captured.

    Args:
        asks, answers: what the client and the server sent, from the first byte on.
    """
    offered = _stated(asks, _CLIENT_HELLO, _offered)
    return offered, _stated(answers, _SERVER_HELLO, _chosen)


def _stated(data: bytes, kind: int, read: Callable[[bytes], Iterable[int]]) -> str | None:
    """The newest version of those that a Hello states."""
    try:
        hello = _first_handshake_bytes(data)
        found = max((one for one in read(hello) if one in _VERSIONS), default=None) if hello[0] == kind else None
    except (struct.error, IndexError):
        return None
    return None if found is None else _VERSIONS[found]


def _offered(hello: bytes) -> Iterator[int]:
    yield struct.unpack_from("!H", hello, _VERSION_AT)[0]
    for kind, content in _extensions(hello, _behind_ciphers(hello)):
        if kind == _SUPPORTED_VERSIONS:
            yield from struct.unpack_from(f"!{content[0] // 2}H", content, 1)


def _chosen(hello: bytes) -> Iterator[int]:
    yield struct.unpack_from("!H", hello, _VERSION_AT)[0]
    at = _SESSION_ID_AT + 1 + hello[_SESSION_ID_AT] + 3  # cipher suite, compression method
    for kind, content in _extensions(hello, at):
        if kind == _SUPPORTED_VERSIONS:
            yield from struct.unpack_from("!H", content, 0)


def _behind_ciphers(hello: bytes) -> int:
    """Where the extensions of a ClientHello begin."""
    at = _SESSION_ID_AT + 1 + hello[_SESSION_ID_AT]
    at += 2 + int(struct.unpack_from("!H", hello, at)[0])  # cipher suites
    return at + 1 + hello[at]  # compression methods


def _extensions(hello: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Kind and content of the extensions; raises struct.error where the Hello is cut."""
    end = at + 2 + int(struct.unpack_from("!H", hello, at)[0])
    at += 2
    while at < end:
        kind, size = struct.unpack_from("!HH", hello, at)
        yield kind, hello[at + 4 : at + 4 + size]
        at += 4 + size


def _server_name(hello: bytes) -> str | None:
    if not hello or hello[0] != _CLIENT_HELLO:
        return None
    for kind, content in _extensions(hello, _behind_ciphers(hello)):
        if kind == _SERVER_NAME:
            length = int(struct.unpack_from("!H", content, 3)[0])  # behind the list's length and the name's type
            name = content[5 : 5 + length].decode("ascii", "replace")
            return name if name.isprintable() and len(name) == length else None
    return None
