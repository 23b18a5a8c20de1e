"""MirrorMaker 2 between two clusters: records, and offsets of groups, which it commits without being a member.

Sick: the cluster it copies to goes away for minutes; then a record comes that is larger than that cluster takes. The
task that copies is over with the first refusal, and whoever restarts MirrorMaker has it refused again.
`warehouse` and `orders-app`, at the cluster it copies from, are healthy.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.brokers.kafka4 import Kafka4
from tests.brokers.maven import broker_libs
from tests.scenarios import rhythm
from tests.scenarios.java_program import Program
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.truth import Truth

TOPIC, PARTITIONS = "orders", 3
SECONDS = 600.0
GROUPS = {"warehouse-1s": 1.0, "warehouse-30s": 30.0}
"""Seconds from commit to commit."""
VERSION = "4.3.1"
_PRODUCER = "near.orders/connector-producer-MirrorSourceConnector-0"
FINDINGS = {
    "sick_mirror_maker": {
        ("produce_refused", _PRODUCER),
        ("oversized_or_tiny_batches", _PRODUCER),
        ("connection_failed", "{1}:9092/refused"),
    }
}
AWAY = ((100, 200), (450, 550))
"""When the cluster that is copied to is away, in seconds."""
REFUSED = ((230, 390), (580, 740))
"""When a record is larger than it takes."""
END, RESTART_S = 830, 50
LIMIT, LARGE = 50_000, 60_000
"""Bytes that the cluster takes in a batch, and bytes of the record that is too large."""
_SETTINGS = """\
clusters=near, far
near.bootstrap.servers={near}
far.bootstrap.servers={far}
near->far.enabled=true
near->far.topics={topic}
near->far.groups=warehouse.*
near->far.emit.heartbeats.enabled=true
near->far.sync.group.offsets.enabled=true
far->near.enabled=false
emit.checkpoints.interval.seconds=10
sync.group.offsets.interval.seconds=10
refresh.topics.interval.seconds=30
refresh.groups.interval.seconds=30
emit.heartbeats.interval.seconds=5
replication.factor=1
offset-syncs.topic.replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
offset.flush.interval.ms=10000
producer.linger.ms=500
consumer.fetch.min.bytes=100000
consumer.fetch.max.wait.ms=1000
"""


def build() -> None:
    """Fetch the program before the scenario's clock runs."""
    broker_libs("mirror_maker")


@contextmanager
def _two_clusters(truth: Truth, clock: Clock, near: str, far: Kafka4) -> Iterator[Program]:
    """Writer and groups at `near`; MirrorMaker to start and to stop."""
    for each in (near, far.bootstrap):
        rhythm.create_topics(truth, each, {TOPIC if each == near else "elsewhere": PARTITIONS})
    truth.client("mirror-maker", "connect-mirror", "Java", VERSION)
    with ExitStack() as stack:
        rate = rhythm.steadily(3)
        stack.enter_context(Writer(truth, near, "orders-app", TOPIC, clock=clock, partitions=PARTITIONS, rate=rate))
        for group, commit_s in GROUPS.items():
            calm = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000}
            stack.enter_context(Member(truth, near, f"{group}-1", group, TOPIC, commit_s=commit_s, **calm))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mirror-")))
        file = folder / "mm2.properties"
        file.write_text(_SETTINGS.format(near=near, far=far.bootstrap, topic=TOPIC))
        class_path, main = f"{broker_libs('mirror_maker')}/*", "org.apache.kafka.connect.mirror.MirrorMaker"
        yield Program(class_path, main, str(file), by_signal=True)
        rhythm.note_outcome(truth, near, {TOPIC: PARTITIONS}, dict.fromkeys(GROUPS, TOPIC))


def play_well(bootstrap: str, truth: Truth, clock: Clock, far: Kafka4) -> None:
    """Healthy: MirrorMaker 2 copies a topic to another cluster, with offsets of two groups, and is restarted."""
    with _two_clusters(truth, clock, bootstrap, far) as mirror_maker:
        for until in (300, SECONDS):
            with mirror_maker:
                clock.until(until)


def play_sick(bootstrap: str, truth: Truth, clock: Clock, far: Kafka4) -> None:
    """MirrorMaker 2 copies to a cluster that goes away, and that refuses a large record: its restarts do not help."""
    with _two_clusters(truth, clock, bootstrap, far) as mirror_maker:
        for away, refused in zip(AWAY, REFUSED, strict=True):
            _limit(far.bootstrap, LIMIT)
            with mirror_maker:
                clock.until(away[0])
                truth.add("setup", "incident", error="the cluster that is copied to goes away")
                with far.down():
                    clock.until(away[1])
                truth.add("setup", "healed")
                clock.until(refused[0])
                truth.add("mirror-maker", "incident", error="a record that is too large for the other cluster")
                producer = Producer({"bootstrap.servers": bootstrap, "client.id": "orders-import"})
                producer.produce(TOPIC, "large " * (LARGE // 6), "large", partition=1)
                producer.flush(30)
                clock.until(refused[0] + RESTART_S)
            while clock.now() + RESTART_S < refused[1]:
                with mirror_maker:
                    clock.until(clock.now() + RESTART_S)
            _limit(far.bootstrap, 2 * LARGE)
            truth.add("mirror-maker", "healed")
        with mirror_maker:
            clock.until(END)


def _limit(bootstrap: str, size: int) -> None:
    """Let a cluster take batches of this many bytes."""
    entry = ConfigEntry("message.max.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 3})
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)
