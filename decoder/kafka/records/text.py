"""Reads the bytes of a string as Kafka does, which takes any: its ``new String(bytes, UTF_8)`` never fails."""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"
"""Stands for what is not UTF-8."""
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half a pair of UTF-16, written as UTF-8 would write it, or the begin of that: Java replaces it as one."""


def java_text(raw: bytes) -> str:
    """``raw`` as Java decodes UTF-8, with REPLACEMENT for each piece that is none, cut as Unicode suggests."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", raw).decode("utf-8", "replace")
