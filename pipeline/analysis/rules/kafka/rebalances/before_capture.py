"""Rebalances that were under way when the capture began, and ended later. For :mod:`slow_rebalance`.

The JoinGroup of those who wait precedes the capture. The member that is waited for shows it: the first heartbeats of it
that are seen are answered REBALANCE_IN_PROGRESS, until it joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from decoder.kafka.apis import KafkaError
from pipeline.analysis.rules.format import host_of
from pipeline.analysis.rules.kafka.rebalances.unfinished import ASKED_TO_REJOIN
from pipeline.analysis.rules.kinds import kinds
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import Row


@dataclass(frozen=True, slots=True)
class Begun:
    """Such a rebalance. Times are µs since the epoch.

    Attributes:
        first_us: the first heartbeat that shows it.
        last_us: when somebody was let in again.
        member, client_id, host: who was waited for.
        rejoined_us: when that one was let in; None: it was not.
        evidence: exchange ids.
    """

    cluster: str
    group: str
    first_us: int
    last_us: int
    member: str
    client_id: str | None
    host: str
    rejoined_us: int | None
    evidence: tuple[str, ...]


_QUERY = f"""
    WITH classic AS (
        SELECT cluster, group_id, kind, member_id, client_id, client, exchange_id, epoch_us(ts) AS us,
            coalesce(error_code, 0) AS error_code
        FROM states
        WHERE kind IN ('join', 'heartbeat', 'leave') AND group_protocol = 'classic' AND member_id <> ''
    ), ended AS (
        SELECT cluster, group_id, min(us) FILTER (kind = 'join' AND error_code = 0) AS end_us
        FROM classic GROUP BY ALL
        HAVING arg_min(kind, us) = 'heartbeat'
            AND arg_min(error_code, us) = {int(KafkaError.REBALANCE_IN_PROGRESS)}
            AND end_us - min(us) >= $least_us
    )
    SELECT classic.*, end_us FROM classic JOIN ended USING (cluster, group_id) WHERE us <= end_us
    ORDER BY cluster, group_id, us, exchange_id
"""


def begun_rebalances(sources: Sources, least_us: int) -> Iterator[Begun]:
    """Those that lasted for so long after the capture began."""
    if ASKED_TO_REJOIN not in kinds(sources).states:
        return
    for _, rows in groupby(sources.tables.rows(_QUERY, least_us=least_us), key=attrgetter("cluster", "group_id")):
        some = list(rows)
        late = _late(some)
        if late and late[0].end_us - late[0].us >= least_us:
            first, last = late[0], late[-1]
            rejoined = next((row for row in some if row.kind == "join" and row.member_id == last.member_id), None)
            yield Begun(
                first.cluster, first.group_id, first.us, first.end_us, last.member_id, last.client_id,
                host_of(last.client), rejoined.us if rejoined else None, tuple(row.exchange_id for row in late),
            )  # fmt: skip


def _late(rows: Sequence[Row]) -> list[Row]:
    """Heartbeats of the member that was asked to rejoin until the end; none if a heartbeat was answered as usual."""
    asked = [row for row in rows if row.kind == "heartbeat" and row.error_code == KafkaError.REBALANCE_IN_PROGRESS]
    gone = {row.member_id for row in rows if row.kind == "leave"}
    if any(row.kind == "heartbeat" and row.error_code == 0 for row in rows):
        return []
    staying = [row for row in asked if row.member_id not in gone]
    return [row for row in staying if row.member_id == staying[-1].member_id]
