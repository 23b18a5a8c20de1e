"""Which bodies rules read is what their queries ask for, of recordings and of each case alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from decoder.kafka.apis import ApiKey
from pipeline.analysis.columns.numbering import with_places
from pipeline.analysis.pairing import completed, exchanges
from pipeline.analysis.rules.bodies_read import are_read, may_be_read_sql, with_empty_bodies, without_bodies
from pipeline.analysis.rules.kafka.api_groups import NAMING_INSTANCES, NAMING_THINGS, SHARE_APIS
from pipeline.analysis.rules.kafka.exchange_symptoms import MAY_SHOW_ONE
from pipeline.analysis.rules.settings import finding_settings
from pipeline.analysis.tables import Tables, numbers
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import EXCHANGES, EXCHANGES_WITH_BODIES
from tests.paths import CAPTURES
from tests.pipeline.rows import arrow, row

SETTINGS = StreamSettings()
RECORDINGS = (
    "stuck_commit.pcap", "version_negotiation.pcap", "old_format.pcap", "incidents/refused.pcap", "mongodb/plain.pcap",
)  # fmt: skip
_WITHIN_KAFKA = (
    ApiKey.API_VERSIONS, ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.JOIN_GROUP,
    ApiKey.INIT_PRODUCER_ID, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.SASL_HANDSHAKE, *SHARE_APIS,
    *NAMING_THINGS,
)  # fmt: skip
_NEVER = 2**62
"""A service that nothing takes, µs: slow exchanges are known by their columns."""
ASKED = f"""
    (protocol = 'kafka' AND (
        api_key IN {numbers(*_WITHIN_KAFKA)}
        OR (api_key = {ApiKey.METADATA} AND length(response_body) <= 4000)
        OR (api_key = {ApiKey.CONSUMER_GROUP_HEARTBEAT} AND regexp_matches(request_body, '"memberEpoch":(0|-)'))
        OR {MAY_SHOW_ONE}
        OR (api_key IN {numbers(*NAMING_INSTANCES)} AND contains(request_body, 'nstanceId":"'))
    )) OR (protocol = 'mongodb' AND (
        contains(response_body, 'RetryAfterMs') OR contains(response_body[:4000], '"hosts":[')
    ))
"""
"""The same in SQL, which looks into all bodies: of symptoms that of the rules themselves."""


def _asked(rows: pa.Table) -> list[bool]:
    tables = Tables({"exchanges": with_places(rows)})
    found = [
        one.is_asked
        for one in tables.rows(
            f"SELECT coalesce({ASKED}, false) AS is_asked FROM exchanges ORDER BY place", slow_us=_NEVER
        )
    ]
    tables.close()
    return found


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings(name: str) -> None:
    frames = decoded(read_inputs([str(CAPTURES / name)]).frames)
    rows = completed(exchanges(frames, SETTINGS.response_timeout, SETTINGS.abandon_timeout))
    asked = _asked(rows)
    assert rows.column("rules_read_bodies").to_pylist() == asked
    assert are_read(rows).tolist() == asked
    assert 0 < sum(asked) < len(asked) or name.startswith("mongodb")


def _one(**values: Any) -> pa.Table:
    whole = {"protocol": "kafka", "status": "paired", "error_codes": [], "request_body": "{}", "response_body": "{}"}
    return arrow(EXCHANGES_WITH_BODIES, [row(EXCHANGES_WITH_BODIES, **whole | values)])


@pytest.mark.parametrize(
    ("values", "is_read"),
    [
        ({"api_key": 1}, False),
        ({"api_key": None}, False),
        ({"api_key": 1, "request_body": '{"sessionEpoch":0}'}, True),
        ({"api_key": 1, "request_body": '{"sessionEpoch":10}'}, False),
        ({"api_key": 1, "response_body": '{"throttleTimeMs":0,"x":1}'}, False),
        ({"api_key": 1, "response_body": '{"x":1,"throttleTimeMs":0,"y":1}'}, False),
        ({"api_key": 1, "response_body": '{"x":1,"throttleTimeMs":7,"y":1}'}, True),
        ({"api_key": 0, "response_body": None}, True),
        ({"api_key": 8, "error_codes": [25]}, True),
        ({"api_key": 8, "error_codes": None}, False),
        ({"api_key": 8, "request_body": '{"groupInstanceId":"a"}'}, True),
        ({"api_key": 8, "request_body": '{"groupInstanceId":null}'}, False),
        ({"api_key": 3, "response_body": "x" * 4000}, True),
        ({"api_key": 3, "response_body": "x" * 4001}, False),
        ({"api_key": 68, "request_body": '{"memberEpoch":-1}'}, True),
        ({"api_key": 68, "request_body": '{"memberEpoch":4}'}, False),
        ({"api_key": 68, "response_body": '{"assignment":{"a":1}}'}, True),
        ({"protocol": "mongodb", "response_body": '{"hosts":["a"]}'}, True),
        ({"protocol": "mongodb", "response_body": "x" * 4000 + '{"hosts":["a"]}'}, False),
        ({"protocol": "mongodb", "status": "unanswered", "response_body": None}, False),
        ({"protocol": "resp", "error_codes": [1]}, False),
    ],
)
def test_each_case(values: dict[str, Any], is_read: bool) -> None:
    rows = _one(**values)
    assert are_read(rows).tolist() == [is_read] == _asked(rows)


@pytest.mark.parametrize(
    ("values", "is_kept"),
    [
        ({"api_key": 1, "rules_read_bodies": False, "latency_us": 60_000_000}, True),
        ({"api_key": 1, "rules_read_bodies": False, "latency_us": 60_000_000, "response_flags": 4}, False),
        ({"api_key": 1, "rules_read_bodies": False, "latency_us": 60_000_000, "service_us": 5}, False),
        ({"api_key": 11, "rules_read_bodies": False, "latency_us": 60_000_000}, False),
        ({"api_key": None, "rules_read_bodies": False, "latency_us": 60_000_000}, False),
        ({"protocol": "mongodb", "api_key": 1, "rules_read_bodies": False, "latency_us": 60_000_000}, False),
        ({"api_key": 1, "rules_read_bodies": False, "latency_us": 5}, False),
        ({"api_key": 1, "rules_read_bodies": False}, False),
        ({"api_key": 18, "rules_read_bodies": None}, True),
        ({"api_key": 18, "rules_read_bodies": True}, True),
    ],
)
def test_slow_ones_and_those_of_earlier_releases_are_looked_at(values: dict[str, Any], is_kept: bool) -> None:
    rows = _one(**values, request_body='{"a":1}')
    (kept,) = without_bodies(rows, finding_settings()).to_pylist()
    assert kept["request_body"] == ('{"a":1}' if is_kept else "{}")
    tables = Tables({"exchanges": rows})
    asked = may_be_read_sql(finding_settings())
    assert tables.any(f"FROM exchanges WHERE {asked}") is is_kept
    assert tables.any(f"FROM exchanges WHERE NOT {asked}") is not is_kept
    tables.close()


def test_an_exchange_of_the_lake_has_an_empty_object_for_each_body() -> None:
    whole = row(EXCHANGES, protocol="kafka", status="unanswered", request_status="ok", rules_read_bodies=False)
    (found,) = with_empty_bodies(arrow(EXCHANGES, [whole])).to_pylist()
    assert (found["request_body"], found["response_body"], found["request_embedded"]) == ("{}", None, None)
