"""Symptoms in exchanges of Kafka, and which bodies rules look into.

Only exchanges that can hold a symptom are parsed; the others are ruled out by columns and a search in their text.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.columns import Ints
from decoder.fields import parsed
from decoder.kafka.apis import ApiKey
from pipeline.analysis.columns.nullable import Numbers, whole_array
from pipeline.analysis.columns.numbering import with_places
from pipeline.analysis.fit import fit
from pipeline.analysis.rules.episode import Shown
from pipeline.analysis.rules.kafka.processes.instance_id_shared import STATES_ONE
from pipeline.analysis.rules.kafka.refusals import NAMING
from pipeline.analysis.rules.kafka.share_groups.share_states import SHARE_APIS
from pipeline.analysis.rules.kafka.symptoms import (
    SLOW_BY_DESIGN,
    Exchange,
    symptoms,
)
from pipeline.analysis.rules.kafka.thresholds import SLOW_SECONDS
from pipeline.analysis.rules.thresholds import RuleThresholds, Seconds
from pipeline.analysis.tables import ADDRESS, IS_CONNECTION, SERVICE_US, Row, Tables, numbers
from pipeline.lake.arrow import int_values, plain_texts
from pipeline.tables import EXCHANGES_WITH_BODIES


class SymptomThresholds(RuleThresholds):
    """The latency that is a symptom."""

    slow_seconds: Seconds = SLOW_SECONDS


_SMALL_METADATA = 4_000
"""Characters of a Metadata answer that may be of a cluster with few brokers: how many it lists is asked for."""


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
"""As SQL, with ``$slow_us``: which Kafka exchanges may show a symptom. The bodies of no other are looked at."""


_COMES_OR_GOES = f"""
    (api_key = {ApiKey.LEAVE_GROUP}
        OR (api_key = {ApiKey.CONSUMER_GROUP_HEARTBEAT} AND regexp_matches(request_body, '"memberEpoch":(0|-)')))
"""


_BODIES_ASKED = f"""protocol = 'kafka' AND (
    api_key IN {numbers(ApiKey.API_VERSIONS, ApiKey.STREAMS_GROUP_HEARTBEAT, *SHARE_APIS)}
    OR (api_key = {ApiKey.METADATA} AND length(response_body) <= {_SMALL_METADATA})
    OR {_COMES_OR_GOES} OR {MAY_SHOW_ONE})
"""


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


_HELLO_BYTES = 4_000
"""Within this many characters a reply to hello names the members."""


_HALVES_ASKED = {
    "request": f"protocol = 'kafka' AND (api_key IN {numbers(*NAMING)} OR {STATES_ONE})",
    "response": f"""protocol = 'mongodb' AND (
        contains(response_body, 'RetryAfterMs') OR contains(response_body[:{_HELLO_BYTES}], '"hosts":[')
    )""",
}
"""By half, which bodies rules look into besides: in an accepted request for the group, instance or transactional id."""


def without_bodies(exchanges: pa.Table, settings: SymptomThresholds) -> pa.Table:
    """Exchanges without the bodies that no rule looks into: an empty object stands for each, where there was one.

    Args:
        exchanges: with their bodies; texts may point to others (:func:`pipeline.lake.arrow.pointing_to`).
        settings: the latency that is a symptom.
    """
    names = [f"{half}_{part}" for half in _HALVES_ASKED for part in ("body", "embedded", "header")]
    less = {name: pa.nulls(exchanges.num_rows, pa.string()) for name in names}
    tables = Tables({"exchanges": with_places(exchanges)})
    try:
        both = _places(tables, _BODIES_ASKED, slow_us=int(settings.slow_seconds * 1_000_000))
        for half, asked in _HALVES_ASKED.items():
            less[f"{half}_body"] = _only(exchanges.column(f"{half}_body"), both, _places(tables, asked))
    finally:
        tables.close()
    for name, texts in less.items():
        exchanges = exchanges.set_column(exchanges.schema.get_field_index(name), name, texts)
    return fit(exchanges, EXCHANGES_WITH_BODIES)


def _places(tables: Tables, asked: str, **parameters: object) -> Ints:
    found: Ints = int_values(whole_array(tables.table(f"SELECT place FROM exchanges WHERE {asked}", **parameters)[0]))
    return found


def _only(bodies: pa.ChunkedArray, *places: Ints) -> pa.Array:
    """Bodies at some places; of the others an empty object."""
    texts = whole_array(pc.if_else(bodies.is_valid(), "{}", None).cast(pa.string()))
    is_kept = np.zeros(len(texts), np.bool_)
    is_kept[np.concatenate(places)] = True
    kept = Numbers.all_known(is_kept).arrow(pa.bool_())
    return pc.replace_with_mask(texts, kept, whole_array(plain_texts(bodies.filter(kept))))


def _exchange(row: Row) -> Exchange:
    request, response = parsed(row.request_body), parsed(row.response_body)
    key = row.api_key
    return Exchange(
        -1 if key is None else key, row.api_name or f"api {key}", row.api_version, row.client_id, row.server,
        row.status, row.request_status, row.service_us, tuple(row.error_codes or ()), request, response,
    )  # fmt: skip
