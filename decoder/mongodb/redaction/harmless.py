"""Is there anything in a document that may be a secret? The quick answer for the many in which there is nothing."""

from __future__ import annotations

import struct

from decoder import limits
from decoder.mongodb.codec.documents import (
    ARRAY,
    BINARY,
    BOOLEAN,
    DOCUMENT,
    FIXED_BYTES,
    MIN_DOCUMENT_BYTES,
    OLD_BINARY,
    STRING,
)
from decoder.mongodb.secret_text import BEGINNINGS, INSIDE, may_be_secret
from decoder.mongodb.secrets import NAMES

_INT32 = struct.Struct("<i")


def may_have_texts(data: bytes) -> bool:
    """Whether a message may have secrets inside longer texts."""
    return any(mark in data for mark in INSIDE)


def harmless_values(data: bytes, start: int, end: int, most: int, *, with_texts: bool) -> int | None:  # noqa: C901, PLR0911, PLR0912  one loop: calls cost more
    """How many values a document has in which nothing is secret, wrong or rare; None: look closer.

    As decoder.mongodb.codec.documents.check, with the names and texts of secrets.

    Args:
        data: the message.
        start, end: the document.
        most: values that it may have; None is given for one with more.
        with_texts: see :func:`may_have_texts`.
    """
    if end - start < MIN_DOCUMENT_BYTES or _INT32.unpack_from(data, start)[0] != end - start or data[end - 1]:
        return None
    read, find, fixed = _INT32.unpack_from, data.find, FIXED_BYTES
    at, last, outer, count = start + 4, end - 1, [], 0  # type: ignore[var-annotated]
    while True:
        kind = data[at]
        if not kind:
            if at != last:
                return None
            if not outer:
                return count
            at += 1
            last = outer.pop()
            continue
        key = at + 1
        value = find(0, key, last) + 1
        count += 1
        if not value or count > most or NAMES[data[key : value - 1]]:
            return None
        if kind in fixed:
            at = value + fixed[kind]
            if at > last or (kind == BOOLEAN and data[value] > 1):
                return None
            continue
        if last - value < MIN_DOCUMENT_BYTES:
            return None
        size = read(data, value)[0]
        if kind in (DOCUMENT, ARRAY):
            inner = value + size - 1
            if size < MIN_DOCUMENT_BYTES or inner >= last or data[inner] or len(outer) + 2 > limits.MAX_BSON_DEPTH:
                return None
            outer.append(last)
            at, last = value + 4, inner
            continue
        if kind == STRING:
            begin, at = value + 4, value + 4 + size
            if size < 1 or at > last or data[at - 1]:
                return None
        elif kind == BINARY and data[value + 4] != OLD_BINARY:
            begin, at = value + 5, value + 5 + size
            if size < 0 or at > last:
                return None
        else:
            return None
        if data[begin : begin + 2] in BEGINNINGS or (with_texts and may_be_secret(data[begin:at])):
            return None
