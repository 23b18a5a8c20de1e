"""What do scenarios at real rhythms share? A clock, writers with a pattern, and members that commit when it is time.

Nothing is compressed: a group that commits each 60 s does so, and a recording takes its ten minutes. Several scenarios
are played side by side, each at an address of its own. For trying a scenario a clock can run faster.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Any, Protocol, TypeVar

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.scenarios import librdkafka as rd
from tests.scenarios.java_client import JavaClient
from tests.scenarios.truth import Truth

MINUTE = 60.0


class Clock:
    """Seconds since the scenario began; `pace` 10 makes it run ten times as fast."""

    def __init__(self, pace: float = 1.0) -> None:
        self._begun, self._pace = time.monotonic(), pace

    def now(self) -> float:
        """Seconds since the beginning."""
        return (time.monotonic() - self._begun) * self._pace

    def real(self, seconds: float) -> float:
        """How long this many seconds take."""
        return seconds / self._pace

    def until(self, second: float) -> None:
        """Wait until `second`; not at all if it is past."""
        time.sleep(max(0.0, (second - self.now()) / self._pace))


def create_topics(truth: Truth, bootstrap: str, topics: dict[str, int], replicas: int = 1, **config: Any) -> None:
    """Create topics (name → partitions) with `config` (dots as underscores) and wait until they are there."""
    truth.client("setup", rd.LIBRARY, "Python", rd.VERSION)
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 3})
    settings = {name.replace("_", "."): str(value) for name, value in config.items()}
    wanted = [NewTopic(name, count, replicas, config=settings) for name, count in topics.items()]
    for done in admin.create_topics(wanted).values():
        done.result(30)


_Itself = TypeVar("_Itself", bound="Background")


class Background(ABC):
    """Does something in a thread of its own, until its context is left."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self: _Itself) -> _Itself:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @abstractmethod
    def _run(self) -> None: ...


class Writer(Background):
    """A producer for as long as the context: `rate` gives records a second at a second of the clock."""

    def __init__(
        self,
        truth: Truth,
        bootstrap: str,
        client_id: str,
        topic: str,
        *,
        clock: Clock,
        partitions: int,
        rate: Callable[[float], float],
        keys: int | None = None,
        **config: Any,
    ) -> None:
        truth.client(client_id, rd.LIBRARY, "Python", rd.VERSION)
        self._topic, self._clock, self._partitions, self._rate, self._keys = topic, clock, partitions, rate, keys
        self._config = rd.with_log(truth, {"bootstrap.servers": bootstrap, "client.id": client_id, **config})
        super().__init__()

    def _run(self) -> None:
        producer, due, number, last = Producer(self._config), 0.0, 0, time.monotonic()
        while not self._stop.wait(0.1):
            now = time.monotonic()
            due, last = due + (now - last) * self._rate(self._clock.now()), now
            while due >= 1:
                key = f"key-{number % self._keys}" if self._keys else None
                with suppress(rd.KafkaException):  # the library may know that the topic is gone
                    producer.produce(self._topic, f"value {number}", key, partition=number % self._partitions)
                number, due = number + 1, due - 1
            producer.poll(0)
        producer.flush(30)


def steadily(per_second: float) -> Callable[[float], float]:
    """The same rate all the time."""
    return lambda _: per_second


def in_bursts(per_second: float, *, of_s: float, every_s: float, offset_s: float = 0.0) -> Callable[[float], float]:
    """`per_second` for `of_s` seconds of each `every_s`, nothing in between."""
    return lambda second: per_second if (second - offset_s) % every_s < of_s else 0.0


