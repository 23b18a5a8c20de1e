"""Values by which a server states how a command ended: they are never secret, whatever the command.

Each test reads the BSON type and the bytes of a value. It holds only for what a server can have written there, so that
a wrong length or another connection's bytes do not pass for a status.
"""

from __future__ import annotations

import re
import struct

from decoder.mongodb.codec.documents import BOOLEAN, DOUBLE, INT32, INT64, STRING
from decoder.mongodb.secrets import SENSITIVE_COMMANDS

_LAYOUTS = {
    DOUBLE: struct.Struct("<d"),
    INT32: struct.Struct("<i"),
    INT64: struct.Struct("<q"),
    BOOLEAN: struct.Struct("<?"),
}
_LARGEST = 2**31 - 1
_CODE_NAME = re.compile(rb"[A-Z][A-Za-z0-9]{1,63}\0")
"""Names of error codes and error labels (mongo/base/error_codes.yml): words without anything between them."""

KNOWN_TEXTS = (
    "Authentication failed.",
    "auth failed",
    "auth fails",
    "bad auth : authentication failed",
    "bad auth : Authentication failed.",
    "bad auth Authentication failed.",
    "No SASL session state found",
    "sasl: Mismatched conversation id",
    "not master",
    "not primary",
    "node is recovering",
    "not master or secondary; cannot currently read from this replSet member",
    "interrupted at shutdown",
    "The server is in quiesce mode and will shut down",
    "operation exceeded time limit",
)
"""Error texts without a name, a value or a number in them."""
_COMMANDS = "|".join(sorted(SENSITIVE_COMMANDS)).encode()
_OF_A_COMMAND = re.compile(
    rb"(?:command (?:%b) requires authentication|no such (?:command|cmd): '?(?:%b)'?)" % (_COMMANDS, _COMMANDS),
    re.IGNORECASE,
)
"""Texts that quote nothing but the name of a command, which stays as well."""
_KNOWN_TEXTS = frozenset(text.encode() for text in KNOWN_TEXTS)


def is_ok(kind: int, value: bytes) -> bool:
    """Whether this is the ``ok`` of a reply: 0 or 1, as any number."""
    return _number(kind, value) in (0, 1)


def is_code(kind: int, value: bytes) -> bool:
    """Whether this can be the number of an error."""
    return kind != BOOLEAN and is_count(kind, value)


def is_count(kind: int, value: bytes) -> bool:
    """Whether this is a whole number that a server counts up to."""
    number = _number(kind, value)
    return number is not None and 0 <= number <= _LARGEST and number == int(number)


def is_code_name(kind: int, value: bytes) -> bool:
    """Whether this can be the name of an error code or an error label."""
    return kind == STRING and _CODE_NAME.fullmatch(value, 4) is not None


def is_known_text(kind: int, value: bytes) -> bool:
    """Whether this is an error text that quotes nothing."""
    text = value[4:-1]
    return kind == STRING and (text in _KNOWN_TEXTS or _OF_A_COMMAND.fullmatch(text) is not None)


def _number(kind: int, value: bytes) -> float | None:
    layout = _LAYOUTS.get(kind)
    return None if layout is None else float(layout.unpack(value)[0])
