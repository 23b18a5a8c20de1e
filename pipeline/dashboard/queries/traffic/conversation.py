"""A conversation of several parties in order of time: who sent what to whom, repeats folded, pauses named.

Pure: rows in, steps out. A party is a client on a host, a broker, or the coordinator of a group or transaction; a
server that is both is two. As in :mod:`pipeline.dashboard.queries.traffic.steps` a step is a place in a picture whose
distances are not those of time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.format import host_of
from pipeline.dashboard.queries.progress.members import MEMBERS, OTHERS
from pipeline.humanize import pluralize

MOST = 36
"""Messages that one picture shows."""
_FEW = 2
"""Of a message that repeats this many are shown, and the last one."""
_MOST_TURNS = 20
"""Where more changed hands than this, changing hands is what repeats."""
_PAUSE = timedelta(seconds=3)
"""A pause that is named is no shorter."""
_LONG_ANSWER = timedelta(seconds=1)
TURNS = frozenset({"join", "leave", "assignment", "txn_init", "txn_end"})
"""Kinds of events after which what repeats begins again."""
_UUID = re.compile(r"-?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{6}([0-9a-f]{6})")
"""What a coordinator appends to a client id for a member id; its end distinguishes members."""
_OF_COORDINATORS = frozenset({
    ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.SHARE_GROUP_HEARTBEAT,
})  # fmt: skip

ORDINARY = {"MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"}
"""Error codes that are steps of a rebalance, not refusals."""
_KINDS: Mapping[str, str] = {
    "committed": "commit", "commit_rejected": "commit", "txn_committed": "commit", "txn_commit_rejected": "commit",
    "fetched_commit": "OffsetFetch", "join": "JoinGroup", "assignment": "SyncGroup", "leave": "LeaveGroup",
    "heartbeat": "Heartbeat", "txn_init": "InitProducerId", "txn_add_partition": "AddPartitionsToTxn",
    "txn_add_group": "AddOffsetsToTxn", "txn_end": "EndTxn", "txn_marker": "WriteTxnMarkers",
}  # fmt: skip
"""What events are called when they are counted."""

Role = Literal["client", "coordinator", "broker", "server"]


@dataclass(frozen=True, slots=True)
class Event:
    """What is known of a message before it is read: enough to fold those that repeat.

    Attributes:
        exchange_id: of the message.
        ts: when.
        who: client id and host.
        kind: of the event, such as ``committed`` or ``join``.
        error: its error; empty without one.
    """

    exchange_id: str
    ts: datetime
    who: tuple[str, str]
    kind: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Party:
    """A lane: its name, and what it is."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Message:
    """A request with its answer.

    Attributes:
        ts: when it was sent.
        sender, receiver: indexes of the parties.
        label: the api or command with its version.
        words: what it says, and what was answered.
        exchange_id: of both.
        is_wrong: whether the answer is an error, or did not come.
        is_marked: whether the story names it.
        skipped: what was left out before it, in words; empty: nothing.
        after: the time since the message before; None of the first, and where it is short.
    """

    ts: datetime
    sender: int
    receiver: int
    label: str
    words: str
    exchange_id: str
    is_wrong: bool
    is_marked: bool
    skipped: str = ""
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """Parties, clients first, and their messages in order of time."""

    parties: Sequence[Party]
    messages: Sequence[Message]


def shown(events: Sequence[Event], marked: Collection[str], most: int = MOST) -> list[Event]:
    """Those that a picture shows, in order of time: marked ones, the first of what repeats and the last of it.

    Args:
        events: in any order; several may be of one exchange.
        marked: ids of exchanges that the story names.
        most: how many.
    """
    once = {one.exchange_id: one for one in sorted(events, key=lambda one: one.kind not in TURNS, reverse=True)}
    in_order = sorted(once.values(), key=lambda one: (one.ts, one.exchange_id))
    parts_it = sum(one.kind in TURNS for one in in_order) <= _MOST_TURNS
    seen: Counter[tuple[object, ...]] = Counter()
    last: dict[tuple[object, ...], int] = {}
    part, weights = 0, list[int]()
    for at, one in enumerate(in_order):
        if one.kind in TURNS and parts_it:
            part += 1
        key = (0 if one.kind in TURNS else part, one.who, one.kind, one.error)
        last[key] = at
        seen[key] += 1
        weights.append(0 if one.exchange_id in marked else 1 if one.error and seen[key] == 1 else seen[key] + 1)
    for at in last.values():
        weights[at] = min(weights[at], _FEW + 1)
    kept = [at for at in sorted(range(len(in_order)), key=lambda at: (weights[at], at)) if weights[at] <= _FEW + 1]
    return [in_order[at] for at in sorted(kept[:most])]