class Member(rd.GroupMember):
    """A member that reads at once, and commits what it has read every `commit_s` seconds and when it loses partitions.

    Args:
        commit_s: None: the library commits by itself, as configured.
        work_s: what it takes to deal with what one poll gave.
    """

    def __init__(
        self,
        truth: Truth,
        bootstrap: str,
        client_id: str,
        group: str,
        topic: str,
        *,
        commit_s: float | None,
        work_s: float = 0.0,
        **config: Any,
    ) -> None:
        stores = {"enable.auto.commit": True, "enable.auto.offset.store": True} if commit_s is None else {}
        super().__init__(truth, bootstrap, client_id, group, topic, **{**stores, **config})
        self._commit_s, self._work_s = commit_s, work_s
        self._at = time.monotonic()
        self.latest: dict[int, int] = {}
        self.last: dict[int, int] = {}
        """What it has committed last, by partition."""
        self.ill = threading.Event()
        self._failure: BaseException | None = None
        self.most = 200
        """Records that it takes at once."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # told when the member is stopped
            self._failure = error

    def _work(self) -> None:
        while not self._stop.is_set():
            records = self.consumer.consume(num_messages=self.most, timeout=0.5)
            for each in records:
                if each.error() is not None:
                    self.truth.add(self.client_id, "error", error=str(each.error()))
                else:
                    self.latest[each.partition() or 0] = (each.offset() or 0) + 1
            if records and self._work_s:
                self._stop.wait(self._work_s)
            if self.ill.is_set():
                self.misbehave()
            elif self.is_time():
                self.commit_latest()
        self.commit_latest()

    def misbehave(self) -> None:
        """What it does instead of committing once it is ill; here: nothing."""

    def is_time(self) -> bool:
        """Whether a commit is due; if so, the next one is due a period later."""
        if self._commit_s is None or time.monotonic() - self._at < self._commit_s:
            return False
        self._at = time.monotonic()
        return True

    def commit_latest(self, only: set[int] | None = None) -> None:
        """Commit what was read since the last commit, of all partitions in one request."""
        read = {partition: self.latest.pop(partition) for partition in sorted(only or set(self.latest))
                if partition in self.latest}  # fmt: skip
        if read and self._commit_s is not None:
            self.commit_at(read)

    def commit_at(self, offsets: dict[int, int]) -> None:
        """Commit offsets of several partitions in one request."""
        wanted = [TopicPartition(self.topic, partition, offset) for partition, offset in offsets.items()]
        try:
            self.consumer.commit(offsets=wanted, asynchronous=False)
            self.last.update(offsets)
        except rd.KafkaException as failed:
            self.truth.add(self.client_id, "commit_error", group=self.group, error=str(failed))

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.commit_latest({each.partition for each in partitions})
        super()._revoked(consumer, partitions)


class Instances:
    """Members of one group by name, each started and stopped when the scenario says so."""

    def __init__(self, make: Callable[[str], AbstractContextManager[Any]]) -> None:
        self._make = make
        self._running: dict[str, ExitStack] = {}

    def start(self, name: str) -> None:
        """Start an instance."""
        stack = ExitStack()
        stack.enter_context(self._make(name))
        self._running[name] = stack

    def stop(self, name: str) -> None:
        """End an instance in good order."""
        self._running.pop(name).close()

    @contextmanager
    def all_stopped_in_the_end(self) -> Iterator[Instances]:
        """Leave nothing running."""
        try:
            yield self
        finally:
            for name in list(self._running):
                self.stop(name)

    def deploy(self, names: list[str], clock: Clock, *, pause_s: float, down_s: float) -> None:
        """Replace one instance after the other: it stops, its successor starts `down_s` later; then the next one."""
        for name in names:
            self.stop(name)
            clock.until(clock.now() + down_s)
            self.start(name)
            clock.until(clock.now() + pause_s)

    def surge(self, old: list[str], new: list[str], clock: Clock, *, pause_s: float) -> None:
        """Replace instances by others that start before the old ones stop, as Kubernetes does."""
        for leaving, coming in zip(old, new, strict=True):
            self.start(coming)
            clock.until(clock.now() + pause_s)
            self.stop(leaving)


class Ill(Protocol):
    """What can be ill: a member, or one that is started again and again."""

    client_id: str
    ill: threading.Event


class Windows:
    """When an incident is: from a second to another, then once more; and when the scenario ends."""

    def __init__(self, begin: float, heal: float, again: float, over: float, *, end: float) -> None:
        self.ill = ((begin, heal), (again, over))
        self.end = end

    def play(self, members: Sequence[Ill], truth: Truth, clock: Clock) -> None:
        """Let members be ill then, and wait for the end."""
        for begin, end in self.ill:
            clock.until(begin)
            for member in members:
                member.ill.set()
                truth.add(member.client_id, "incident")
            clock.until(end)
            for member in members:
                member.ill.clear()
                truth.add(member.client_id, "healed")
        clock.until(self.end)


EACH_SECOND = Windows(45, 105, 150, 190, end=240)
EACH_30_SECONDS = Windows(160, 400, 520, 700, end=820)
"""When groups are ill that commit so often."""


def java_member(
    truth: Truth, bootstrap: str, client_id: str, group: str, topic: str, *, auto_s: float = 5.0, **options: Any
) -> JavaClient:
    """A Java consumer that commits by itself each `auto_s` seconds; names of Kafka's settings begin with `kafka.`."""
    auto = {"kafka.enable.auto.commit": True, "kafka.auto.commit.interval.ms": int(auto_s * 1000)}
    return JavaClient(
        truth, "consume", client_id=client_id, bootstrap=bootstrap, group=group, topic=topic, commit_ms=0,
        **{**auto, **options},
    )  # fmt: skip


def note_outcome(truth: Truth, bootstrap: str, topics: dict[str, int], groups: dict[str, str]) -> None:
    """Ask the broker where each group (name → topic) and its topic stand."""
    for group, topic in groups.items():
        ends = rd.high_watermarks(truth, bootstrap, topic, topics[topic])
        offsets = rd.committed(truth, bootstrap, group, topic, topics[topic])
        truth.outcome(**{group: {"topic": topic, "committed": offsets, "high_watermark": ends}})
