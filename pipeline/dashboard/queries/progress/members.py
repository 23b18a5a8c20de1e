"""Who is distinguished in a picture: members of a group, each by the id that the coordinator gave it.

One process may be two members, one after the other, and two processes one client id: the pair of both names a member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

MEMBERS = 6
"""Members that one picture distinguishes: as many colours are safely different for everybody."""
OTHERS = "others"
"""What all further members are called together."""
_RESTARTS = 3
"""Of this many lives one after the other a client was restarted."""
_TAIL = 6
"""Characters of a member id that distinguish members of one client id."""

Key = tuple[str, str]
"""client id and member id; empty where the wire has none."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member as a picture names it.

    Attributes:
        client_id: empty if it is not known.
        member_id: empty of commits without one: a consumer that assigns itself, or a member that was put out.
        label: distinct among the members of a picture.
    """

    client_id: str
    member_id: str
    label: str


def members(keys: Iterable[Key], most: int = MEMBERS, restarted: Collection[str] = ()) -> list[Member]:
    """The first ``most`` distinct members of ``keys``, named.

    Args:
        keys: those who matter most first. A client id that is empty, as where only the group's leader has named the
            member, is taken from another key with the same member id.
        most: how many; all members of a client that was restarted count as one.
        restarted: client ids that are one process after the other, see :func:`restarted_clients`; their members share
            a label.
    """
    distinct = _first(_distinct(keys), most, restarted)
    clients = Counter(client for client, _ in distinct)
    labels = [_label(key, alone=clients[key[0]] == 1 or key[0] in restarted) for key in distinct]
    twice = Counter(dict.fromkeys(labels, 1) if restarted else labels)
    return [
        Member(client, member, f"{label} #{number}" if twice[label] > 1 or label == OTHERS else label)
        for number, ((client, member), label) in enumerate(zip(distinct, labels, strict=True), 1)
    ]


def _first(keys: Sequence[Key], most: int, restarted: Collection[str]) -> list[Key]:
    """Keys of the first ``most``, where all of a restarted client are one."""
    known = dict.fromkeys((client,) if client in restarted else (client, member) for client, member in keys)
    kept = set(list(known)[:most])
    return [key for key in keys if key in kept or key[:1] in kept]


def restarted_clients(owned: Iterable[Mapping[str, Any]]) -> set[str]:
    """Client ids that came again and again, each time as one other member: a process that dies and is started again.

    Args:
        owned: ``client_id``, ``member_id``, ``owned_from``, ``owned_until`` of partitions.
    """
    found = set()
    for client, lives in _lives(owned).items():
        spans = sorted(lives.values())
        if client and len(spans) >= _RESTARTS and all(a[1] <= b[0] for a, b in pairwise(spans)):
            found.add(client)
    return found


def ends_of_lives(owned: Iterable[Mapping[str, Any]]) -> list[tuple[datetime, str, str]]:
    """When a member of a restarted client owned something last, with its client and member id; not of the last one."""
    rows = list(owned)
    restarted = restarted_clients(rows)
    return sorted(
        (span[1], client, member)
        for client, lives in _lives(rows).items()
        if client in restarted
        for member, span in sorted(lives.items(), key=lambda one: one[1])[:-1]
    )


def _lives(owned: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, tuple[datetime, datetime]]]:
    """By client and member id from when to when each owned something."""
    lives: dict[str, dict[str, tuple[datetime, datetime]]] = {}
    for row in owned:
        begin, end = row["owned_from"], row["owned_until"]
        known = lives.setdefault(row["client_id"] or "", {})
        first, last = known.get(row["member_id"], (begin, end))
        known[row["member_id"]] = min(first, begin), max(last, end)
    return lives


def label_of(shown: Sequence[Member], client_id: str | None, member_id: str | None) -> str:
    """What the picture calls a member: its label, or ``OTHERS``, as for both ids null.

    Args:
        shown: who is distinguished.
        client_id: empty or null where only the group's leader has named the member.
        member_id: empty if the wire has none.
    """
    if client_id is None and member_id is None:
        return OTHERS
    client, member = client_id or "", member_id or ""
    same = (one for one in shown if one.member_id == member and (one.client_id == client or (member and not client)))
    return next((one.label for one in same), OTHERS)


def label_of_client(shown: Sequence[Member], client_id: str) -> str:
    """The only member of this client id; ``OTHERS`` if it is none or several: a fetch does not name a member."""
    same = {one.label for one in shown if one.client_id == client_id}
    return same.pop() if len(same) == 1 else OTHERS


def _distinct(keys: Iterable[Key]) -> list[Key]:
    there = list(keys)
    clients = {member: client for client, member in reversed(there) if client and member}
    return list(dict.fromkeys((client or clients.get(member, ""), member) for client, member in there))


def one_of_many(client: str, member: str) -> str:
    """The name of a member beside others of its client id."""
    if not client:
        return member or "no name, no member id"
    return f"{client} …{member[-_TAIL:]}" if member else f"{client}, no member id"


def _label(key: Key, *, alone: bool) -> str:
    client, member = key
    if alone:
        return client or member or "no name"
    return one_of_many(client, member)
