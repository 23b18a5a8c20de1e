"""Processes that stood still for longer than their session timeout, while their groups continued without them.

Meaning: a garbage collection, SIGSTOP, a suspended or migrated machine, a CPU limit. The process knows nothing of it:
it continues where it was, as a member that is none any more, and what it commits is refused.
Evidence: no request on any of its connections for as long as the session timeout that it stated, and then a refusal of
its old member id, or a new join on the same connection; and no LeaveGroup. A process that is only slow heartbeats on
and leaves by itself (poll_interval_exceeded); one that ended comes back by new connections.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from decoder.fields import natural, parsed, text
from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.rules.format import host_of
from pipeline.analysis.rules.kinds import kinds
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, IS_CONNECTION, Row, Tables, numbers

_PUT_OUT = numbers(
    KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError.STALE_MEMBER_EPOCH,
)  # fmt: skip
_LEAST_US, _UNSTATED_US, _DEFAULT_US = 6_000_000, 15_000_000, 45_000_000
"""The shortest session timeout that brokers allow; three heartbeats of a member that states none; their default."""
_SHARE = 2 / 3
"""Of the session timeout: clients heartbeat three times in it, so that the last may be so long before the halt."""


@dataclass(frozen=True, slots=True)
class Halt:
    """A process that sent nothing for a while. Times are µs since the epoch.

    Attributes:
        client: ip:port of the connection to the coordinator.
        first_us, last_us: its last request before, and its first one after.
        refused, commits: requests as the old member that were refused then, and how many of them are commits.
        errors: of these refusals.
        back_us: when it was in the group again; None: that was not seen.
    """

    cluster: str
    group: str
    client_id: str | None
    client: str
    member: str
    first_us: int
    last_us: int
    exchange_id: str
    session_us: int | None = None
    refused: int = 0
    commits: int = 0
    errors: tuple[str, ...] = ()
    back_us: int | None = None


_ACCEPTED = """
    SELECT cluster, group_id, member_id, client_id, client, epoch_us(ts) AS us FROM states
    WHERE kind IN ('join', 'heartbeat', 'assignment') AND error_code = 0 AND coalesce(member_id, '') <> ''
        AND (kind <> 'assignment' OR group_protocol <> 'classic')
    UNION ALL
    SELECT cluster, group_id, member_id, client_id, client, epoch_us(ts) FROM events
    WHERE kind IN ('committed', 'txn_committed') AND coalesce(member_id, '') <> ''
"""
_REFUSED = f"""
    SELECT cluster, group_id, member_id, client_id, client, epoch_us(ts) AS us, exchange_id, error_name,
        false AS commits
    FROM states WHERE error_code IN {_PUT_OUT} AND coalesce(member_id, '') <> ''
    UNION ALL
    SELECT cluster, group_id, member_id, client_id, client, epoch_us(ts), exchange_id, any_value(error_name), true
    FROM events WHERE error_code IN {_PUT_OUT} AND coalesce(member_id, '') <> '' AND kind LIKE '%commit_rejected'
    GROUP BY ALL
