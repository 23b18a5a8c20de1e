"""Who was refused and gets on is well: symptoms and successes made by hand, and what the rules make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.rules import counted
from pipeline.analysis.rules.episode import Episode, Shown
from pipeline.analysis.rules.episodes import collect_episodes
from pipeline.analysis.rules.kafka.brokers.stale_metadata import StaleMetadata
from pipeline.analysis.rules.kafka.clients.unsupported_version import UnsupportedVersion
from pipeline.analysis.rules.kafka.repairs import named, with_repairs
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.rule import all_rules
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES, OFFSET_EVENTS, STATE_EVENTS
from tests.pipeline.analysis.sources import detected, sources
from tests.pipeline.rows import T0, row

SETTINGS = finding_settings()
T0_US = int(T0.timestamp() * 1_000_000)
END_S = 900.0
Row = dict[str, Any]


@dataclass
class Play:
    """What is refused, what succeeds, and how severe it is; None: no finding."""

    refused: Sequence[Shown]
    events: Sequence[Row] = ()
    states: Sequence[Row] = ()
    exchanges: Sequence[Row] = ()
    severity: str | None = None
    end_s: float = END_S
    more: dict[str, object] = field(default_factory=dict)


def refusal(rule: str, at: float, subject: str, what: str, **more: Any) -> Shown:
    us = T0_US + round(at * 1_000_000)
    one = Shown("b:1", "app", "10.0.0.1", us, f"x{at:07.1f}", rule, subject, what, "t", 0, None, 0.0, "10.0.0.1:5")
    return one._replace(latency_us=1000, **more)


def commit(at: float, offset: int, *, taken: bool, who: str = "10.0.0.1:5", member: str = "m", **more: Any) -> Row:
    ts = T0 + timedelta(seconds=at, milliseconds=1)
    what = {"kind": "committed" if taken else "commit_rejected", "topic": "t", "partition": 0, "group_id": "g"}
    by = {"client": who, "client_id": "app", "member_id": member, "cluster": "b:1", "server": "b:1"}
    ids = {"exchange_id": f"{'y' if taken else 'x'}{at:07.1f}"}
    return row(OFFSET_EVENTS, **{**what, **by, **ids, "ts": ts, "offset": offset, "generation": 3, **more})


def refused_commits(times: Sequence[float], what: str = "ILLEGAL_GENERATION") -> list[Shown]:
    return [refusal("commit_rejected", at, "g/app", what, group_id="g") for at in times]


def rejections(times: Sequence[float], offset: int = 10, **more: Any) -> list[Row]:
    return [commit(at, offset, taken=False, **more) for at in times]


OTHER = "10.0.0.2:5"
STALE = "STALE_MEMBER_EPOCH"
COMMITS = {
    "nobody makes it good": Play(refused_commits([0, 1]), rejections([0, 1]), severity="critical"),
    "the member continues": Play(refused_commits([0, 1]), [*rejections([0, 1]), commit(2, 12, taken=True)]),
    "a member's epoch moves on": Play(
        refused_commits([0, 1, 2, 3, 4], STALE), [*rejections([0, 1, 2, 3, 4]), commit(5, 15, taken=True)]
    ),
    "it continues at its own period of 30 s": Play(
        refused_commits([90, 120]),
        [*(commit(30 * n, n, taken=True) for n in range(3)), *rejections([90, 120]), commit(150, 15, taken=True)],
    ),
    "it continues much later than its period": Play(
        refused_commits([4, 5]),
        [*(commit(n, n, taken=True) for n in range(4)), *rejections([4, 5]), commit(150, 15, taken=True)],
        severity="critical",
    ),
    "the next owner makes it good": Play(
        refused_commits([0, 1]), [*rejections([0, 1]), commit(4, 10, taken=True, who=OTHER)]
    ),
    "the next owner does not get so far": Play(
        refused_commits([0, 1]), [*rejections([0, 1]), commit(4, 9, taken=True, who=OTHER)], severity="critical"
    ),
    "it continues for nothing": Play(
        refused_commits([0, 1, 2, 3, 4, 5]),
        [*rejections([0, 1, 2, 3, 4, 5]), commit(6, 30, taken=True, who=OTHER)],
        severity="critical",
    ),
    "a tool is refused beside the group": Play(
        refused_commits([0, 1]),
        [*rejections([0, 1], member="", generation=-1), commit(4, 10, taken=True, who=OTHER)],
        severity="critical",
    ),
    "the capture ends too early": Play(refused_commits([0, 1]), rejections([0, 1]), end_s=5),
    "the capture ends while it is refused for long": Play(
        refused_commits([0, 1, 2, 3, 4]), rejections([0, 1, 2, 3, 4]), end_s=5, severity="critical"
    ),
    "some of a rebalance": Play(refused_commits([0, 1, 2], "REBALANCE_IN_PROGRESS"), rejections([0, 1, 2])),
}


def accepted(at: float, kind: str = "heartbeat", who: str = "10.0.0.1:5") -> Row:
    by = {"client": who, "client_id": "app", "cluster": "b:1", "server": "b:1"}
    what = {"kind": kind, "group_id": "g", "member_id": "m2", "error_code": 0}
    return row(STATE_EVENTS, **by, **what, ts=T0 + timedelta(seconds=at))


def put_out(times: Sequence[float]) -> list[Shown]:
    return [refusal("zombie_member", at, "g/app", "UNKNOWN_MEMBER_ID", group_id="g") for at in times]


ZOMBIES = {
    "continues": Play(put_out([0, 3, 6]), severity="warning"),
    "rejoins each time": Play(put_out([0, 20, 40, 60]), states=[accepted(n, "join") for n in (1, 21, 41, 61)]),
    "continued and rejoins": Play(
        put_out([0, 3, 6]), states=[accepted(9, "join")], severity="warning", more={"state": "resolved"}
    ),
    "commits by its old epoch": Play(put_out([0, 1, 2, 3]), states=[accepted(n + 0.5) for n in range(4)]),
    "another member is well": Play(put_out([0, 3, 6]), states=[accepted(4, who=OTHER)], severity="warning"),
}


def served(at: float, kind: str = "fetched", topic: str = "t", **more: Any) -> Row:
    by = {"client": "10.0.0.1:7", "client_id": "app", "cluster": "b:1", "server": "b:2", "error_code": 0}
    ts = T0 + timedelta(seconds=at)
    return row(OFFSET_EVENTS, **{**by, "kind": kind, "topic": topic, "partition": 0, "ts": ts, **more})


def not_led(times: Sequence[float], rule: str = "stale_metadata", **more: Any) -> list[Shown]:
    return [refusal(rule, at, "t-0/app", "NOT_LEADER_OR_FOLLOWER", **more) for at in times]


LEADERS = {
    "a moment": Play(not_led([0, 0.1, 0.2])),
    "an election each five minutes": Play(not_led([0, 290, 580]), [served(n) for n in (1, 291, 581)], end_s=END_S),
    "some seconds": Play(not_led([0, 1, 2]), [served(3)], severity="info", more={"state": "resolved"}),
    "in vain": Play(not_led([0, 10, 20, 31]), severity="warning"),
    "another partition is served": Play(not_led([0, 10, 20, 31]), [served(32, partition=1)], severity="warning"),
    "was in vain": Play(not_led([0, 10, 20, 31]), [served(32)], severity="info"),
    "fenced for good": Play(not_led([0, 1, 2], "fenced_leader_epoch"), severity="warning"),
    "fenced at three elections": Play(
        not_led([0, 100, 200], "fenced_leader_epoch"), [served(n) for n in (1, 101, 201)]
    ),
}


def advised(refused: Sequence[Shown]) -> str:
    (finding,) = judged(Play(refused))
    return finding.advice


@pytest.mark.parametrize(
    ("what", "now"),
    [
        ("OFFSET_METADATA_TOO_LARGE", "Now: shorten the metadata of the commit"),
        ("ILLEGAL_GENERATION", "Now: let the client rejoin"),
        ("INVALID_COMMIT_OFFSET_SIZE", "Now: commit fewer partitions"),
        ("FENCED_INSTANCE_ID", "Now: stop one of the two processes"),
    ],
)
def test_advice_about_a_refused_commit_is_that_of_its_code(what: str, now: str) -> None:
    refused = [one._replace(api_name="OffsetCommit") for one in refused_commits(list(range(9)), what)]
    assert advised(refused).startswith(now)
    assert ("rejoin" in advised(refused)) == (what in ("ILLEGAL_GENERATION", "OFFSET_METADATA_TOO_LARGE"))
    assert "or a rejoin does not help" in advised(refused) or what != "OFFSET_METADATA_TOO_LARGE"


@pytest.mark.parametrize(
    ("api", "what", "now"),
    [
        ("SaslAuthenticate", "SASL_AUTHENTICATION_FAILED", "Now: check the client's credentials"),
        ("SaslHandshake", "UNSUPPORTED_SASL_MECHANISM", "Now: set sasl.mechanism of the client"),
        ("Produce", "TOPIC_AUTHORIZATION_FAILED", "--operation Write --topic t`"),
        ("Fetch", "TOPIC_AUTHORIZATION_FAILED", "--operation Read --topic t`"),
        ("InitProducerId", "CLUSTER_AUTHORIZATION_FAILED", "--operation IdempotentWrite --cluster`"),
        ("DeleteGroups", "GROUP_AUTHORIZATION_FAILED", "--operation Delete --group GROUP`"),
    ],
)
def test_advice_about_a_refusal_is_that_of_its_code_and_api(api: str, what: str, now: str) -> None:
    refused = [refusal("auth_failed", at, "b:1/app", what, api_name=api) for at in range(4)]
    assert now in advised(refused)
    assert ("passwords" in advised(refused)) == (what == "SASL_AUTHENTICATION_FAILED")


def test_a_client_that_is_newer_than_its_brokers_is_not_to_be_updated() -> None:
    old = [refusal("unsupported_version", at, "app/Produce v2", "refused", api_name="Produce") for at in range(4)]
    new = [one._replace(subject="app/ConsumerGroupHeartbeat v1", api_name="ConsumerGroupHeartbeat") for one in old]
    assert "update its library" in advised(old)
    assert advised(new).startswith("Now: start the client with group.protocol=classic.")


def test_a_member_whose_id_was_taken_is_not_to_be_restarted() -> None:
    late = [refusal("zombie_member", at, "g/app", "UNKNOWN_MEMBER_ID", group_id="g") for at in range(0, 90, 5)]
    taken = [one._replace(what="FENCED_INSTANCE_ID") for one in late]
    assert advised(late).startswith("Now: restart the client")
    assert advised(taken).startswith("Now: stop one of the two processes that use this group.instance.id")


def asked(times: Sequence[float]) -> list[Shown]:
    return [refusal("unknown_topic_loop", at, "t/app", "Metadata", api_name="Metadata") for at in times]


TOPICS = {
    "starts before its topic": Play(
        asked([n / 10 for n in range(9)]), [served(2, "produced")], severity="info", more={"state": "resolved"}
    ),
    "a typo": Play(asked(list(range(32))), severity="warning"),
    "a short typo": Play(asked(list(range(9))), severity="info"),
    "some questions": Play(asked([0, 1, 2])),
}


def answered(at: float, api: str, key: int, codes: Sequence[int] = (), **more: Any) -> Row:
    ts = T0 + timedelta(seconds=at)
    where = {"server_ip": "b", "server_port": 1, "client_ip": "10.0.0.1", "client_id": "app", "protocol": "kafka"}
    what = {"api_name": api, "api_key": key, "error_codes": list(codes), "status": "paired"}
    return row(EXCHANGES_WITH_BODIES, **{**where, **what, "ts": ts, "response_ts": ts, **more})


def turned_away(times: Sequence[float], what: str = "SASL_AUTHENTICATION_FAILED") -> list[Shown]:
    return [refusal("auth_failed", at, "b:1/app", what, api_name="Fetch") for at in times]


LOGINS = {
    "a probe": Play(turned_away([0]), severity="info"),
    "a probe each minute": Play(
        turned_away([60 * n for n in range(9)]),
        exchanges=[answered(60 * n + 1, "Fetch", 1) for n in range(9)],
        severity="info",
    ),
    "a wrong password": Play(turned_away([0, 1, 2, 3]), severity="critical"),
    "a wrong password asks for versions": Play(
        turned_away([0, 1, 2, 3]), exchanges=[answered(n + 0.5, "ApiVersions", 18) for n in range(5)],
        severity="critical",
    ),
    "a rotated password": Play(
        turned_away([0, 1, 2, 3]), exchanges=[answered(4, "Fetch", 1)], severity="warning", more={"state": "resolved"}
    ),
    "may log in and not read": Play(
        turned_away([0, 1, 2, 3], "TOPIC_AUTHORIZATION_FAILED"),
        exchanges=[answered(n + 0.5, "Heartbeat", 12) for n in range(5)],
        severity="critical",
    ),
    "another is let in": Play(
        turned_away([0, 1, 2, 3]), exchanges=[answered(4, "Fetch", 1, client_ip="10.0.0.2")], severity="critical"
    ),
}  # fmt: skip


def too_new(times: Sequence[float]) -> list[Shown]:
    return [refusal("unsupported_version", at, "app/Fetch v99", "refused", api_name="Fetch") for at in times]


VERSIONS = {
    "a probe": Play(too_new([0]), severity="info"),
    "cannot do else": Play(too_new([0, 1, 2]), severity="critical"),
    "falls back": Play(
        too_new([0, 1, 2]), exchanges=[answered(3, "Fetch", 1)], severity="warning", more={"state": "resolved"}
    ),
    "another api is answered": Play(
        too_new([0, 1, 2]), exchanges=[answered(3, "Produce", 0)], severity="critical"
    ),
}  # fmt: skip
PLAYS = {
    f"{rule}: {name}": play
    for rule, plays in (
        ("commit_rejected", COMMITS), ("zombie_member", ZOMBIES), ("leaders", LEADERS), ("topics", TOPICS),
        ("auth_failed", LOGINS), ("unsupported_version", VERSIONS),
    )
    for name, play in plays.items()
}  # fmt: skip


def judged(play: Play) -> list[Finding]:
    made = sources(events=play.events, states=play.states, exchanges=play.exchanges)
    ends = {"b:1": T0_US + round(play.end_s * 1_000_000)}
    marked = with_repairs(play.refused, made.tables, ClusterCatalog(), ends, SETTINGS)
    episodes: dict[str, list[Episode]] = {}
    for episode in collect_episodes(marked, ClusterCatalog(), SETTINGS):
        episodes.setdefault(episode.rule, []).append(episode)
    made = replace(made, episodes=episodes, ends=ends)
    counting = [rule for rule in all_rules() if issubclass(rule, counted.CountedRule)]
    return detected((*counting, UnsupportedVersion, StaleMetadata), made, SETTINGS)


@pytest.mark.parametrize("name", PLAYS)
def test_what_was_refused_counts_if_it_stays_refused(name: str) -> None:
    play = PLAYS[name]
    findings = judged(play)
    assert [f.severity for f in findings] == ([] if play.severity is None else [play.severity])
    assert [{key: getattr(f, key) for key in play.more} for f in findings] == [play.more for _ in findings]


def test_the_wave_of_an_election_is_one_finding() -> None:
    refused = [
        one._replace(subject=f"t-{n}/app", partition=n, exchange_id=f"{one.exchange_id}/{n}")
        for n in range(8)
        for one in not_led([0.1 * n, 1, 2])
    ]
    (wave,) = judged(Play(refused, [served(3, partition=n) for n in range(8)]))
    assert (wave.subject, wave.severity, wave.state, wave.topic) == ("b:1", "info", "resolved", None)
    assert wave.details["partitions"] == [f"t-{n}" for n in range(8)]
    assert wave.details["times"] == 24


def test_a_topic_of_which_the_wire_has_the_id_alone_is_named() -> None:
    catalog = ClusterCatalog(topics={("C", "AAAA"): Seen("orders", 0, 1)})
    (one,) = named([refusal("stale_metadata", 0, "AAAA-0/app", "X", topic="AAAA")], catalog)
    assert (one.topic, one.subject) == ("orders", "orders-0/app")
