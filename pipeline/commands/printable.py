"""What of a capture may reach a terminal? Names, keys and values come from the wire, and with them what steers it."""

from __future__ import annotations


def printable(text: str) -> str:
    """``text`` with an escape in place of each character that is not printable (CWE-150), line ends included."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
