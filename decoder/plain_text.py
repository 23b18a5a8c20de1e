"""Whether bytes can be a name or another text of a person's, for what stays because it is one."""

from __future__ import annotations

import re

_NOT_IN_TEXT = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def is_text(content: bytes) -> bool:
    """Whether a string may be one: UTF-8 without control characters.

    Whatever a wrong length makes reach from one value to the next is none: between Kafka's records are zeros or
    lengths, between elements of BSON types and zeros, and what is compressed is not UTF-8.
    """
    if _NOT_IN_TEXT.search(content):
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
