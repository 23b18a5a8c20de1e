"""Whom does which release of Kafka 4 cut off? On traffic made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.rules.episode import Shown
from pipeline.analysis.rules.episodes import collect_episodes
from pipeline.analysis.rules.kafka.clients.kip896_incompatible_client import Kip896IncompatibleClient
from pipeline.analysis.rules.kafka.clients.traffic import Traffic
from pipeline.analysis.rules.kafka.symptoms import MECHANISM
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import STATE_EVENTS
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import row

SETTINGS = finding_settings()
AFTER_4_0_0 = ["4.0.0"]


def used(api_key: int, api: str, version: int, client: str = "app") -> Traffic:
    return Traffic("C", "b:1", client, "10.0.0.1", api_key, api, version, 3, 0, 9, 9, 500, f"e{api_key}")


ASKS = used(18, "ApiVersions", 3)
NEWEST = {"C": {0: 12, 1: 17, 11: 9, 17: 1}}


def found(
    traffic: Sequence[Traffic], software: tuple[str, str] = ("x", "1"), mechanism: str = "PLAIN"
) -> list[Finding]:
    stated = {"kind": "software", "client_id": "app", "client": "10.0.0.1:5", "software_name": software[0]}
    states = [row(STATE_EVENTS, **stated, software_version=software[1])]
    login = Shown("b:1", "app", "10.0.0.1", 0, "e", MECHANISM, "app", mechanism, None, None, None, 0.0)
    episodes = {MECHANISM: collect_episodes([login], ClusterCatalog(), SETTINGS)}
    made = replace(sources(states=states), traffic=[ASKS, *traffic], newest=NEWEST, episodes=episodes)
    return list(Kip896IncompatibleClient.detect(made, SETTINGS))


def test_what_all_of_kafka_4_refuses_is_a_warning() -> None:
    (one,) = found([used(0, "Produce", 2), used(11, "JoinGroup", 1)])
    assert (one.severity, one.subject) == ("warning", "app")
    refused = one.details["refused_by"]
    assert isinstance(refused, dict)
    assert refused["JoinGroup v1"] == AFTER_4_0_0
    assert refused["Produce v2"][:2] == ["4.0.0", "4.0.1"]
    assert "which Kafka 4 no longer answers" in one.summary


def test_what_4_0_0_alone_refuses_is_told_as_that() -> None:
    (one,) = found([used(11, "JoinGroup", 0)])
    assert (one.severity, one.details["refused_by"]) == ("info", {"JoinGroup v0": AFTER_4_0_0})
    assert "which Kafka 4.0.0 alone does not answer" in one.summary
    assert "4.0.1 or later" in one.advice


@pytest.mark.parametrize(
    ("api_key", "api", "version"), [(0, "Produce", 3), (11, "JoinGroup", 2), (27, "WriteTxnMarkers", 0)]
)
def test_what_every_release_answers_and_what_brokers_send_is_none(api_key: int, api: str, version: int) -> None:
    assert found([used(api_key, api, version)]) == []


def test_who_asked_an_old_broker_may_know_better() -> None:
    made = replace(sources(), traffic=[ASKS, used(0, "Produce", 2)], newest={"C": {0: 2}})
    assert list(Kip896IncompatibleClient.detect(made, SETTINGS)) == []


LOGIN = used(17, "SaslHandshake", 1)


@pytest.mark.parametrize(
    ("software", "mechanism", "is_found"),
    [
        (("librdkafka", "2.10.1"), "GSSAPI", True),
        (("confluent-kafka-python", "2.2.0-rdkafka-2.2.0"), "GSSAPI", True),
        (("librdkafka", "2.11.0"), "GSSAPI", False),
        (("librdkafka", "2.10.1"), "PLAIN", False),
        (("apache-kafka-java", "2.1.0"), "GSSAPI", False),
    ],
)
def test_kerberos_of_an_old_librdkafka_needs_join_group_v0(
    software: tuple[str, str], mechanism: str, is_found: bool
) -> None:
    findings = found([LOGIN], software, mechanism)
    assert [(f.severity, f.details["refused_by"]) for f in findings] == (
        [("info", {"Kerberos with librdkafka before 2.11": AFTER_4_0_0})] if is_found else []
    )
