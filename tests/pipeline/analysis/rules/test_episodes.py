"""Symptoms made by hand, cut into episodes, and what the rules that count make of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from decoder.kafka.apis import ApiKey
from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.rules import counted
from pipeline.analysis.rules.bodies_read import without_bodies
from pipeline.analysis.rules.episode import Episode, Shown
from pipeline.analysis.rules.episodes import collect_episodes
from pipeline.analysis.rules.kafka.api_groups import NAMING_THINGS
from pipeline.analysis.rules.kafka.brokers.stale_metadata import StaleMetadata
from pipeline.analysis.rules.kafka.clients.fetch_session_churn import FetchSessionChurn
from pipeline.analysis.rules.kafka.clients.topic_recreated import TopicRecreated
from pipeline.analysis.rules.kafka.clients.traffic import Traffic
from pipeline.analysis.rules.kafka.clients.unsupported_version import UnsupportedVersion
from pipeline.analysis.rules.kafka.producers.fenced_producer import FencedProducer
from pipeline.analysis.rules.kafka.producers.oversized_or_tiny_batches import OversizedOrTinyBatches
from pipeline.analysis.rules.kafka.producers.sequence_gap import SequenceGap
from pipeline.analysis.rules.kafka.symptoms import CLOSED, INTRODUCED, NO_SESSION
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.rule import all_rules
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES, OFFSET_EVENTS, RECORD_BATCHES
from tests.pipeline.analysis.sources import detected, sources
from tests.pipeline.rows import T0, arrow, row

SETTINGS = finding_settings()
T0_US = int(T0.timestamp() * 1_000_000)
Row = dict[str, Any]


def symptom(seconds: float, rule: str, subject: str, what: str, host: str = "h", server: str = "b:1") -> Shown:
    us = T0_US + round(seconds * 1_000_000)
    return Shown(server, "c", host, us, f"{subject}/{seconds:09.1f}", rule, subject, what, "t", 0, "g", 0.0)


SYMPTOMS = [
    *(symptom(n, "commit_rejected", "two pods", "ILLEGAL_GENERATION", f"h{n % 2}") for n in range(6)),
    *(symptom(n, "commit_rejected", "six pods", "REBALANCE_IN_PROGRESS", f"h{n}") for n in range(6)),
    *(symptom(n, "commit_rejected", "one pod", "ILLEGAL_GENERATION") for n in range(2)),
    *(symptom(n, "commit_rejected", "moved", "ILLEGAL_GENERATION", server="b:2") for n in range(2)),
    *(symptom(9000 + n, "commit_rejected", "moved", "ILLEGAL_GENERATION", server="b:1") for n in range(9)),
    *(symptom(n / 1000, "stale_metadata", "leader moved", "NOT_LEADER_OR_FOLLOWER") for n in range(5)),
    *(symptom(n, "stale_metadata", "never asks", "NOT_LEADER_OR_FOLLOWER") for n in range(5)),
    *(symptom(n, "fetch_session_churn", client, "opened") for n in range(12) for client in ("churns", "reads", "?")),
    *(symptom(n / 10, "fetch_session_churn", "reads of many", "opened", server=f"b:{n}") for n in range(12)),
    symptom(5, "sequence_gap", "resent", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    symptom(5, "sequence_gap", "half", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    symptom(5, "sequence_gap", "half", "OUT_OF_ORDER_SEQUENCE_NUMBER")._replace(
        subject="other half", partition=1, group_id=None
    ),
    symptom(5, "sequence_gap", "lost", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    symptom(5, "sequence_gap", "forgotten", "UNKNOWN_PRODUCER_ID"),
    symptom(9999, "sequence_gap", "at the end", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    symptom(5, "unsupported_version", "killed/Fetch v3", CLOSED),
    symptom(5, "unsupported_version", "ancient/Fetch v2", CLOSED),
    symptom(5, "unsupported_version", "before the upgrade/Produce v0", CLOSED),
    symptom(95, "unsupported_version", "before the upgrade/Produce v0", CLOSED),
    symptom(5, "oversized_or_tiny_batches", "splits", "oversized"),
    symptom(5, "oversized_or_tiny_batches", "large", "oversized"),
    symptom(1, INTRODUCED, "slow-tx", "c"),
    symptom(90, "fenced_producer", "slow-tx", "INVALID_PRODUCER_EPOCH"),
    symptom(1, INTRODUCED, "shared-tx", "c", "other"),
    symptom(90, "fenced_producer", "shared-tx", "INVALID_PRODUCER_EPOCH"),
]
ONE_CLUSTER = ClusterCatalog(brokers={(f"b:{n}", "b:1"): Seen("b:1", 0, 1) for n in range(12)})
TRAFFIC = [
    Traffic("b:1", "b:1", "c", "h", 1, "Fetch", 3, 1000, 0, T0_US, T0_US, 500_000, "e"),
    Traffic("b:1", "b:1", "c", "h", 0, "Produce", 0, 1000, 0, T0_US, T0_US, 500, "e"),
]


def fetch(seconds: float, client: str, port: int = 1) -> Row:
    when = {"ts": T0 + timedelta(seconds=seconds), "exchange_id": f"{client}{seconds}"}
    return row(EXCHANGES_WITH_BODIES, api_key=1, client_id=client, server_ip="b", server_port=port, **when)


def batch(seconds: float, subject: str, sequence: int, offset: int | None, partition: int = 0, **more: Any) -> Row:
    what = {
        "cluster": "b:1",
        "topic": more.pop("topic", "t"),
        "partition": partition,
        "source": "produce",
        "producer_id": 7,
        "producer_epoch": 0,
    }
    when = {"ts": T0 + timedelta(seconds=seconds), "exchange_id": f"{subject}/{seconds:09.1f}"}
    return row(RECORD_BATCHES, **what | when, base_sequence=sequence, base_offset=offset, **more)


ENDS = {"b:1": T0_US + 10_000_000_000}
FETCHES = [
    *(fetch(n, "churns") for n in range(12)),
    *(fetch(3600 + n / 10, "churns") for n in range(100)),  # a day of good health does not hide what came before
    *(fetch(n / 10, "reads") for n in range(110)),
    *(fetch(n / 10, "") for n in range(110)),
    *(fetch(n / 1000, "reads of many", port) for n in range(100) for port in range(12)),
]
FETCHES += [
    row(EXCHANGES_WITH_BODIES, client_id="c", client_ip=one.client_ip, exchange_id=one.exchange_id,
        connection_id=one.client_ip,
        ts=T0 + timedelta(microseconds=one.us - T0_US))
    for one in SYMPTOMS
    if one.rule in (INTRODUCED, "fenced_producer")
]  # fmt: skip
BATCHES = [batch(5, "resent", 40, None), batch(6, "later", 40, 400), batch(5, "lost", 80, None)]
BATCHES += [batch(5, "half", 60, None), batch(6, "half later", 60, 460), batch(5, "half", 90, None, partition=1)]
BATCHES += [
    batch(5, "splits", 0, None, topic="split", size=9000, base_timestamp=77),
    batch(6, "a piece", 1, 500, topic="split", size=5000, base_timestamp=77),
    batch(5, "large", 0, None, topic="large", size=9000, base_timestamp=77),
    batch(6, "a small one", 1, 500, topic="large", size=5000, base_timestamp=78),
]


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], Finding]:
    """All findings by rule and subject."""
    episodes: dict[str, list[Episode]] = {}
    for episode in collect_episodes(SYMPTOMS, ONE_CLUSTER, SETTINGS):
        episodes.setdefault(episode.rule, []).append(episode)
    made = replace(sources(exchanges=FETCHES, batches=BATCHES), episodes=episodes, traffic=TRAFFIC, ends=ENDS)
    findings = [
        *(one for rule in all_rules() if issubclass(rule, counted.CountedRule) for one in rule.detect(made, SETTINGS)),
        *detected((FetchSessionChurn, UnsupportedVersion, TopicRecreated), made, SETTINGS),
        *detected((SequenceGap, OversizedOrTinyBatches, FencedProducer, StaleMetadata), made, SETTINGS),
    ]
    return {(f.rule, f.subject): f for f in findings}


Found = dict[tuple[str, str], Finding]


@pytest.mark.parametrize(
    ("rule", "subject", "is_found"),
    [
        ("commit_rejected", "six pods", False),
        ("commit_rejected", "one pod", True),
        ("commit_rejected", "moved", True),
        ("stale_metadata", "leader moved", False),
        ("stale_metadata", "never asks", True),
        ("fetch_session_churn", "churns", True),
        ("fetch_session_churn", "reads", False),
        ("fetch_session_churn", "?", False),
        ("fetch_session_churn", "reads of many", False),
        ("sequence_gap", "resent", False),
        ("sequence_gap", "half", False),
        ("sequence_gap", "other half", True),
        ("sequence_gap", "lost", True),
        ("sequence_gap", "forgotten", True),
        ("sequence_gap", "at the end", False),
        ("unsupported_version", "killed/Fetch v3", False),
        ("unsupported_version", "ancient/Fetch v2", True),
        ("unsupported_version", "before the upgrade/Produce v0", True),
        ("fenced_producer", "slow-tx", True),
        ("fenced_producer", "shared-tx", True),
    ],
)
def test_a_rule_fires_on_trouble_and_not_on_what_looks_like_it(
    found: Found, rule: str, subject: str, is_found: bool
) -> None:
    assert ((rule, subject) in found) == is_found


def test_the_last_episode_is_reported_whichever_broker_it_was_at(found: Found) -> None:
    moved = found["commit_rejected", "moved"]
    assert (moved.details["server"], moved.details["times"]) == ("b:1", 9)


def test_what_came_before_is_counted_and_dated(found: Found) -> None:
    moved = found["commit_rejected", "moved"]
    assert moved.details["recurrences"] == 1
    assert (moved.details["first_of_all_us"], moved.details["last_of_all_us"]) == (T0_US, T0_US + 9_008_000_000)
    assert moved.summary.endswith("It came once before, first at 12:00:00 UTC.")
    assert found["commit_rejected", "one pod"].details["recurrences"] == 0


def test_recurrences_of_several_hosts_at_one_time_are_one() -> None:
    shown = [
        symptom(1000 * turn + n, "commit_rejected", "pods", "ILLEGAL_GENERATION", f"h{n % 2}")
        for turn in range(4)
        for n in range(4)
    ]
    (last,) = counted.last_of_each(collect_episodes(shown, ClusterCatalog(), SETTINGS))
    assert (last.times, len(last.before)) == (4, 3)
    assert last.before[0] == (T0_US, T0_US + 3_000_000)
    assert counted.again(last) == " It came 3 times before, first at 12:00:00 UTC."


def test_a_member_that_asks_each_five_minutes_is_counted_by_its_connection() -> None:
    rows = [symptom(310 * n, "zombie_member", "g/c", "UNKNOWN_MEMBER_ID") for n in range(3)]
    (one,) = collect_episodes([row._replace(client="h:1") for row in rows], ClusterCatalog(), SETTINGS)
    assert (one.times, one.run_us) == (3, 620_000_000)
    ended = collect_episodes([row._replace(client=f"h:{n}") for n, row in enumerate(rows)], ClusterCatalog(), SETTINGS)
    assert [each.times for each in ended] == [1, 1, 1]


def test_a_coordinator_that_moves_goes_on_with_the_episode() -> None:
    catalog = ClusterCatalog(brokers={(server, "C"): Seen("C", 0, 1) for server in ("b:1", "b:2")})
    shown = [symptom(n, "commit_rejected", "g/c", "ILLEGAL_GENERATION", server=f"b:{n % 2 + 1}") for n in range(6)]
    (one,) = collect_episodes(shown, catalog, SETTINGS)
    assert (one.cluster, one.times, one.server, one.servers) == ("C", 6, "b:2", ("b:1", "b:2"))


def test_all_hosts_that_showed_it_at_the_time_are_named(found: Found) -> None:
    two = found["commit_rejected", "two pods"]
    assert (two.details["times"], two.details["clients"]) == (6, ["c at h0", "c at h1"])
    assert len(two.evidence) == 3


@pytest.mark.parametrize(
    ("every", "severity", "busiest"), [(60, "info", 11), (1.5, "warning", 310), (2.5, "info", 241)]
)
def test_fetch_sessions_are_costly_by_their_rate(every: float, severity: str, busiest: int) -> None:
    shown = [symptom(n * every, "fetch_session_churn", "canary", "opened") for n in range(310)]
    episodes = {"fetch_session_churn": collect_episodes(shown, ClusterCatalog(), SETTINGS)}
    made = replace(sources(exchanges=[fetch(n * every, "canary") for n in range(310)]), episodes=episodes, ends=ENDS)
    (found,) = FetchSessionChurn.detect(made, SETTINGS)
    assert (found.severity, found.details["busiest"]) == (severity, busiest)
    assert f"up to {busiest} within 10 min" in found.summary


def test_a_client_that_gets_no_session_waits_for_the_brokers_cache() -> None:
    shown = [symptom(n, "fetch_session_churn", "canary", NO_SESSION) for n in range(12)]
    episodes = {"fetch_session_churn": collect_episodes(shown, ClusterCatalog(), SETTINGS)}
    made = replace(sources(exchanges=[fetch(n, "canary") for n in range(12)]), episodes=episodes, ends=ENDS)
    (found,) = FetchSessionChurn.detect(made, SETTINGS)
    assert "asked for a fetch session without success" in found.summary
    assert "the broker's cache of sessions is full, or it keeps none" in found.summary


@pytest.mark.parametrize(("others", "severity"), [(0, "info"), (1, "warning")])
def test_a_broker_that_gives_nobody_a_session_may_keep_none(others: int, severity: str) -> None:
    shown = [symptom(n, "fetch_session_churn", "canary", NO_SESSION) for n in range(310)]
    shown += [symptom(n, "fetch_session_churn", "other", "opened") for n in range(others)]
    episodes = {"fetch_session_churn": collect_episodes(shown, ClusterCatalog(), SETTINGS)}
    made = replace(sources(exchanges=[fetch(n, "canary") for n in range(310)]), episodes=episodes, ends=ENDS)
    (found,) = FetchSessionChurn.detect(made, SETTINGS)
    assert (found.severity, found.details["in_vain"]) == (severity, True)


def test_a_session_that_was_refused_once_is_not_why_others_are_opened() -> None:
    shown = [symptom(n, "fetch_session_churn", "canary", NO_SESSION if n == 5 else "opened") for n in range(12)]
    episodes = {"fetch_session_churn": collect_episodes(shown, ClusterCatalog(), SETTINGS)}
    made = replace(sources(exchanges=[fetch(n, "canary") for n in range(12)]), episodes=episodes, ends=ENDS)
    (found,) = FetchSessionChurn.detect(made, SETTINGS)
    assert "began a new fetch session" in found.summary


def test_a_client_that_churns_again_after_a_pause_is_told_by_its_last_time() -> None:
    shown = [
        symptom(9000 * turn + n, "fetch_session_churn", "canary", "opened") for turn in range(2) for n in range(12)
    ]
    fetches = [fetch(9000 * turn + n, "canary") for turn in range(2) for n in range(12 + turn)]
    episodes = {"fetch_session_churn": collect_episodes(shown, ClusterCatalog(), SETTINGS)}
    (found,) = FetchSessionChurn.detect(replace(sources(exchanges=fetches), episodes=episodes, ends=ENDS), SETTINGS)
    assert (found.details["times"], found.details["recurrences"]) == (12, 1)
    assert "in 12 fetches" in found.summary


def test_batches_that_were_lost_again_are_told_by_the_last_time() -> None:
    shown = [symptom(9 + 9000 * turn, "sequence_gap", "again", "OUT_OF_ORDER_SEQUENCE_NUMBER") for turn in range(3)]
    resent = [batch(9 + 9000 * 2, "again", 5, None), batch(18010, "later", 5, 50)]
    episodes = {"sequence_gap": collect_episodes(shown, ONE_CLUSTER, SETTINGS)}
    ends = {"b:1": T0_US + 100_000_000_000}
    (found,) = SequenceGap.detect(replace(sources(batches=resent), episodes=episodes, ends=ends), SETTINGS)
    assert (found.details["recurrences"], found.first_us) == (1, T0_US + 9_009_000_000)


def test_many_batches_that_were_all_sent_again_are_no_loss() -> None:
    shown = [symptom(n / 10, "sequence_gap", "busy", "OUT_OF_ORDER_SEQUENCE_NUMBER") for n in range(60)]
    resent = [batch(n / 10, "busy", n, None) for n in range(60)] + [batch(20 + n, "later", n, n) for n in range(60)]
    episodes = {"sequence_gap": collect_episodes(shown, ONE_CLUSTER, SETTINGS)}
    made = replace(sources(batches=resent), episodes=episodes, ends=ENDS)
    assert list(SequenceGap.detect(made, SETTINGS)) == []
    assert len(list(SequenceGap.detect(replace(made, tables=sources(batches=resent[:-1]).tables), SETTINGS))) == 1


def test_many_batches_that_were_all_split_are_not_lost() -> None:
    shown = [symptom(n, "oversized_or_tiny_batches", "busy", "oversized") for n in range(30)]
    whole = [batch(n, "busy", n, None, size=9000, base_timestamp=n) for n in range(30)]
    pieces = [batch(n + 0.5, "a piece", n, n, size=5000, base_timestamp=n) for n in range(30)]
    episodes = {"oversized_or_tiny_batches": collect_episodes(shown, ONE_CLUSTER, SETTINGS)}
    made = replace(sources(batches=[*whole, *pieces]), episodes=episodes, ends=ENDS)
    assert [one.severity for one in OversizedOrTinyBatches.detect(made, SETTINGS)] == ["info"]


def test_a_topic_that_was_made_anew_twice_names_groups_that_stand_in_it() -> None:
    lives = {("b:1", f"id{n}"): Seen("t", T0_US + n * 100, T0_US + n * 100 + 50) for n in range(3)}
    made = {"cluster": "b:1", "topic": "t", "kind": "committed", "ordinal": 0}
    commits = [
        row(OFFSET_EVENTS, **made, group_id=group, exchange_id=group, ts=T0 + timedelta(microseconds=us))
        for group, us in (("old", 10), ("new", 300))
    ]
    (found,) = TopicRecreated.detect(
        replace(sources(events=commits), catalog=ClusterCatalog(topics=lives), ends=ENDS), SETTINGS
    )
    assert (found.rule, found.details["committed_since"]) == ("topic_recreated", ["new"])
    assert (found.details["recurrences"], found.details["first_of_all_us"]) == (1, T0_US + 50)
    assert "have not committed since" in found.advice


def test_a_producer_that_a_broker_only_forgot_is_no_loss(found: Found) -> None:
    assert found["sequence_gap", "lost"].severity == "critical"
    assert found["sequence_gap", "forgotten"].severity == "warning"


def test_a_batch_that_was_split_is_not_lost(found: Found) -> None:
    split, large = (found["oversized_or_tiny_batches", subject] for subject in ("splits", "large"))
    assert (split.severity, large.severity) == ("info", "warning")
    assert "took the smaller ones" in split.summary


def test_a_rival_is_named_only_where_there_is_one(found: Found) -> None:
    assert "c at other has taken the id" in found["fenced_producer", "shared-tx"].summary
    assert "no other producer was seen" in found["fenced_producer", "slow-tx"].summary
    assert "transaction.timeout.ms" in found["fenced_producer", "slow-tx"].advice


@pytest.mark.parametrize("api", NAMING_THINGS, ids=lambda api: api.name)
def test_an_accepted_request_keeps_the_name_that_its_refusals_are_compared_by(api: ApiKey) -> None:
    bodies = {"request_body": '{"groupId":"g"}', "response_body": '{"errorCode":0,"groups":[]}'}
    accepted = row(EXCHANGES_WITH_BODIES, protocol="kafka", api_key=int(api), status="paired", error_codes=[], **bodies)
    (kept,) = without_bodies(arrow(EXCHANGES_WITH_BODIES, [accepted]), finding_settings()).to_pylist()
    assert kept["request_body"] == bodies["request_body"]
