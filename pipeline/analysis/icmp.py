"""ICMP errors in words, and which of them state that somebody refuses a connection."""

from __future__ import annotations

from collections.abc import Mapping

TOO_BIG = "packet too big"
_PROHIBITED = "administratively prohibited"
_NO_ROUTE = "no route"

_V4: Mapping[tuple[int, int], str] = {
    (3, 0): "network unreachable", (3, 1): "host unreachable", (3, 2): "protocol unreachable",
    (3, 3): "port unreachable", (3, 4): TOO_BIG, (3, 6): "network unknown", (3, 7): "host unknown",
    (3, 9): "network administratively prohibited", (3, 10): "host administratively prohibited",
    (3, 11): "network unreachable for this type of service", (3, 12): "host unreachable for this type of service",
    (3, 13): _PROHIBITED, (11, 0): "time to live exceeded", (11, 1): "fragments did not arrive in time",
}  # fmt: skip
"""RFC 792, 1122, 1812."""
_V6: Mapping[tuple[int, int], str] = {
    (1, 0): _NO_ROUTE, (1, 1): _PROHIBITED, (1, 2): "beyond the scope of the source address",
    (1, 3): "address unreachable", (1, 4): "port unreachable", (1, 5): "source address refused by a policy",
    (1, 6): "route rejected", (2, 0): TOO_BIG, (3, 0): "hop limit exceeded", (3, 1): "fragments did not arrive in time",
}  # fmt: skip
"""RFC 4443."""
_REFUSALS = frozenset({(3, 2), (3, 3), (3, 9), (3, 10), (3, 13)}), frozenset({(1, 1), (1, 4), (1, 5), (1, 6)})
"""A host answers a SYN to a closed port by a reset: whoever answers by one of these has a rule that rejects it."""


def name_of(kind: int, code: int, *, is_v6: bool) -> str:
    """What a message states; type and code of those without a name."""
    return (_V6 if is_v6 else _V4).get((kind, code), f"type {kind}, code {code}")


def is_refusal(kind: int, code: int, *, is_v6: bool) -> bool:
    """Whether somebody does not want the packet, rather than that it found no way."""
    return (kind, code) in _REFUSALS[is_v6]
