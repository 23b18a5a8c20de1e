"""Names of other protocols by the first bytes of a stream. Nothing of the bytes is kept."""

from __future__ import annotations

import re

from pipeline.other_protocols import HTTP, TLS

LOOKED_AT_BYTES = 64
UNKNOWN = "an unknown protocol"
NOTHING = "nothing"
TEXT = "plain text"

_KINDS = (
    (HTTP, rb"(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE) [^\r\n]|PRI \* HTTP/2|HTTP/\d"),
    (HTTP, rb"(?i:<!doctype html|<html)[ >\r\n]"),  # to what is no request it answers by a page alone (HTTP/0.9)
    (TLS, rb"[\x14-\x17]\x03[\x00-\x04][\x00-\x48]"),
    ("SSH", rb"SSH-[12]\."),
    ("Redis", rb"[*]\d{1,4}\r\n\$|\+(?:PONG|OK)\r\n|-(?:ERR|NOAUTH|DENIED|WRONGPASS) |PING\r?\n"),
    ("PostgreSQL", rb"\x00\x00..\x00\x03\x00[\x00-\x02]|\x00\x00\x00\x08\x04\xd2\x16[\x2e-\x30]|E\x00\x00..S[A-Z]"),
    ("MySQL", rb"..\x00\x00\x0a\d+\.\d+"),
    ("AMQP", rb"AMQP[\x00-\x03]"),
    ("MQTT", rb"\x10.{1,4}\x00\x04MQTT"),
    ("ZooKeeper", rb"(?:ruok|srvr|stat|conf|cons|mntr|envi|dump|isro|wchs)(?:\r?\n|\Z)|imok|Zookeeper version"),
    ("SMTP or FTP", rb"220[ -]|EHLO |HELO |USER "),
)
_PATTERNS = tuple((name, re.compile(pattern, re.DOTALL)) for name, pattern in _KINDS)
_LINE = re.compile(rb"[\x20-\x7e][\x20-\x7e\t\r\n]{7}")
_BEGIN = re.compile(rb"[\x15\x20-\x7e]")
_PRINTABLE = re.compile(rb"[\x20-\x7e]{4}")
_ALERT = re.compile(rb"\x15\x03[\x00-\x04]\x00\x02[\x01\x02]")


def kind_of(data: bytes) -> str:
    """The protocol that a stream begins with; UNKNOWN, or NOTHING if there is no byte."""
    first = data[:LOOKED_AT_BYTES]
    found = next((name for name, pattern in _PATTERNS if pattern.match(first)), "")
    return found or (NOTHING if not first else TEXT if _LINE.match(first) else UNKNOWN)


def answer_of_another(data: bytes) -> str:
    """What a server speaks whose first answer begins so, if it is certainly no answer of Kafka or MongoDB; else "".

    The first four bytes of theirs are a length. Of printable characters it would be more than half a gigabyte; and what
    reads as a fatal TLS alert would be one of 197,397 bytes with a request id of just these bytes.
    """
    if not _BEGIN.match(data):
        return ""
    if _ALERT.match(data):
        return TLS
    kind = kind_of(data)
    return kind if kind != UNKNOWN and _PRINTABLE.match(data) else ""