"""
_SIGNS = f"""
    WITH accepted AS ({_ACCEPTED}), refused AS ({_REFUSED}), lives AS (
        SELECT cluster, group_id, member_id, any_value(client_id) AS client_id, max(client) AS client,
            min(us) AS first_us, max(us) AS last_us FROM accepted GROUP BY cluster, group_id, member_id
    ), put_out AS (
        SELECT r.cluster, r.group_id, r.member_id, r.client_id, r.client, a.us AS since_us, min(r.us) AS us,
            arg_min(r.exchange_id, r.us) AS exchange_id
        FROM refused AS r ASOF JOIN accepted AS a
            ON r.cluster = a.cluster AND r.group_id = a.group_id AND r.member_id = a.member_id AND r.us > a.us
        GROUP BY ALL
    ), joined AS (
        SELECT cluster, group_id, member_id, client_id, client, epoch_us(ts) AS us, exchange_id FROM states
        WHERE kind = 'join' AND error_code = 0 AND coalesce(generation, -1) >= 0 AND member_id IS NOT NULL
        QUALIFY row_number() OVER (PARTITION BY cluster, group_id, client, us ORDER BY exchange_id) = 1
    ), again AS (
        SELECT j.cluster, j.group_id, o.member_id, j.client_id, j.client, o.last_us AS since_us, j.us, j.exchange_id
        FROM lives AS o ASOF JOIN joined AS j ON o.cluster = j.cluster AND o.group_id = j.group_id
            AND o.client = j.client AND o.last_us < j.us
    ), signs AS (
        SELECT * FROM put_out UNION ALL SELECT * FROM again
    )
    SELECT s.*, epoch_us(coalesce(x.request_ts, x.ts)) AS asked_us, x.client_ip, x.connection_id
    FROM signs AS s JOIN exchanges AS x USING (exchange_id)
    WHERE epoch_us(coalesce(x.request_ts, x.ts)) - since_us >= {_LEAST_US} AND NOT EXISTS (
        FROM states AS l WHERE l.kind = 'leave' AND l.error_code = 0 AND l.cluster = s.cluster
            AND l.group_id = s.group_id AND l.member_id = s.member_id AND epoch_us(l.ts) BETWEEN s.since_us AND s.us
    )
    ORDER BY s.us, exchange_id
"""
"""Members that were accepted, then long not, and are then refused, or join again on the same connection."""
_ANEW = """
    SELECT client FROM states WHERE kind = 'join' AND error_code = 0 AND coalesce(generation, -1) >= 0
    GROUP BY client HAVING count(DISTINCT member_id) > 1
"""
_SESSIONS = f"""
    SELECT client_id, client_ip, request_body FROM exchanges
    WHERE protocol = 'kafka' AND api_key = {int(ApiKey.JOIN_GROUP)} AND request_body IS NOT NULL ORDER BY ts
"""
_ASKED = f"""
    SELECT client_ip, client_id, {ADDRESS["client"]} AS address, epoch_us(coalesce(request_ts, ts)) AS us
    FROM exchanges SEMI JOIN halts ON exchanges.client_ip = halts.client_ip
        AND exchanges.client_id IS NOT DISTINCT FROM halts.client_id
    WHERE us IS NOT NULL ORDER BY us
"""
"""What processes asked: of a halt what counts is from when its member was accepted last to when it was refused; where
another member has its client id and host, on its own connection alone."""
_LOST = f"""
    WITH lost AS (
        SELECT x.client_ip, coalesce(x.client_id, chr(0)) AS client_id, epoch_us(g.ts) AS us FROM gaps AS g
        JOIN (SELECT DISTINCT connection_id, client_ip, client_id FROM exchanges) AS x USING (connection_id)
        WHERE NOT {IS_CONNECTION}
    )
    SELECT number FROM (SELECT *, coalesce(client_id, chr(0)) AS whose FROM halts) AS h
    ASOF JOIN lost ON h.client_ip = lost.client_ip AND h.whose = lost.client_id AND h.asked_us >= lost.us
    WHERE lost.us >= h.since_us
"""
_UNHEARD = """
    SELECT client_ip, epoch_us(first_ts) AS first_us,
        CASE WHEN is_interim THEN 1 << 62 ELSE epoch_us(client_spoke_ts) END AS spoke_us FROM connections
    WHERE client_sent_again > 1 AND client_unacknowledged > 0 AND client_spoke_ts IS NOT NULL
