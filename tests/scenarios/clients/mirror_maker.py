"""MirrorMaker 2 between two clusters: records, and offsets of groups, which it commits without being a member."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.brokers.maven import broker_libs
from tests.scenarios import rhythm
from tests.scenarios.java_program import Program
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.truth import Truth

TOPIC, PARTITIONS = "orders", 3
SECONDS = 600.0
VERSION = "4.3.1"
FINDINGS: set[tuple[str, str]] = set()
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


def play_well(bootstrap: str, truth: Truth, clock: Clock, far: str) -> None:
    """Healthy: MirrorMaker 2 copies a topic to another cluster, with offsets of two groups, and is restarted."""
    for each in (bootstrap, far):
        rhythm.create_topics(truth, each, {TOPIC if each == bootstrap else "elsewhere": PARTITIONS})
    truth.client("mirror-maker", "connect-mirror", "Java", VERSION)
    with ExitStack() as stack:
        rate = rhythm.steadily(3)
        stack.enter_context(
            Writer(truth, bootstrap, "orders-app", TOPIC, clock=clock, partitions=PARTITIONS, rate=rate)
        )
        for group, commit_s in {"warehouse-1s": 1.0, "warehouse-30s": 30.0}.items():
            calm = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000}
            stack.enter_context(Member(truth, bootstrap, f"{group}-1", group, TOPIC, commit_s=commit_s, **calm))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mirror-")))
        file = folder / "mm2.properties"
        file.write_text(_SETTINGS.format(near=bootstrap, far=far, topic=TOPIC))
        class_path, main = f"{broker_libs('mirror_maker')}/*", "org.apache.kafka.connect.mirror.MirrorMaker"
        for until in (300, SECONDS):
            with Program(class_path, main, str(file), by_signal=True):
                clock.until(until)
        groups = dict.fromkeys(("warehouse-1s", "warehouse-30s"), TOPIC)
        rhythm.note_outcome(truth, bootstrap, {TOPIC: PARTITIONS}, groups)
