"""Traffic of members of a group that is made here, request by request, on connections of named hosts and ports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from decoder.kafka.apis import ApiKey
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import Landed
from pipeline.tables import GAPS, LANDING_COLUMNS
from tests.hostile.amplifiers.talk import S, Talk
from tests.hostile.traffic import START_US
from tests.pipeline.rows import arrow

GROUP, TOPIC = "orders-app", "orders"
_IP, _PORT = (
    [column.name for column in LANDING_COLUMNS].index(name) for name in ("client_ip", "client_port")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Peer:
    """One connection of a process."""

    client_id: str
    ip: str
    port: int
    number: int


class Story(Talk):
    """Exchanges at stated seconds."""

    def __init__(self, group: str = GROUP) -> None:
        super().__init__()
        self.group = group
        self._peers: dict[int, Peer] = {}

    def peer(self, client_id: str, ip: str = "10.0.0.5", port: int = 40_000) -> Peer:
        """A new connection."""
        one = Peer(client_id, ip, port, len(self._peers) + 1)
        self._peers[one.number] = one
        return one

    def add(self, exchange: int, direction: str, frame: bytes, ts: int, connection: int, **more: Any) -> None:  # type: ignore[override]
        super().add(exchange, direction, frame, ts, connection, **more)
        values = list(self.rows[-1])
        values[_IP], values[_PORT] = self._peers[connection].ip, self._peers[connection].port
        self.rows[-1] = tuple(values)

    def at(
        self, seconds: float, peer: Peer, api: int, version: int, asked: dict[str, Any], answer: dict[str, Any] | None,
        **more: Any,
    ) -> None:  # fmt: skip
        """One exchange."""
        self.number += 1
        us = START_US + int(seconds * S)
        self.exchange(
            self.number, int(api), version, asked, answer, us, connection=peer.number, client_id=peer.client_id, **more
        )

    def names_cluster(self, seconds: float, peer: Peer) -> None:
        """A Metadata answer that says which brokers are one cluster."""
        brokers = [{"nodeId": number, "host": f"10.255.0.{number}", "port": 9092} for number in (1, 2)]
        answer = {"brokers": brokers, "clusterId": "C", "controllerId": 1, "topics": []}
        self.at(seconds, peer, ApiKey.METADATA, 8, {"topics": []}, answer)

    def join(
        self, seconds: float, peer: Peer, member: str, *, old: str = "", instance: str | None = None, code: int = 0,
        session_s: int = 10, generation: int = 1,
    ) -> None:  # fmt: skip
        """JoinGroup and, where it is accepted, SyncGroup."""
        asked = {
            "groupId": self.group, "sessionTimeoutMs": session_s * 1000, "rebalanceTimeoutMs": 300_000,
            "memberId": old, "groupInstanceId": instance, "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }  # fmt: skip
        answer = {
            "errorCode": code,
            "generationId": -1 if code else generation,
            "memberId": old if code else member,
            "leader": member,
        }
        self.at(seconds, peer, ApiKey.JOIN_GROUP, 5, asked, answer)
        if not code:
            asked = {"groupId": self.group, "generationId": generation, "memberId": member, "groupInstanceId": instance}
            self.at(seconds + 0.01, peer, ApiKey.SYNC_GROUP, 3, asked, {"errorCode": 0})

    def beat(
        self, seconds: float, peer: Peer, member: str, *, instance: str | None = None, code: int = 0,
        generation: int = 1,
    ) -> None:  # fmt: skip
        """Heartbeat of the classic protocol."""
        asked = {"groupId": self.group, "generationId": generation, "memberId": member, "groupInstanceId": instance}
        self.at(seconds, peer, ApiKey.HEARTBEAT, 3, asked, {"errorCode": code})

    def commit(
        self, seconds: float, peer: Peer, member: str, offset: int, *, instance: str | None = None, code: int = 0,
        generation: int = 1, partition: int = 0,
    ) -> None:  # fmt: skip
        """OffsetCommit of one partition."""
        part = {"partitionIndex": partition, "committedOffset": offset}
        asked = {
            "groupId": self.group, "generationIdOrMemberEpoch": generation, "memberId": member,
            "groupInstanceId": instance, "topics": [{"name": TOPIC, "partitions": [part]}],
        }  # fmt: skip
        answered = {"partitionIndex": partition, "errorCode": code}
        answer = {"topics": [{"name": TOPIC, "partitions": [answered]}]}
        self.at(seconds, peer, ApiKey.OFFSET_COMMIT, 7, asked, answer)

    def modern(
        self, seconds: float, peer: Peer, member: str, epoch: int, *, instance: str | None = None, code: int = 0
    ) -> None:
        """ConsumerGroupHeartbeat (KIP-848)."""
        asked = {"groupId": self.group, "memberId": member, "memberEpoch": epoch, "instanceId": instance}
        answer = {"errorCode": code, "memberId": member, "memberEpoch": 0 if code else max(epoch, 1)}
        self.at(seconds, peer, ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, asked, {**answer, "heartbeatIntervalMs": 5000})

    def landed(self) -> Landed:
        """As read from landing files, in the order of time."""
        self.rows.sort(key=lambda row: row[[c.name for c in LANDING_COLUMNS].index("ts")])
        return Landed(self.table(), arrow(GAPS), None)

    def found(self, *rules: str) -> list[dict[str, Any]]:
        """Findings of some rules, as rows; without names all."""
        rows: list[dict[str, Any]] = diagnose(self.landed(), StreamSettings()).findings.to_pylist()
        return [row for row in rows if not rules or row["rule"] in rules]