"""
"""Connections on which the server never acknowledged what a client sent again: the way is cut, not the process."""


def may_be(sources: Sources) -> bool:
    """Whether any member was put out, or entered again by the same connection."""
    came = kinds(sources)
    is_put_out = not (came.codes_of_states | came.codes_of_events).isdisjoint(_PUT_OUT)
    return is_put_out or (came.has_state("join") and sources.tables.any(_ANEW))


def halts(tables: Tables) -> list[Halt]:
    """All halts, in the order of time."""
    signs = tables.rows(_SIGNS)
    if not signs:
        return []
    accepted = tables.rows(
        f"SELECT * FROM ({_ACCEPTED}) WHERE group_id IN (SELECT unnest($groups)) ORDER BY us",
        groups=sorted({one.group_id for one in signs}),
    )  # fmt: skip
    of_clients = _by(accepted, _client_of)
    twins = [_has_twin(one, of_clients.get(_client_of(one), ())) for one in signs]
    tables.add("halts", pa.table({
        "number": list(range(len(signs))), "client_ip": [one.client_ip for one in signs],
        "client_id": pa.array([one.client_id for one in signs], pa.string()),
        "since_us": [one.since_us for one in signs], "asked_us": [one.asked_us for one in signs],
    }))  # fmt: skip
    asked: defaultdict[tuple[str, str | None, str | None], list[int]] = defaultdict(list)
    for row in tables.rows(_ASKED):
        asked[row.client_ip, row.client_id, None].append(row.us)
        asked[row.client_ip, row.client_id, row.address].append(row.us)
    pauses = {whose: _Pauses(times_us) for whose, times_us in asked.items()}
    nobody = _Pauses(())
    lossy = {row.number for row in tables.rows(_LOST)}
    cut_off = _CutOff(tables.rows(_UNHEARD))
    sessions = _sessions(tables)
    found: dict[tuple[str, str, str | None, int], Halt] = {}
    for number, sign in enumerate(signs):
        stated_us = sessions.get((sign.group_id, sign.client_id))
        whose = sign.client_ip, sign.client_id, sign.client if twins[number] else None
        begin_us, end_us = pauses.get(whose, nobody).longest(sign.since_us, sign.asked_us)
        least_us = _UNSTATED_US if stated_us is None else stated_us
        is_long = sign.asked_us - sign.since_us >= least_us and end_us - begin_us >= _SHARE * least_us
        if number in lossy or not is_long:
            continue
        if cut_off.is_within(sign.client_ip, begin_us, end_us):
            continue  # its host sent all the while what nothing acknowledged
        halt = Halt(
            sign.cluster, sign.group_id, sign.client_id, sign.client, sign.member_id, begin_us, end_us,
            sign.exchange_id, stated_us,
        )  # fmt: skip
        found.setdefault((halt.cluster, halt.group, halt.client_id, halt.first_us), halt)
    return _with_ends(sorted(found.values(), key=lambda one: one.first_us), accepted, tables)


def _client_of(row: Row) -> tuple[str | None, str]:
    return row.client_id, host_of(row.client)


def _by(rows: Iterable[Row], key: Callable[[Row], Any]) -> Mapping[Any, Sequence[Row]]:
    """Rows by a key, each in their order."""
    found: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def _has_twin(sign: Row, of_client: Sequence[Row]) -> bool:
    """Whether another member was in the group meanwhile, on another connection; of the same client id and host."""
    begin, end = bisect_right(of_client, sign.since_us, key=_us), bisect_left(of_client, sign.asked_us, key=_us)
    meanwhile = islice(of_client, begin, max(begin, end))
    return any(one.client != sign.client and one.member_id != sign.member_id for one in meanwhile)


class _CutOff:
    """Hosts whose packets nothing acknowledged, each from a connection's first packet to its last with data."""

    def __init__(self, unheard: Iterable[Row]) -> None:
        by_host = _by(sorted(unheard, key=attrgetter("first_us")), attrgetter("client_ip"))
        self._spans = {
            host: ([one.first_us for one in rows], list(accumulate((one.spoke_us for one in rows), max)))
            for host, rows in by_host.items()
        }

    def is_within(self, host: str, begin_us: int, end_us: int) -> bool:
        """Whether a span of a host meets the time between two, both exclusive."""
        firsts, until = self._spans.get(host, ((), ()))
        place = bisect_left(firsts, end_us)
        return place > 0 and until[place - 1] > begin_us


