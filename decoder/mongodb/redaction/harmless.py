"""Whether a document may hold a secret: the quick answer for the many that hold none."""

from __future__ import annotations

from decoder.mongodb.codec.documents import TOO_MANY, common_values
from decoder.mongodb.secret_text import BEGINNINGS, INSIDE, may_be_secret
from decoder.mongodb.secrets import NAMES


def may_have_texts(data: bytes) -> bool:
    """Whether a message may have secrets inside longer texts."""
    return any(mark in data for mark in INSIDE)


def harmless_values(data: bytes, start: int, end: int, most: int, *, with_texts: bool) -> int | None:
    """How many values a document has in which nothing is secret, wrong or rare; None: look closer.

    Args:
        data: the message.
        start, end: the document.
        most: values that it may have; None is given for one with more.
        with_texts: see :func:`may_have_texts`.
    """
    count = common_values(data, start, end, most, NAMES, BEGINNINGS, may_be_secret if with_texts else None)
    return None if count == TOO_MANY else count
