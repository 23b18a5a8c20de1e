"""Does the table of releases hold what their brokers do? Each fact from Kafka's own list, or its issues."""

from __future__ import annotations

import pytest

from decoder.kafka.schema import table
from decoder.kafka.schema.build import RELEASES, SOURCES
from decoder.kafka.schema.releases import first_version, is_answered, is_removed, refused_by, releases

IN_KAFKA_4 = [release for release in RELEASES if release.startswith("4")]


def test_releases_are_those_that_the_table_is_built_of_oldest_first():
    assert tuple(releases()) == RELEASES
    assert list(releases())[-1] == SOURCES[0]


def test_the_newest_and_the_oldest_answer_what_the_schemas_define():
    for api_key, (low, high) in table.api_versions().items():
        known = {v for release in SOURCES for v in range(low, high + 1) if is_answered(api_key, v, release)}
        assert known == set(range(low, high + 1))


@pytest.mark.parametrize(
    ("api_key", "version", "refusing"),
    [
        (1, 3, IN_KAFKA_4),  # Fetch: KIP-896
        (1, 4, []),
        (11, 0, ["4.0.0"]),  # JoinGroup: KAFKA-19444
        (11, 1, ["4.0.0"]),
        (11, 2, []),
        (4, 7, IN_KAFKA_4),  # LeaderAndIsr went with ZooKeeper
        (18, 0, []),
        (1, 99, []),  # nobody ever answered it
        (999, 0, []),
        (1, None, []),
    ],
)
def test_who_refuses_what_was_answered_before(api_key, version, refusing):
    assert refused_by(api_key, version) == refusing


@pytest.mark.parametrize(
    ("api_key", "version", "expected"),
    [
        (0, 2, True),
        (0, 3, False),
        (11, 0, False),  # an upgrade to 4.0.1 or later does not break it
        (4, 7, False),  # a controller sends it, and is upgraded itself
        (27, 0, False),
        (56, 0, False),
        (1, None, False),
    ],
)
def test_which_requests_of_clients_break_on_the_newest_release(api_key, version, expected):
    assert is_removed(api_key, version) is expected


def test_where_clients_must_begin():
    assert (first_version(1), first_version(11), first_version(999)) == (4, 0, 0)
