"""A finding names the hosts of its clients, and the clients of its group, as its evidence shows them."""

from __future__ import annotations

from typing import Any

import pytest

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.kafka.senders import Sender, with_senders
from pipeline.analysis.rules.model import Finding

COMMIT, FETCH, PRODUCE = ApiKey.OFFSET_COMMIT, ApiKey.FETCH, ApiKey.PRODUCE


def sender(client_id: str | None, host: str, api_key: int = COMMIT) -> Sender:
    return Sender(client_id, host, f"{host}:4000", "b:9092", api_key)


SHOWN = {
    "a": sender("app", "h1"), "b": sender("app", "h2"), "c": sender("tool", "h3"), "p": sender("web", "h4", PRODUCE),
    "f": sender("app", "h1", FETCH), "n": sender(None, "h5"),
}  # fmt: skip


def named(evidence: str, group: str | None = "g", subject: str = "g/t", **details: Any) -> dict[str, Any]:
    one = Finding(
        rule="stopped", severity="critical", subject=subject, state="ongoing", cluster="k", topic="t", partition=None,
        group_id=group, first_us=0, last_us=1, summary="It stands.", advice="Now: wait.", evidence=list(evidence),
        details=details,
    )  # fmt: skip
    return dict(with_senders(one, SHOWN).details)


@pytest.mark.parametrize(
    ("evidence", "clients"),
    [
        ("a", ["app at h1"]),
        ("abca", ["app at h1", "app at h2", "tool at h3"]),
        ("ap", ["app at h1"]),
        ("n", ["a client without client_id at h5"]),
    ],
)
def test_clients_of_a_group_are_those_who_sent_its_requests(evidence: str, clients: list[str]) -> None:
    assert named(evidence) == {"clients": clients}


@pytest.mark.parametrize("evidence", ["", "x", "p", "f"])
def test_who_only_reads_or_writes_the_topic_is_no_client_of_the_group(evidence: str) -> None:
    assert named(evidence) == {}


def test_a_client_gets_the_host_that_its_requests_come_from() -> None:
    assert named("ac", client_id="app") == {"client_id": "app", "host": "h1"}
    assert named("ac", clients=["app", "tool", "other"]) == {"clients": ["app at h1", "tool at h3", "other"]}
    assert named("c", group=None, subject="t-0/tool") == {"hosts": ["h3"]}
    assert named("c", group=None, subject="tool") == {"hosts": ["h3"]}


@pytest.mark.parametrize(
    "details",
    [{"client_id": "app"}, {"client_id": "x"}, {"clients": ["app"]}, {"client_id": "tool", "host": "known"}],
)
def test_what_is_known_stays_and_of_two_hosts_none_is_taken(details: dict[str, Any]) -> None:
    assert named("abc", **details) == details


def test_a_part_of_a_name_is_not_the_client() -> None:
    assert named("c", group=None, subject="t-0/my-tool") == {}
