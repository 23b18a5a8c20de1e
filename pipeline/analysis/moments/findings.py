"""Adds to findings the moments by which they happened."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pipeline.analysis.moments.folding import chosen, folded
from pipeline.analysis.moments.format import (
    LOST,
    Name,
    going_back,
    of_command,
    of_connection,
    of_event,
    of_exchange,
    of_generation,
    of_state,
    with_wait,
)
from pipeline.analysis.moments.model import Moment
from pipeline.analysis.moments.reading import MOST_OF_A_SUBJECT, Read, read
from pipeline.analysis.moments.wanted import (
    BEFORE_US,
    Wanted,
    connections_of,
    evidence_of,
    place_of,
    transaction_of,
)
from pipeline.analysis.rules.format import host_of
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.rule import rule_named
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock

_PROCESS, _FETCH = "process", "Fetch"
_ENDS = 2
"""Of what continues all the time, this many exchanges of a finding are the first and the last one."""


def with_moments(findings: Sequence[Finding], tables: Tables, most_evidence: int) -> list[Finding]:
    """The same findings, each with its moments in the order of time.

    Args:
        findings: of any rules.
        tables: see Sources.tables.
        most_evidence: exchanges that a rule notes at most: of a finding with this many there may have been more.
    """
    if not findings:
        return []
    wanted = Wanted.of(findings)
    seen = read(tables, wanted)
    hosts, alone = _hosts(seen), seen.of_evidence()
    return [
        replace(
            one, moments=moments_of_finding(one, seen if is_worst else alone, hosts, most_evidence if is_worst else 0)
        )
        for one in findings
        for is_worst in (one.finding_id in wanted.worst,)
    ]


def moments_of_finding(
    one: Finding, seen: Read, hosts: Mapping[str, frozenset[str]], most_evidence: int
) -> tuple[Moment, ...]:
    """At most eight moments of a finding, by time; none if nothing of it was read.

    Args:
        one: the finding.
        seen: what was read.
        hosts: by client id the hosts that it comes from.
        most_evidence: see with_moments; 0: not all of its exchanges were read.
    """
    name = _names(one, hosts)
    around = [*_of_place(one, seen, name), *_of_group(one, seen, name), *_of_transaction(one, seen, name)]
    known = {(moment.exchange_id, moment.actor, moment.low): moment for moment in around if not moment.is_turn}
    is_cut = len(one.evidence) >= most_evidence or len(connections_of(one)) >= most_evidence
    stated = list(_of_evidence(one, seen, name))
    often = Counter(moment.key for moment in stated)
    own = [
        known.get((moment.exchange_id, moment.actor, moment.low))
        or replace(moment, is_least=is_cut or (moment.is_least and often[moment.key] <= _ENDS))
        for moment in stated
    ]
    return tuple(chosen(folded([*own, *around, *_silence(one)]), own))


def _silence(one: Finding) -> Iterator[Moment]:
    """What did not come until the end of a finding that continues: no exchange shows it."""
    if one.state == "resolved" or not rule_named(one.rule).is_silence:
        return
    if one.group_id and one.topic:
        since = f"has not committed {_named_place(one)} since {clock(one.first_us)} UTC"
        yield Moment(one.last_us, f"group {one.group_id}", f"{since}, as far as was captured")
    elif (transaction := transaction_of(one)) is not None:
        yield Moment(one.last_us, f"transaction {transaction}", "has not ended, as far as was captured")


def _named_place(one: Finding) -> str:
    """The topic that a finding is about, or the partition."""
    return f"{one.topic}" if one.partition is None else f"{one.topic}-{one.partition}"


def _hosts(seen: Read) -> dict[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for rows in (seen.exchanges.values(), *seen.commits.values(), *seen.groups.values()):
        for row in rows:
            if row.client_id:
                found[row.client_id].add(host_of(row.client))
    return {name: frozenset(some) for name, some in found.items()}


def _names(one: Finding, hosts: Mapping[str, frozenset[str]]) -> Name:
    """Clients by their id; with the host where several have it, with the port where the finding says so."""
    process = one.details.get(_PROCESS)
    twin = process.get("client_id") if isinstance(process, dict) else None

    def name(client_id: str | None, address: str) -> str:
        if not client_id:
            return address or "a client"
        if client_id == twin:
            return f"{client_id} ({address})"
        return f"{client_id} ({host_of(address)})" if len(hosts.get(client_id, ())) > 1 and address else client_id

    return name


def _of_evidence(one: Finding, seen: Read, name: Name) -> Iterator[Moment]:
    """What the exchanges of a finding state of its subject, else what they are."""
    for exchange_id in evidence_of(one):
        moment = _of_exchange(one, exchange_id, seen, name)
        if moment is not None:
            yield moment if one.topic else with_wait(moment, seen.exchanges.get(exchange_id))
    if not one.evidence:
        yield from (of_connection(seen.connections[each]) for each in connections_of(one) if each in seen.connections)


def _of_exchange(one: Finding, exchange_id: str, seen: Read, name: Name) -> Moment | None:
    events = seen.events.get((exchange_id, one.topic, one.partition), ())
    found = [moment for each in events if (moment := of_event(each, name)) is not None]
    row = seen.exchanges.get(exchange_id)
    if found and (len(found) == 1 or one.partition is not None):
        return found[0]
    if (command := seen.commands.get(exchange_id)) is not None:
        return of_command(command, name)
    if (state := seen.states.get(exchange_id)) is not None and (moment := of_state(state, name)) is not None:
        return moment
    if found:
        return next((moment for moment in found if moment.is_refused), found[0])
    if row is not None and row.api_name == _FETCH and one.topic and row.status != LOST and not row.error_names:
        return replace(of_exchange(row, name), does=f"fetches, and gets nothing of {_named_place(one)}")
    return None if row is None else of_exchange(row, name)


def _of_place(one: Finding, seen: Read, name: Name) -> Iterator[Moment]:
    place = place_of(one)
    if place is None:
        return
    commits = seen.commits.get(place, [])
    yield from _of_its_time(going_back(_known(of_event(row, name) for row in commits)), one, commits)
    if rule_named(one.rule).is_at_last_stable_offset:
        starved = seen.starved.get(place, [])
        yield from _of_its_time(_known(of_event(row, name) for row in starved), one, starved)


def _of_its_time(moments: Iterable[Moment], one: Finding, rows: Sequence[Row]) -> Iterator[Moment]:
    is_cut = len(rows) >= MOST_OF_A_SUBJECT
    return (replace(moment, is_least=is_cut) for moment in moments if one.first_us <= moment.us <= one.last_us)


def _known(moments: Iterable[Moment | None]) -> Iterator[Moment]:
    return (moment for moment in moments if moment is not None)


def _of_group(one: Finding, seen: Read, name: Name) -> Iterator[Moment]:
    if not one.group_id:
        return
    key, place = (one.cluster, one.group_id), place_of(one)
    yield from _known(of_state(row, name) for row in _between(seen.groups.get(key, ()), one))
    owners = sorted(seen.owners.get(place, ()), key=lambda row: row.us) if place else ()
    by_generation = {row.generation: row for row in owners if row.group_protocol == "classic"}
    words = f"{one.topic}-{one.partition}" if place else ""
    for row in _between(seen.generations.get(key, ()), one):
        owner = by_generation.get(row.generation)
        before = [other for other in owners if owner is not None and other.us < owner.us]
        changed = None if owner is None or not before else before[-1].member_id != owner.member_id
        yield of_generation(row, words, None if owner is None else _member(owner.member_id, seen, name), changed)


def _member(member_id: str | None, seen: Read, name: Name) -> str | None:
    row = seen.members.get(member_id or "")
    return member_id if row is None else name(row.client_id, row.client or "")


def _of_transaction(one: Finding, seen: Read, name: Name) -> Iterator[Moment]:
    transactional_id = transaction_of(one)
    if transactional_id is not None:
        rows = seen.transactions.get((one.cluster, transactional_id), ())
        yield from _known(of_state(row, name) for row in _between(rows, one))


def _between(rows: Iterable[Row], one: Finding) -> Iterator[Row]:
    """Rows of the time of a finding, and of shortly before."""
    return (row for row in rows if one.first_us - BEFORE_US <= row.us <= one.last_us)
