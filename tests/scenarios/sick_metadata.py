"""Sick, healed and sick again, at a rhythm of one second or thirty: clients that know what is no longer so.

`raw-past` and `raw-future` fetch by leader epochs that are over or have not come, `raw-churn` opens a fetch session for
each fetch, `typo` (kafka-python) writes to a topic that does not exist, until each is mended. The topic `drafts` is
deleted and recreated twice while `drafts-app` writes to it and group `editors` (librdkafka) reads it: its member may
not notice that it is there again, or know a later leader epoch, and is restarted in the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer
from kafka.errors import KafkaError

from tests.brokers.kafka4 import Kafka4
from tests.scenarios import librdkafka as rd
from tests.scenarios import python_client as kp
from tests.scenarios import rhythm
from tests.scenarios.raw import FETCH, RawClient
from tests.scenarios.rhythm import Clock, Instances, Member, Windows, Writer
from tests.scenarios.stale_readers import FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, fetching
from tests.scenarios.truth import Truth
from tests.scenarios.turns import Turns

NAMES = ("sick_metadata_1s", "sick_metadata_30s")
PROPERTIES = dict.fromkeys(NAMES, "group.initial.rebalance.delay.ms=3000\n")
ARTICLES, DRAFTS, WRONG = "articles", "drafts", "artcles"
GONE_S = 3.0
FOUND = {
    ("fenced_leader_epoch", "articles-0/raw-past"),
    ("stale_metadata", "articles-0/raw-future"),
    ("fetch_session_churn", "raw-churn"),
    ("unknown_topic_loop", "artcles/typo"),
    ("topic_recreated", "drafts"),
    # What follows from it.
    ("stopped", "editors/drafts"),
}
FINDINGS = dict.fromkeys(NAMES, FOUND)
UNKNOWN = {"sick_metadata_30s": {"joined midway": {("stopped", "editors/drafts")}}}
"""Two commits tell no rhythm."""
POSSIBLE = {"sick_metadata_1s": {("offset_reset", "editors/drafts")}}
"""Whoever comes late knows no id of the topic that is gone."""


def play_1s(bootstrap: str, truth: Truth, clock: Clock, broker: Kafka4) -> None:
    """Asks and commits each second: by epochs, sessions and names that are wrong, and of a topic that is recreated."""
    _play(bootstrap, truth, clock, broker, 1.0, rhythm.EACH_SECOND)


def play_30s(bootstrap: str, truth: Truth, clock: Clock, broker: Kafka4) -> None:
    """Asks and commits each 30 s: by epochs, sessions and names that are wrong, and of a topic that is recreated."""
    _play(bootstrap, truth, clock, broker, 30.0, rhythm.EACH_30_SECONDS)


def _play(bootstrap: str, truth: Truth, clock: Clock, broker: Kafka4, every_s: float, windows: Windows) -> None:
    rhythm.create_topics(truth, bootstrap, {ARTICLES: 1, DRAFTS: 1})
    with rd.Sender(truth, bootstrap, "articles-app", ARTICLES, partitions=1, interval_s=0.02, count=20) as sender:
        sender.join()
    broker.restart()
    calm: dict[str, Any] = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000, "log_level": 0}
    with ExitStack() as stack:
        past, future, churn = (
            stack.enter_context(RawClient(truth, bootstrap, name)) for name in ("raw-past", "raw-future", "raw-churn")
        )
        acts: dict[str, Callable[[bool], None]] = {
            "raw-past": lambda is_ill: _fetch(past, 0 if is_ill else -1, FENCED_LEADER_EPOCH if is_ill else 0),
            "raw-future": lambda is_ill: _fetch(future, 99 if is_ill else -1, UNKNOWN_LEADER_EPOCH if is_ill else 0),
            "raw-churn": _Sessions(churn).turn,
            "typo": _Typist(truth, bootstrap).turn,
        }
        turns = [
            Turns(name, clock, every_s, act, offset_s=15.0 + number * every_s / 5)
            for number, (name, act) in enumerate(acts.items())
        ]
        rate = rhythm.steadily(2)
        more: dict[str, Any] = {"clock": clock, "partitions": 1, "rate": rate, "linger.ms": 1000, "log_level": 0}
        stack.enter_context(Writer(truth, bootstrap, "drafts-app", DRAFTS, **more))
        editors = Instances(lambda name: Member(truth, bootstrap, name, "editors", DRAFTS, commit_s=every_s, **calm))
        stack.enter_context(editors.all_stopped_in_the_end()).start("editor-1")
        for one in turns:
            stack.enter_context(one)
        making = threading.Thread(target=_make_anew, args=(truth, bootstrap, clock, windows, editors))
        making.start()
        windows.play(turns, truth, clock)
        making.join()


def _fetch(raw: RawClient, leader_epoch: int, expected: int) -> None:
    answer = raw.ask(FETCH, 11, fetching(ARTICLES, leader_epoch=leader_epoch))
    code = answer["responses"][0]["partitions"][0]["errorCode"]
    assert code == expected, code


class _Sessions:
    """A library that keeps its fetch session while it is well, and begins one for each fetch while it is ill."""

    def __init__(self, raw: RawClient) -> None:
        self._raw, self._session, self._epoch = raw, 0, 0

    def turn(self, is_ill: bool) -> None:
        if is_ill or not self._session:
            self._session = self._raw.ask(FETCH, 11, fetching(ARTICLES, epoch=0))["sessionId"]
            assert self._session > 0
            self._epoch = 1
            return
        again = {**fetching(ARTICLES, session=self._session, epoch=self._epoch), "topics": []}
        assert self._raw.ask(FETCH, 11, again)["errorCode"] == 0
        self._epoch += 1


class _Typist:
    """A process with a wrong name in its configuration while it is ill, and the right one otherwise."""

    def __init__(self, truth: Truth, bootstrap: str) -> None:
        truth.client("typo", kp.LIBRARY, "Python", kp.VERSION)
        self._truth, self._bootstrap, self._topic = truth, bootstrap, ""
        self._producer: KafkaProducer | None = None

    def turn(self, is_ill: bool) -> None:
        topic = WRONG if is_ill else ARTICLES
        if topic != self._topic:
            if self._producer is not None:
                self._producer.close(1)
            self._producer, self._topic = (
                KafkaProducer(
                    bootstrap_servers=self._bootstrap, client_id="typo", max_block_ms=700, retry_backoff_ms=200
                ),
                topic,
            )
        assert self._producer is not None
        try:
            self._producer.send(topic, b"text").get(10)
        except KafkaError as error:
            if not is_ill:
                raise
            self._truth.add("typo", "error", topic=topic, error=str(error))


def _make_anew(truth: Truth, bootstrap: str, clock: Clock, windows: Windows, editors: Instances) -> None:
    """Delete the topic, make it again, and at last restart who reads it."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 0})
    for begin, end in windows.ill:
        clock.until(begin)
        truth.add("editor-1", "incident", topic=DRAFTS)
        admin.delete_topics([DRAFTS])[DRAFTS].result(30)
        clock.until(clock.now() + GONE_S)
        rhythm.create_topics(truth, bootstrap, {DRAFTS: 1})
        clock.until(end)
        editors.stop("editor-1")
        editors.start("editor-1")
        truth.add("editor-1", "healed", topic=DRAFTS)
