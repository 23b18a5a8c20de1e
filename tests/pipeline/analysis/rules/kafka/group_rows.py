"""Rows of group membership, commits and fetches, by seconds after T0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import orjson

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.kafka.groups.coming_and_going import steps
from pipeline.analysis.rules.model import Sources
from pipeline.tables import EXCHANGES_WITH_BODIES, OFFSET_EVENTS, OFFSET_TIMELINE, STATE_EVENTS
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import T0, row

Row = dict[str, Any]
JOIN, LEAVE, MODERN = int(ApiKey.JOIN_GROUP), int(ApiKey.LEAVE_GROUP), int(ApiKey.CONSUMER_GROUP_HEARTBEAT)
_NUMBERS = count()
_SERVER = "10.0.0.1:9092"


def at(seconds: float) -> Any:
    """A time."""
    return T0 + timedelta(seconds=seconds)


def _exchange(
    api_key: int, asked: float, answered: float, who: str, connection: str, request: Row, response: Row
) -> Row:
    return row(
        EXCHANGES_WITH_BODIES, exchange_id=f"x{next(_NUMBERS):05}", connection_id=connection, api_key=api_key,
        client_id=who,
        client_ip="10.0.0.9", client_port=4000, server_ip="10.0.0.1", server_port=9092, ts=at(asked),
        request_ts=at(asked), response_ts=at(answered), request_body=orjson.dumps(request).decode(),
        response_body=orjson.dumps(response).decode(), error_codes=[],
    )  # fmt: skip


def enters(
    seconds: float, who: str, *, connection: str = "c1", member: str = "m1", group: str = "g", limit_s: float = 30,
    answered: float | None = None,
) -> Row:  # fmt: skip
    """An accepted JoinGroup."""
    request = {"groupId": group, "sessionTimeoutMs": 45_000, "rebalanceTimeoutMs": int(limit_s * 1000), "memberId": ""}
    end = seconds if answered is None else answered
    return _exchange(JOIN, seconds, end, who, connection, request, {"errorCode": 0, "memberId": member})


def leaves(
    seconds: float, who: str, *, connection: str = "c1", member: str = "m1", group: str = "g", reason: str | None = None
) -> Row:
    """An accepted LeaveGroup."""
    request = {"groupId": group, "members": [{"memberId": member, "reason": reason}]}
    return _exchange(LEAVE, seconds, seconds, who, connection, request, {"errorCode": 0})


def beats(
    api_key: int, seconds: float, who: str, epoch: int, *, member: str = "m1", connection: str = "c1", group: str = "g",
    limit_s: float = 30,
) -> Row:  # fmt: skip
    """An accepted heartbeat by which a member enters (epoch 0) or leaves (below 0): KIP-848, KIP-932, KIP-1071."""
    request = {
        "groupId": group, "memberId": member, "memberEpoch": epoch,
        **({} if api_key == ApiKey.SHARE_GROUP_HEARTBEAT else {"rebalanceTimeoutMs": int(limit_s * 1000)}),
    }  # fmt: skip
    return _exchange(api_key, seconds, seconds, who, connection, request, {"errorCode": 0, "memberId": member})


def member(kind: str, seconds: float, who: str, **more: Any) -> Row:
    """A row of state_events of the classic protocol."""
    values = {"group_id": "g", "member_id": f"{who}-m", "group_protocol": "classic", "error_code": 0, "ordinal": 0}
    values |= {"client_id": who, "client": "10.0.0.9:4000", "server": _SERVER, "cluster": "C", "ts": at(seconds)}
    return row(STATE_EVENTS, kind=kind, exchange_id=f"s{next(_NUMBERS):05}", **(values | more))


def event(kind: str, seconds: float, who: str, **more: Any) -> Row:
    """A row of offset_events of partition t-0."""
    values = {"topic": "t", "partition": 0, "cluster": _SERVER, "server": _SERVER, "client": "10.0.0.9:4000"}
    values |= {"client_id": who, "ordinal": 0, "ts": at(seconds), "error_code": 0}
    return row(OFFSET_EVENTS, kind=kind, exchange_id=f"e{next(_NUMBERS):05}", **(values | more))


def committed(seconds: float, who: str, offset: int, **more: Any) -> Row:
    """An accepted commit of group g."""
    return event("committed", seconds, who, offset=offset, **({"group_id": "g", "member_id": "m1"} | more))


def fetched(seconds: float, who: str, first: int, end: int, **more: Any) -> Row:
    """Records `first` to `end`, exclusive, in an answer."""
    return event("fetched", seconds, who, offset=first, next_offset=end, records=end - first, **more)


def with_steps(seen_s: float | None = None, **rows: Sequence[Row]) -> Sources:
    """Tables of rows, and who entered and left a group by them; of a cluster that was seen until ``seen_s``."""
    made = sources(**rows)
    ends = {} if seen_s is None else {_SERVER: int(at(seen_s).timestamp() * 1_000_000)}
    return replace(made, steps=list(steps(made.tables, made.catalog)), ends=ends)


def known(kind: str, seconds: float, **more: Any) -> Row:
    """A row of the timeline of t-0 and group g."""
    values = {"topic": "t", "partition": 0, "cluster": "C", "group_id": "g", "client_id": "a", "error_name": "NONE"}
    values |= {"ts": at(seconds), "ordinal": 0, "exchange_id": f"t{next(_NUMBERS):05}"}
    return row(OFFSET_TIMELINE, kind=kind, **(values | more))
