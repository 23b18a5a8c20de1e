"""Rule ``join_refused``: who is not let in, and who only waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson
import pytest

from decoder.kafka.apis import KafkaError
from pipeline.analysis.rules.kafka.groups.join_refused import JoinRefused
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES
from tests.pipeline.analysis.rules.kafka.group_rows import JOIN, Row, at, member
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import row

INCONSISTENT, FULL, NEEDS_ID = (
    KafkaError.INCONSISTENT_GROUP_PROTOCOL, KafkaError.GROUP_MAX_SIZE_REACHED, KafkaError.MEMBER_ID_REQUIRED,
)  # fmt: skip


def knock(seconds: float, code: int, who: str = "new", **more: object) -> Row:
    return member("join", seconds, who, error_code=int(code), error_name=KafkaError(code).name, **more)


def asks(who: str, code: int, *names: str, session_s: int = 10) -> Row:
    body = {"groupId": "g", "sessionTimeoutMs": session_s * 1000, "protocols": [{"name": name} for name in names]}
    codes = [int(code)] if code else []
    return row(
        EXCHANGES_WITH_BODIES, client_id=who, api_key=JOIN, request_body=orjson.dumps(body).decode(), error_codes=codes
    )


def found(states: Sequence[Row], exchanges: Sequence[Row] = (), seen_s: float | None = None) -> list[Finding]:
    ends = {} if seen_s is None else {"C": int(at(seen_s).timestamp() * 1_000_000)}
    return JoinRefused.detect(replace(sources(states=states, exchanges=exchanges), ends=ends), finding_settings())


def test_it_names_what_it_offers_and_what_the_others_do() -> None:
    asked = [asks("old", 0, "range"), asks("new", INCONSISTENT, "cooperative-sticky")]
    (finding,) = found([knock(n * 5, INCONSISTENT) for n in range(4)], asked)
    assert (finding.severity, finding.state, finding.subject) == ("critical", "ongoing", "g/new")
    assert "(it offers cooperative-sticky, the others range)" in finding.summary


@pytest.mark.parametrize(
    ("others", "words"),
    [
        pytest.param([], "(it offers range; what the others offer was not captured)", id="nobody"),
        pytest.param(["beats"], "(it offers range; what the others offer was stated before the capture began)",
                     id="heartbeats"),
        pytest.param(["range"], "(it offers range, as others do; a member that was not captured does not)", id="alike"),
    ],
)  # fmt: skip
def test_what_the_others_offer_may_be_unknown(others: list[str], words: str) -> None:
    states = [knock(n * 5, INCONSISTENT) for n in range(4)]
    states += [member("heartbeat", n, "old", error_code=0, client="10.0.0.8:4000") for n in range(9) if others]
    joins = [asks("new", INCONSISTENT, "range"), *(asks("old", 0, name) for name in others if name != "beats")]
    (finding,) = found(states, joins)
    assert words in finding.summary
    assert ("--describe --group g --state` shows it." in finding.advice) == (others != ["range"])


def test_another_type_of_protocol_is_named() -> None:
    kinds = [asks("new", INCONSISTENT, "range"), asks("old", 0, "sessioned")]
    for one, kind in zip(kinds, ("consumer", "connect"), strict=True):
        one["request_body"] = orjson.dumps({**orjson.loads(one["request_body"]), "protocolType": kind}).decode()
    (finding,) = found([knock(n * 5, INCONSISTENT) for n in range(4)], kinds)
    assert "(it joins as consumer, the others as connect)" in finding.summary


def test_nobody_of_a_full_group_was_captured() -> None:
    (finding,) = found([knock(n * 10, FULL) for n in range(4)], [asks("new", FULL, "range")])
    assert "GROUP_MAX_SIZE_REACHED (no other member of the group was captured)" in finding.summary
    assert "--describe --group g --members` shows them." in finding.advice


def test_a_twin_that_was_let_in_before_lets_nobody_in() -> None:
    inside = [knock(n * 5 + 1, 0, client="10.0.0.9:4001") | {"group_protocol": "consumer"} for n in range(-1, 4)]
    (finding,) = found([*inside, *(knock(n * 5, INCONSISTENT) for n in range(4))])
    assert finding.state == "ongoing"


@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        ("consumer", KafkaError.UNSUPPORTED_ASSIGNOR),
        ("consumer", KafkaError.TOPIC_AUTHORIZATION_FAILED),
        ("share", KafkaError.GROUP_AUTHORIZATION_FAILED),
        ("streams", KafkaError.STREAMS_INVALID_TOPOLOGY),
    ],
)
def test_where_there_is_no_join_it_is_a_heartbeat(protocol: str, code: KafkaError) -> None:
    beats = [knock(n * 5, code) | {"kind": "heartbeat", "group_protocol": protocol} for n in range(3)]
    (finding,) = found(beats)
    assert finding.subject == "g/new"
    assert "its group is not one" not in finding.advice


@pytest.mark.parametrize(("every", "expected"), [(10, []), (20, ["g/new"])])
def test_a_heartbeat_that_states_no_session_timeout_gets_the_brokers(every: int, expected: list[str]) -> None:
    beats = [knock(n * every, FULL) | {"kind": "heartbeat", "group_protocol": "share"} for n in range(4)]
    assert [finding.subject for finding in found(beats)] == expected


def test_who_got_in_at_last_is_told_as_over() -> None:
    (finding,) = found([*(knock(n * 10, FULL) for n in range(4)), knock(40, 0)], [asks("new", FULL, session_s=10)])
    assert (finding.severity, finding.state) == ("warning", "resolved")


@pytest.mark.parametrize(
    "states",
    [
        [knock(n * 5, NEEDS_ID) for n in range(9)],
        [knock(n * 5, KafkaError.NOT_COORDINATOR) for n in range(9)],
        [knock(0, INCONSISTENT), knock(9, INCONSISTENT)],
        [knock(n / 10, INCONSISTENT) for n in range(9)],  # retries of a moment
        [knock(n, FULL) for n in range(9)],  # a deploy that begins with the new instance, up to its session timeout
        [step for n in range(9) for step in (knock(n * 20, INCONSISTENT), knock(n * 20 + 1, 0))],
        [member("heartbeat", n * 5, "old", error_code=int(FULL)) for n in range(9)],  # no join
    ],
)
def test_what_is_in_order(states: list[Row]) -> None:
    assert found(states, [asks("new", FULL, "range")]) == []


@pytest.mark.parametrize(
    ("more", "state", "severity"),
    [
        ([], "unknown", "critical"),
        ([knock(60, 0)], "resolved", "warning"),
        ([knock(60, 0, client="10.0.0.8:4000")], "resolved", "warning"),  # the mended one runs elsewhere
        ([knock(n, 0, client="10.0.0.8:4000") for n in (1, 60)], "unknown", "critical"),  # another one rejoins
    ],
)
def test_who_asks_no_more_was_not_let_in(more: list[Row], state: str, severity: str) -> None:
    (finding,) = found([*(knock(n * 5, INCONSISTENT) for n in range(4)), *more], seen_s=600)
    assert (finding.state, finding.severity) == (state, severity)
    assert ("It is unknown since" in finding.summary) == (state == "unknown")


def test_two_hosts_of_one_client_id_do_not_let_each_other_in() -> None:
    inside = [knock(n * 5 + 1, 0, client="10.0.0.8:4000") for n in range(4)]
    (finding,) = found([*inside, *(knock(n * 5, INCONSISTENT) for n in range(4))])
    assert finding.details["hosts"] == ["10.0.0.9"]