class _Pauses:
    """The pauses between some times, with the longest of each run of 1, 2, 4 … of them, for halts that overlap."""

    def __init__(self, times_us: Sequence[int]) -> None:
        self._times_us = times_us
        self._pauses = np.diff(np.array(times_us, np.int64))
        self._longest = [np.arange(len(self._pauses))]
        size = 1
        while 2 * size <= len(self._pauses):
            left, right = self._longest[-1][:-size], self._longest[-1][size:]
            self._longest.append(np.where(self._pauses[left] >= self._pauses[right], left, right))
            size *= 2

    def longest(self, since_us: int, until_us: int) -> tuple[int, int]:
        """The first longest pause from a time on, which counts as one of them, to another time."""
        begin, end = bisect_left(self._times_us, since_us), bisect_right(self._times_us, until_us)
        if begin >= end:
            return since_us, since_us
        first = since_us, self._times_us[begin]
        number = end - begin - 1
        if not number:
            return first
        level = self._longest[number.bit_length() - 1]
        left, right = int(level[begin]), int(level[end - 1 - (1 << (number.bit_length() - 1))])
        best = left if self._pauses[left] >= self._pauses[right] else right
        found = self._times_us[best], self._times_us[best + 1]
        return found if found[1] - found[0] > first[1] - first[0] else first


def _sessions(tables: Tables) -> Mapping[tuple[str, str | None], int]:
    """By group and client id the session timeout that it stated last, µs."""
    found: dict[tuple[str, str | None], int] = {}
    for row in tables.each(_SESSIONS):
        body = parsed(row.request_body)
        if stated := natural(body, "sessionTimeoutMs"):
            found[text(body, "groupId") or "", row.client_id] = stated * 1000
    return found


def _with_ends(some: Sequence[Halt], accepted: Sequence[Row], tables: Tables) -> list[Halt]:
    """The same with what was refused afterwards, and when the process was back."""
    rows = tables.rows(f"SELECT * FROM ({_REFUSED}) ORDER BY us, exchange_id") if some else []
    refused = _by(rows, lambda r: (r.cluster, r.group_id, r.member_id))
    since = {
        member: list(accumulate(reversed(of_it), _and_later, initial=_NOTHING)) for member, of_it in refused.items()
    }
    of_places = _by(accepted, lambda r: (r.cluster, r.group_id, *_client_of(r)))
    found = []
    for one in some:
        member = one.cluster, one.group, one.member
        own = refused.get(member, ())
        after = len(own) - bisect_left(own, one.last_us, key=_us)
        later = since[member][after] if after else _NOTHING
        of_it = of_places.get((one.cluster, one.group, one.client_id, host_of(one.client)), ())
        begin, end = bisect_right(of_it, one.first_us, key=_us), bisect_left(of_it, one.last_us, key=_us)
        others = {r.member_id for r in islice(of_it, begin, max(begin, end))}
        after_it = islice(of_it, bisect_right(of_it, one.last_us, key=_us), None)
        back = (r.us for r in after_it if r.member_id not in others)
        ended = replace(one, refused=after, commits=later.commits, back_us=next(back, None))
        found.append(replace(ended, errors=tuple(sorted(later.errors))))
    return found


class _Later(NamedTuple):
    """What was refused from some time on."""

    commits: int
    errors: frozenset[str]


_NOTHING = _Later(0, frozenset())
_us = attrgetter("us")


def _and_later(later: _Later, row: Row) -> _Later:
    return _Later(
        later.commits + row.commits,
        later.errors if row.error_name in later.errors else later.errors | {row.error_name},
    )
