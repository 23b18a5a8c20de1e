"""The errors that a response names; its protocol knows where they are."""

from __future__ import annotations

from decoder.protocols import protocols


def response_errors(protocol: str, body: str | None) -> list[tuple[int, str]] | None:
    """Code and name of each error, distinct and ascending; None without a body, or of a protocol that is not known."""
    found = protocols().get(protocol)
    return None if body is None or found is None else found.response_errors(body)
