"""A broker, producers and groups on the wire, made exchange by exchange: captures of what no broker here does."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.analysis.rules.run import finding_rows
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import read_inputs
from tests.decoder.kafka import encode
from tests.decoder.kafka.batches import batch, record
from tests.pipeline.capture.wire import Flow, pcap, prefixed

PRODUCE, FETCH, COMMIT, OFFSET_FETCH, JOIN, HEARTBEAT, LEAVE, SYNC = 0, 1, 8, 9, 11, 12, 13, 14
METADATA, DELETE_GROUPS, OFFSET_DELETE, GROUP_HEARTBEAT = 3, 42, 47, 68
VERSIONS = {PRODUCE: 8, FETCH: 11, COMMIT: 7, OFFSET_FETCH: 5, JOIN: 5, HEARTBEAT: 3, LEAVE: 2, SYNC: 3, METADATA: 12,
            DELETE_GROUPS: 1, OFFSET_DELETE: 0, GROUP_HEARTBEAT: 0}  # fmt: skip
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
START_US = 1_764_150_000_000_000
SERVER, COORDINATOR = ("10.0.0.9", 9092), ("10.0.0.10", 9092)
_OF_GROUPS = (COMMIT, OFFSET_FETCH, JOIN, HEARTBEAT, LEAVE, SYNC, DELETE_GROUPS, OFFSET_DELETE, GROUP_HEARTBEAT)


def records(at: int, count: int, **more: Any) -> bytes:
    """A batch of this many records from an offset on; none: what compaction leaves of one."""
    return batch([record(None, b"x", n) for n in range(count)], base_offset=at, **more)


@dataclass(frozen=True)
class Client:
    """One connection of a client.

    Attributes:
        name: its client id.
        group: its consumer group.
        port: of the connection.
        member: its member id.
    """

    name: str
    group: str
    port: int
    member: str = ""
    generation: int = 1
    host: str = "10.0.0.5"
    version: int = VERSIONS[FETCH]


@dataclass
class Stage:
    """Times are seconds from the beginning."""

    topic: str = "orders"
    _said: list[tuple[float, Client, int, dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    _given: dict[tuple[float, str], list[int]] = field(default_factory=dict)
    _servers: tuple[tuple[str, int], tuple[str, int]] = (SERVER, SERVER)

    def say(self, at: float, who: Client, key: int, asked: dict[str, Any], answer: dict[str, Any]) -> None:
        self._said.append((at, who, key, asked, answer))

    def produce(self, at: float, partition: int, base: int, count: int) -> None:
        part = {"index": partition, "records": records(0, count)}
        done = {"index": partition, "errorCode": 0, "baseOffset": base}
        self.say(
            at, Client("producer", "", 41_000, host="10.0.0.7"), PRODUCE,
            {"acks": -1, "timeoutMs": 30_000, "topicData": [{"name": self.topic, "partitionData": [part]}]},
            {"responses": [{"name": self.topic, "partitionResponses": [done]}]},
        )  # fmt: skip

    def join(self, at: float, who: Client, partitions: Iterable[int]) -> None:
        """The member enters, and is given partitions."""
        subscription = encode.consumer_protocol("ConsumerProtocolSubscription", 0, {"topics": [self.topic]})
        partitions = list(partitions)
        given = {"assignedPartitions": [{"topic": self.topic, "partitions": partitions}]}
        assignment = encode.consumer_protocol("ConsumerProtocolAssignment", 0, given)
        member = {"memberId": who.member, "metadata": subscription}
        self.say(
            at, who, JOIN,
            {"groupId": who.group, "sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 300_000, "memberId": who.member,
             "protocolType": "consumer", "protocols": [{"name": "range", "metadata": subscription}]},
            {"generationId": who.generation, "protocolName": "range", "leader": who.member, "memberId": who.member,
             "members": [member]},
        )  # fmt: skip
        self._given[at + 0.02, who.member] = partitions
        self.say(
            at + 0.02, who, SYNC,
            {"groupId": who.group, "generationId": who.generation, "memberId": who.member,
             "assignments": [{"memberId": who.member, "assignment": assignment}]},
            {"assignment": assignment},
        )  # fmt: skip

    def heartbeat(self, at: float, who: Client) -> None:
        asked = {"groupId": who.group, "generationId": who.generation, "memberId": who.member}
        self.say(at, who, HEARTBEAT, asked, {"errorCode": 0})

    def leave(self, at: float, who: Client) -> None:
        self.say(at, who, LEAVE, {"groupId": who.group, "memberId": who.member}, {"errorCode": 0})

    def fetch(
        self, at: float, who: Client, *parts: tuple[int, int, int, bytes], errors: dict[int, int] | None = None,
        session: tuple[int, int] = (0, -1), named: Iterable[int] | None = None, level: int = 0,
        stable: int | None = None,
    ) -> None:  # fmt: skip
        """A fetch of partitions: number, offset, high watermark, what comes back.

        Args:
            session: its id and epoch.
            named: the partitions that an incremental request names; None: all.
        """
        asked = [
            {"partition": number, "fetchOffset": offset, "partitionMaxBytes": 10_240}
            for number, offset, _, _ in parts
            if named is None or number in named
        ]
        came = [
            {"partitionIndex": number, "errorCode": (errors or {}).get(number, 0), "highWatermark": end,
             "records": content, **({} if who.version < 4 else
                                    {"lastStableOffset": end if stable is None else stable, "logStartOffset": 0})}
            for number, _, end, content in parts
        ]  # fmt: skip
        request: dict[str, Any] = {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1}
        response: dict[str, Any] = {"responses": [{"topic": self.topic, "partitions": came}] if came else []}
        if who.version >= 7:
            sent = 0 if session[1] == 0 else session[0]
            request |= {"sessionId": sent, "sessionEpoch": session[1], "isolationLevel": level}
            response |= {"sessionId": session[0], "errorCode": 0}
        topics = [{"topic": self.topic, "partitions": asked}] if asked else []
        self.say(at, who, FETCH, {**request, "topics": topics}, response)

    def commit(self, at: float, who: Client, offsets: dict[int, int], error: int = 0) -> None:
        self.say(
            at, who, COMMIT,
            {"groupId": who.group, "generationIdOrMemberEpoch": who.generation, "memberId": who.member, "topics": [
                {"name": self.topic, "partitions": [
                    {"partitionIndex": number, "committedOffset": offset} for number, offset in offsets.items()]}]},
            {"topics": [{"name": self.topic, "partitions": [
                {"partitionIndex": number, "errorCode": error} for number in offsets]}]},
        )  # fmt: skip

    def offset_fetch(
        self, at: float, who: Client, offsets: dict[int, int], error: int = 0, errors: dict[int, int] | None = None
    ) -> None:  # fmt: skip
        """Ask for commits: -1 where there is none. With an error nothing is answered, or not of these partitions."""
        self.say(
            at, who, OFFSET_FETCH,
            {"groupId": who.group, "topics": [{"name": self.topic, "partitionIndexes": list(offsets)}]},
            {"errorCode": error, "topics": [] if error else [{"name": self.topic, "partitions": [
                {"partitionIndex": number, "committedOffset": -1 if number in (errors or {}) else offset,
                 "metadata": "", "errorCode": (errors or {}).get(number, 0)}
                for number, offset in offsets.items()]}]},
        )  # fmt: skip

    def since(self, at: float) -> Stage:
        """The same, as who comes then sees it."""
        return Stage(self.topic, [one for one in self._said if one[0] >= at], self._given)

    def until(self, at: float) -> Stage:
        """The same, as who stops then has seen it."""
        return Stage(self.topic, [one for one in self._said if one[0] < at], self._given)

    def by_coordinator(self) -> Stage:
        """The same where groups have their coordinator on another broker, and a connection to each."""
        return Stage(self.topic, self._said, self._given, (SERVER, COORDINATOR))

    def on(self, network: str) -> Stage:
        """The same in another network, such as ``10.1.2.``: addresses keep their last number."""

        def there(host: str) -> str:
            return network + host.rpartition(".")[2]

        moved = [(at, replace(who, host=there(who.host)), *more) for at, who, *more in self._said]
        first, second = ((there(host), port) for host, port in self._servers)
        return Stage(self.topic, moved, self._given, (first, second))  # type: ignore[arg-type]

    def by_consumer_protocol(self, *, metadata: bool = True, late: bool = False, also: Iterable[str] = ()) -> Stage:
        """The same by heartbeats of KIP-848: a member enters with epoch 0, and is given partitions if they change.

        Args:
            metadata: whether Metadata states the topic's id.
            late: whether partitions are given by the heartbeat after that which names the topics.
            also: topics that members subscribe to as well, and are given nothing of.
        """
        stage = Stage(self.topic)
        entered: set[str] = set()
        later: dict[str, list[int]] = {}
        for at, who, key, asked, answer in sorted(self._said, key=lambda one: one[0]):
            if key == JOIN and metadata:
                topic = {"errorCode": 0, "name": self.topic, "topicId": TOPIC_ID, "partitions": []}
                stage.say(at, who, METADATA, {"topics": [{"name": self.topic}]}, {"topics": [topic]})
            elif key in (SYNC, HEARTBEAT):
                given = self._given.get((at, who.member)) if key == SYNC else later.pop(who.member, None)
                if key == SYNC and given and late:
                    later[who.member], given = given, None
                assigned = {"topicPartitions": [{"topicId": TOPIC_ID, "partitions": given}]} if given else None
                epoch = who.generation if who.member in entered else 0
                entered.add(who.member)
                stage.say(
                    at, who, GROUP_HEARTBEAT,
                    {"groupId": who.group, "memberId": who.member, "memberEpoch": epoch, "rebalanceTimeoutMs": 300_000,
                     "subscribedTopicNames": None if epoch else [self.topic, *also]},
                    {"errorCode": 0, "memberId": who.member, "memberEpoch": who.generation,
                     "heartbeatIntervalMs": 5000, "assignment": assigned},
                )  # fmt: skip
            elif key == JOIN:
                continue
            elif key == LEAVE:
                entered.discard(who.member)
                stage.say(
                    at, who, GROUP_HEARTBEAT, {"groupId": who.group, "memberId": who.member, "memberEpoch": -1},
                    {"errorCode": 0, "memberId": who.member, "memberEpoch": -1, "assignment": None},
                )  # fmt: skip
            else:
                stage.say(at, who, key, asked, answer)
        return stage

    def pcap(self) -> bytes:
        """The packets of all connections, in order of time."""
        flows: dict[tuple[str, int], Flow] = {}
        for number, (at, who, key, asked, answer) in enumerate(sorted(self._said, key=lambda one: one[0])):
            version = who.version if key == FETCH else VERSIONS[key]
            server = self._servers[key in _OF_GROUPS]
            client = who.host, who.port + 1000 * (server != self._servers[0])
            us = START_US + int(at * 1e6)
            flow = flows.get(client)
            if flow is None:
                flow = flows[client] = Flow(client=client, server=server, ts=us - 1000).open()
            flow.ts = max(us, flow.ts)
            sent = encode.request(key, version, asked, client_id=who.name, correlation_id=number)
            flow.send(0, prefixed(sent))
            flow.ts += 1000
            flow.send(1, prefixed(encode.response(key, version, answer, correlation_id=number)))
        return pcap(sorted((packet for flow in flows.values() for packet in flow.packets), key=lambda p: p.ts_us))

    def findings(self) -> dict[tuple[str, str], dict[str, Any]]:
        """What diagnose finds, by rule and subject."""
        return {
            (row["rule"], row["subject"]): {**row, "details": json.loads(row["details"])}
            for row in finding_rows(self._diagnosed().findings)
        }

    def incidents(self) -> list[dict[str, Any]]:
        """The incidents that diagnose makes of it."""
        return list(self._diagnosed().incidents.to_pylist())

    def _diagnosed(self) -> Diagnosis:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "stage.pcap"
            path.write_bytes(self.pcap())
            found = diagnose(read_inputs([str(path)]), StreamSettings())
        assert not found.errors, found.errors
        return found
