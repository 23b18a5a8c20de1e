"""When members enter and leave their groups, as their own requests state it, in all group protocols."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from decoder.fields import Json, integer, items, natural, parsed, text
from decoder.kafka.apis import ApiKey
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.tables import ADDRESS, Tables, numbers

ENTERS, LEAVES = "enters", "leaves"
_JOIN, _LEAVE = int(ApiKey.JOIN_GROUP), int(ApiKey.LEAVE_GROUP)
HEARTBEATS = numbers(ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT)
"""By which members enter and leave where there is no JoinGroup: KIP-848, KIP-932, KIP-1071."""
_COLUMNS = f"""
    {ADDRESS["server"]} AS server, {ADDRESS["client"]} AS client, client_id, client_ip, connection_id, api_key,
    exchange_id, epoch_us(ts) AS us, epoch_us(coalesce(response_ts, ts)) AS answered_us, request_body, response_body
"""
_QUERY = f"""
    WITH moves AS (
        SELECT * FROM exchanges WHERE api_key = {_JOIN}
        UNION ALL SELECT * FROM exchanges WHERE api_key = {_LEAVE}
        UNION ALL SELECT * FROM exchanges
            WHERE api_key IN {HEARTBEATS} AND regexp_matches(request_body, '"memberEpoch":(0|-)')
    )
    SELECT {_COLUMNS} FROM moves
    WHERE protocol = 'kafka' AND request_body IS NOT NULL AND coalesce(len(error_codes), 0) = 0
    ORDER BY us, exchange_id
"""
"""One condition in each part: those the scan applies itself, which costs a tenth."""


@dataclass(frozen=True, slots=True)
class Step:
    """A member enters its group or leaves it.

    Attributes:
        what: ENTERS or LEAVES.
        client: its ``ip:port``, which names the connection together with ``connection_id``.
        us, answered_us: when it asked, and when it was answered, µs since the epoch.
        limit_us: of who enters: how long it may take between two polls (the rebalance timeout, which is
            ``max.poll.interval.ms`` of Java and librdkafka), µs; 0: not stated.
        reason: of who leaves: what the request states (KIP-800); None: nothing.
    """

    what: str
    cluster: str
    group: str
    member: str
    client_id: str | None
    host: str
    client: str
    connection_id: str
    exchange_id: str
    us: int
    answered_us: int
    limit_us: int = 0
    reason: str | None = None


def steps(tables: Tables, catalog: ClusterCatalog) -> Iterator[Step]:
    """All that were accepted, in the order of time."""
    for row in tables.each(_QUERY):
        request, response = parsed(row.request_body), parsed(row.response_body)
        for what, member, more in _of(row.api_key, request, response):
            yield Step(
                what, catalog.cluster_at(row.server, row.answered_us), text(request, "groupId") or "", member,
                row.client_id, row.client_ip, row.client, row.connection_id, row.exchange_id, row.us, row.answered_us,
                **more,
            )  # fmt: skip


def _of(api_key: int, request: Json, response: Json) -> Iterator[tuple[str, str, dict[str, Any]]]:
    if api_key == _LEAVE:
        for one in items(request, "members") or [request]:
            yield LEAVES, text(one, "memberId") or "", {"reason": text(one, "reason")}
        return
    member = text(response, "memberId") or text(request, "memberId") or ""
    epoch = integer(request, "memberEpoch") if api_key in HEARTBEATS else 0
    if epoch is not None and epoch < 0:
        yield LEAVES, member, {}
    elif epoch is not None:
        yield ENTERS, member, {"limit_us": (natural(request, "rebalanceTimeoutMs") or 0) * 1000}
