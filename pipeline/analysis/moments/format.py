"""Words of moments: a row that states what an exchange did becomes a moment, the actor first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from pipeline.analysis.moments.model import Moment
from pipeline.analysis.tables import Row

Name = Callable[[str | None, str], str]
"""Of a client id and an ``ip:port`` the name by which a moment knows a client."""

_SLOW_US: Final = 1_000_000
"""Answers that took less are not worth a word."""
LOST: Final = "unanswered"
_WITHOUT: Final = ", no answer seen"
_NO_ERROR = (None, "", "NONE")
COMMITS = ("committed", "commit_rejected", "txn_committed", "txn_commit_rejected")
"""Kinds of events that state a commit."""
_VERBS: Mapping[str, tuple[str, str]] = {
    "committed": ("commits", " at"), "commit_rejected": ("commits", " at"), "txn_committed": ("commits", " at"),
    "txn_commit_rejected": ("commits", " at"), "produced": ("writes to", " at offset"),
    "produce_rejected": ("writes to", ""), "fetched": ("reads", " at offset"),
    "fetch_rejected": ("reads", " at offset"), "fetched_commit": ("asks for the commit of", ", which is"),
    "listed": ("asks for an offset of", ", which is"), "fetch_forgotten": ("stops reading", ""),
}  # fmt: skip
_SAMPLED = ("fetched", "produced")
"""Of what continues all the time a finding names a few exchanges."""
_NOTHING_COMMITTED = -1
_CONNECTIONS = {
    "refused": "is refused a connection by", "unanswered": "asks for a connection, without an answer from",
    "silent": "opens a connection, on which nothing is sent, to", "other": "speaks neither Kafka nor MongoDB with",
    "spoke": "loses a connection to", "served": "opens a connection to", "unknown": "has a connection to",
}  # fmt: skip
_STATES = {
    "join": "joins group {group}", "leave": "leaves group {group}", "assignment": "gets its part of group {group}",
    "heartbeat": "sends a heartbeat to group {group}",
    "txn_init": "starts as {transaction}", "txn_add_partition": "adds {place} to transaction {transaction}",
    "txn_add_group": "adds group {group} to transaction {transaction}",
}  # fmt: skip


def of_event(row: Row, name: Name) -> Moment | None:
    """What a row of ``silver.offset_events`` says; None: nothing for a story."""
    if row.kind not in _VERBS:
        return None
    verb, before = _VERBS[row.kind]
    place = f"{row.topic or 'a topic without a known name'}-{row.partition}"
    offset, failed = row.offset, row.error_name not in _NO_ERROR
    behind = f", refused: {row.error_name}" if failed else ""
    if row.kind == "fetched_commit" and (offset is None or offset == _NOTHING_COMMITTED):
        offset, behind = None, behind or ", and there is none"
    does = f"{verb} {place}{before if offset is not None else ''}"
    return Moment(
        row.us, name(row.client_id, row.client), does, row.exchange_id, offset, offset, behind, _stable(row),
        is_refused=failed, is_least=row.kind in _SAMPLED,
    )  # fmt: skip


def going_back(moments: Iterable[Moment]) -> Iterator[Moment]:
    """Commits of one partition of a group in the order of time; one below the one before sets the group back."""
    before: int | None = None
    for one in moments:
        if one.is_refused or one.low is None:
            yield one
            continue
        is_back = before is not None and one.low < before
        before = one.low
        place = one.does.removeprefix("commits ").removesuffix(" at")
        yield replace(one, does=f"sets {place} back to offset") if is_back else one


def _stable(row: Row) -> str:
    stable, high = row.last_stable_offset, row.high_watermark
    if row.kind != "fetched" or stable is None or high is None or not 0 <= stable < high:
        return ""
    return f"last stable offset {stable}, high watermark {high}"


def of_state(row: Row, name: Name) -> Moment | None:
    """What a row of ``silver.state_events`` says of a group or a transaction; None: nothing for a story."""
    failed = row.error_name not in _NO_ERROR
    names = {
        "group": row.group_id, "transaction": row.transactional_id,
        "place": row.topic if row.partition is None else f"{row.topic}-{row.partition}",
    }  # fmt: skip
    actor, ends = name(row.client_id, row.client), "commits" if row.committed else "aborts"
    if row.kind == "txn_end":
        does = f"{ends} transaction {row.transactional_id}"
    elif row.kind == "txn_marker":
        actor, marker = f"broker {row.server}", "commit" if row.committed else "abort"
        does = f"takes the {marker} marker of a transaction on {names['place']}"
    elif row.kind in _STATES:
        does = _STATES[row.kind].format(**names)
    else:
        return None
    behind = f", refused: {row.error_name}" if failed else ""
    return Moment(row.us, actor, does, row.exchange_id, behind=behind, is_refused=failed)


def of_exchange(row: Row, name: Name) -> Moment:
    """What a row of ``silver.exchanges`` shows by itself."""
    errors = [one for one in row.error_names or () if one not in _NO_ERROR]
    is_lost = row.status == LOST
    behind = _WITHOUT if is_lost else f", refused: {', '.join(errors[:2])}" if errors else ""
    took = row.latency_us if (row.latency_us or 0) >= _SLOW_US else None
    version = "" if row.api_version is None else f" v{row.api_version}"
    return Moment(
        row.us, name(row.client_id, row.client), f"sends {row.api_name or 'a request'}{version}", row.exchange_id,
        behind=behind, took_us=took, is_refused=bool(errors) or is_lost,
    )  # fmt: skip


def with_wait(moment: Moment, row: Row | None) -> Moment:
    """A moment with how long its answer took, from the row of ``silver.exchanges``: it begins with the request."""
    if row is None:
        return moment
    if row.status == LOST:
        return replace(moment, us=row.us, last_us=row.us, behind=moment.behind or _WITHOUT, is_refused=True)
    if (row.latency_us or 0) < _SLOW_US:
        return moment
    return replace(moment, us=row.us, last_us=row.us, took_us=row.latency_us)


def of_command(row: Row, name: Name) -> Moment:
    """What a row of ``silver.mongo_commands`` says."""
    named = ".".join(one for one in (row.database, row.collection) if one)
    place = f" on {named}" if named else ""
    failed = row.error_name or (f"error {row.error_code}" if row.error_code else "")
    took = row.latency_us if (row.latency_us or 0) >= _SLOW_US and not row.is_awaiting else None
    return Moment(
        row.us, name(row.application, row.client), f"sends {row.command or 'a command'}{place}", row.exchange_id,
        behind=f", which fails: {failed}" if failed else "", took_us=took, is_refused=bool(failed),
    )  # fmt: skip


def of_connection(row: Row) -> Moment:
    """What a row of ``silver.connections`` says."""
    many = row.connections if row.connections and row.connections > 1 else 1
    return Moment(
        row.us, row.client_ip or "some clients", f"{_CONNECTIONS.get(row.how, 'has a connection to')} {row.server}",
        times=many, last_us=row.last_us if many > 1 else row.us, connection_id=row.connection_id,
        is_refused=row.how in ("refused", "unanswered", "spoke"),
    )  # fmt: skip


def of_generation(row: Row, place: str, owner: str | None, changed: bool | None) -> Moment:
    """A group begins a generation.

    Args:
        row: with ``group_id``, ``generation``, and how many ``members`` are seen in it.
        place: the partition that a finding is about; empty: none.
        owner: who owns it now; None: that was not seen.
        changed: whether somebody else owned it before; None: that was not seen.
    """
    members = f", {row.members} member{'' if row.members == 1 else 's'} seen"
    owns = f", {owner} {'still owns' if changed is False else 'owns'} {place}" if owner and place else members
    return Moment(
        row.us, f"group {row.group_id}", "begins generation", row.exchange_id, row.generation, row.generation,
        owns, is_turn=True,
    )  # fmt: skip