def conversation(
    rows: Sequence[Mapping[str, Any]], marked: Mapping[str, str], events: Sequence[Event] = ()
) -> Conversation:
    """What some exchanges say, as messages between parties.

    Args:
        rows: of ``silver.exchanges`` with ``words``, those that are shown, in any order.
        marked: who acts, by the ids of exchanges that the story names.
        events: all that there were, also those that are not shown.
    """
    in_order = sorted(rows, key=lambda row: (row["request_ts"] or row["ts"], row["exchange_id"]))
    names = _client_names(in_order, marked)
    parties = _parties(in_order, names, marked)
    place = {party: at for at, party in enumerate(parties)}
    known = {row["exchange_id"] for row in in_order}
    left_out = sorted((one for one in events if one.exchange_id not in known), key=lambda one: one.ts)
    found: list[Message] = []
    before: datetime | None = None
    for row in in_order:
        ts = row["request_ts"] or row["ts"]
        skipped = [one for one in left_out if before is not None and before < one.ts < ts]
        after = None if before is None or ts - before < _PAUSE else ts - before
        client = _client(row, names, parties)
        found.append(Message(
            ts, place[client], place[_server(row)], _label(row), _words(row), row["exchange_id"], _is_wrong(row),
            row["exchange_id"] in marked, _in_words(skipped), after,
        ))  # fmt: skip
        before = ts
    return Conversation(parties, found)


def _parties(
    rows: Sequence[Mapping[str, Any]], names: Mapping[tuple[str, str], str], marked: Collection[str]
) -> list[Party]:
    """Clients, first those that the story names, as they speak; of very many the first ones by name; then servers."""
    first = sorted(rows, key=lambda row: row["exchange_id"] not in marked)
    clients = list(dict.fromkeys(names[_who(row)] for row in first))
    if len(clients) > MEMBERS:
        clients = [*clients[: MEMBERS - 1], OTHERS]
    servers = dict.fromkeys(_server(row) for row in rows)
    roles: tuple[Role, ...] = ("coordinator", "broker", "server")
    return [*(Party(name, "client") for name in clients), *sorted(servers, key=lambda one: roles.index(one.role))]


def _who(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["client_id"] or "", host_of(row["client"])


def _client_names(rows: Sequence[Mapping[str, Any]], marked: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Clients by their id, with the host where several have it; one without an id as the story names it."""
    hosts: defaultdict[str, set[str]] = defaultdict(set)
    actors = {}
    for row in rows:
        client_id, host = _who(row)
        hosts[client_id].add(host)
        if not client_id and row["exchange_id"] in marked:
            actors[host] = marked[row["exchange_id"]]
    return {
        (client_id, host): actors.get(host, host) if not client_id
        else f"{client_id} ({host})" if len(there) > 1 else client_id
        for client_id, there in hosts.items()
        for host in there
    }  # fmt: skip


def _client(row: Mapping[str, Any], names: Mapping[tuple[str, str], str], parties: Sequence[Party]) -> Party:
    own = Party(names[_who(row)], "client")
    return own if own in parties else Party(OTHERS, "client")


def _server(row: Mapping[str, Any]) -> Party:
    if row["protocol"] != "kafka":
        return Party(row["server"], "server")
    return Party(row["server"], "coordinator" if row["api_key"] in _OF_COORDINATORS else "broker")


def _label(row: Mapping[str, Any]) -> str:
    version = "" if row["api_version"] is None else f" v{row['api_version']}"
    return f"{row['api_name'] or 'a request'}{version}"


def _words(row: Mapping[str, Any]) -> str:
    words = _UUID.sub(r"…\1", str(row["words"] or ", ".join(row["error_names"] or ())))
    took = timedelta(microseconds=row["latency_us"] or 0)
    if row["status"] == "unanswered":
        return f"{words} (no answer)".strip()
    return f"{words} (after {took.total_seconds():.1f} s)".strip() if took >= _LONG_ANSWER else words


def _is_wrong(row: Mapping[str, Any]) -> bool:
    return bool({*(row["error_names"] or ())} - ORDINARY) or row["status"] == "unanswered"


def _in_words(skipped: Sequence[Event]) -> str:
    """How many messages were left out, by client and kind."""
    counts = Counter((one.who[0] or one.who[1], _KINDS.get(one.kind, one.kind), bool(one.error)) for one in skipped)
    return ", ".join(
        f"{pluralize(number, f'refused {kind}' if is_refused else kind)} of {name}"
        for (name, kind, is_refused), number in counts.most_common(4)
    )
