"""What a search over generated traffic found (tests.hostile.amplify); each is the recipe that it printed."""

from __future__ import annotations

from tests.hostile.traffic import Landing, Recipe, landed

_OF_A_NUMBER = 500
"""Bytes on the wire for each unit of an amplifier's number."""
_SILENCES = Recipe(
    1408000979, (78, 60, 1000, 3, 60, 25), (0, 53, 110),
    (("client", 1), ("connection", 1000), ("cursor", 1000), ("generation", 1), ("group", 0), ("member", 1000),
     ("offset", 0), ("partition", 0), ("topic", 2), ("txn", 0)),
    1, 10, 3_600_000_000, 500, 1.0, 100,
)  # fmt: skip
_CLIENTS = Recipe(
    976472786, (65,), (3, 35),
    (("group", 2), ("member", 100), ("topic", 1000), ("partition", 10), ("txn", 100), ("client", 0), ("connection", 0),
     ("generation", 10), ("offset", 0), ("cursor", 0)),
    1, 1, 0, 500, 0.5,
)  # fmt: skip


def silences_of_share_groups(n: int) -> Landing:
    """Times without acknowledgements times partitions of a share group: a question each of what was written."""
    return landed(_SILENCES, _OF_A_NUMBER * n)


def clients_in_incidents(n: int) -> Landing:
    """Clients that each meet two refusals, all at one moment, and each make an incident."""
    return landed(_CLIENTS, _OF_A_NUMBER * n)
