"""Symptoms in exchanges of Kafka.

Only exchanges that can hold a symptom are parsed; the others are ruled out by columns and a search in their text.
"""

from __future__ import annotations

from collections.abc import Iterator

from decoder.fields import parsed
from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.episode import Shown
from pipeline.analysis.rules.kafka.api_groups import SLOW_BY_DESIGN
from pipeline.analysis.rules.kafka.symptoms import (
    Exchange,
    symptoms,
)
from pipeline.analysis.rules.kafka.thresholds import SLOW_SECONDS
from pipeline.analysis.rules.thresholds import RuleThresholds, Seconds
from pipeline.analysis.tables import ADDRESS, IS_CONNECTION, SERVICE_US, Row, Tables, numbers


class SymptomThresholds(RuleThresholds):
    """The latency that is a symptom."""

    slow_seconds: Seconds = SLOW_SECONDS


def exchange_symptoms(tables: Tables, settings: SymptomThresholds) -> Iterator[Shown]:
    """The symptoms of Kafka exchanges, in no order.

    Args:
        tables: ``exchanges``, and ``gaps``: where frames were lost, nothing follows from a missing answer.
        settings: the latency that is a symptom.
    """
    slow_us = int(settings.slow_seconds * 1_000_000)
    for row in tables.each(_CANDIDATES, slow_us=slow_us):
        for one in symptoms(_exchange(row), slow_us):
            yield Shown(
                row.server, row.client_id, row.client_ip, row.us, row.exchange_id, one.rule, one.subject, one.what,
                one.topic, one.partition, one.group_id, one.value, row.client, row.connection_id, row.api_name or "",
                row.latency_us or 0,
            )  # fmt: skip


_JOINS = numbers(
    ApiKey.JOIN_GROUP, ApiKey.INIT_PRODUCER_ID, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.SASL_HANDSHAKE
)


MAY_SHOW_ONE = f"""
        coalesce(len(error_codes), 0) > 0
        OR ({SERVICE_US} >= $slow_us AND api_key NOT IN {SLOW_BY_DESIGN})
        OR status <> 'paired' OR request_status IN ('unknown_api', 'unknown_version')
        OR (contains(response_body, '"throttleTimeMs":') AND NOT contains(response_body, '"throttleTimeMs":0'))
        OR (api_key = {ApiKey.FETCH} AND regexp_matches(request_body, '"sessionEpoch":0\\b'))
        OR (api_key = {ApiKey.PRODUCE} AND response_body IS NULL)
        OR api_key IN {_JOINS}
        OR (api_key = {ApiKey.CONSUMER_GROUP_HEARTBEAT} AND contains(response_body, '"assignment":{{'))
"""
"""As SQL, with ``$slow_us``: which Kafka exchanges may show a symptom (:mod:`pipeline.analysis.rules.bodies_read`)."""


_CANDIDATES = f"""
    WITH lossy AS (SELECT DISTINCT connection_id FROM gaps WHERE NOT {IS_CONNECTION})
    SELECT {ADDRESS["server"]} AS server, {ADDRESS["client"]} AS client, client_id, client_ip, connection_id,
        epoch_us(ts) AS us, exchange_id, api_key, api_name, api_version,
        status, request_status, latency_us, {SERVICE_US} AS service_us, error_codes, request_body, response_body
    FROM exchanges
    WHERE protocol = 'kafka' AND ({MAY_SHOW_ONE}) AND NOT (
        connection_id IN (SELECT connection_id FROM lossy) AND status IN ('unanswered', 'orphan_response')
    )
"""
"""Exchanges in which there may be a symptom."""


def _exchange(row: Row) -> Exchange:
    request, response = parsed(row.request_body), parsed(row.response_body)
    key = row.api_key
    return Exchange(
        -1 if key is None else key, row.api_name or f"api {key}", row.api_version, row.client_id, row.server,
        row.status, row.request_status, row.service_us, tuple(row.error_codes or ()), request, response,
    )  # fmt: skip
