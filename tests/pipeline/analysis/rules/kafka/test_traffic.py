"""Which versions do brokers offer? From answers to ApiVersions, whole ones and others."""

from __future__ import annotations

import json

import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.rules.kafka.clients.traffic import newest_versions
from pipeline.tables import EXCHANGES_WITH_BODIES
from tests.pipeline.analysis.sources import tables
from tests.pipeline.rows import row


def offered(*answers: object) -> dict[int, int]:
    exchanges = [
        row(EXCHANGES_WITH_BODIES, api_key=18, server_ip="10.0.0.1", server_port=9092, exchange_id=f"e{number}",
            response_body=json.dumps(answer, separators=(",", ":")))
        for number, answer in enumerate(answers)
    ]  # fmt: skip
    (versions,) = newest_versions(tables(exchanges=exchanges), ClusterCatalog()).values()
    return versions


def test_the_newest_version_that_a_broker_offers_is_known() -> None:
    produce = {"apiKey": 0, "minVersion": 3, "maxVersion": 11}
    assert offered({"apiKeys": [produce]}, {"apiKeys": [{**produce, "maxVersion": 12}]}) == {0: 12}


@pytest.mark.parametrize(
    "cut", [{"apiKey": 1}, {"apiKey": 1, "minVersion": 4}, {"apiKey": [], "maxVersion": 4}, 7, None]
)
def test_an_api_whose_end_was_cut_off_is_not_known_and_those_before_it_are(cut: object) -> None:
    assert offered({"errorCode": 0, "apiKeys": [{"apiKey": 0, "minVersion": 3, "maxVersion": 11}, cut]}) == {0: 11}
