"""Which bodies rules read: of most exchanges none, so that the others need not be kept, or brought from their frames.

Columns decide first; texts are searched only where columns leave it open. What queries of rules look for in bodies is
repeated here, since silver states it before any rule runs (:mod:`pipeline.analysis.rules.kafka.exchange_symptoms`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.columns import Bools, Ints
from decoder.kafka.apis import ApiKey
from decoder.model import FrameFlags
from pipeline.analysis.bodies import with_texts
from pipeline.analysis.columns.nullable import Numbers, truths, whole_array
from pipeline.analysis.fit import fit
from pipeline.analysis.rules.kafka.api_groups import NAMING_INSTANCES, NAMING_THINGS, SHARE_APIS, SLOW_BY_DESIGN
from pipeline.analysis.tables import SERVICE_US
from pipeline.lake.arrow import plain_texts
from pipeline.tables import EXCHANGES_WITH_BODIES

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.exchange_symptoms import SymptomThresholds

_ALWAYS = frozenset(
    {
        ApiKey.API_VERSIONS, ApiKey.STREAMS_GROUP_HEARTBEAT, *SHARE_APIS, ApiKey.JOIN_GROUP, ApiKey.INIT_PRODUCER_ID,
        ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.SASL_HANDSHAKE, ApiKey.LEAVE_GROUP,
    }
)  # fmt: skip
"""Rare requests whose bodies, and those of their responses, are read whatever they hold."""
_SMALL_METADATA = 4_000
"""Characters of a Metadata response that may be of a cluster with few brokers: how many it lists is asked for."""
_HELLO = 4_000
"""Within this many characters a reply to hello names the members."""
_HALVES = ("request", "response")
MARK = "rules_read_bodies"
"""The column of exchanges that states it."""


def may_be_read_sql(settings: SymptomThresholds) -> str:
    """Whether the bodies of an exchange of the lake are to be looked at, by its columns alone, as SQL.

    ``rules_read_bodies`` states it, but for slow exchanges; rows of earlier releases state nothing.
    """
    slow_us = int(settings.slow_seconds * 1_000_000)
    is_slow = f"protocol = 'kafka' AND {SERVICE_US} >= {slow_us} AND api_key NOT IN {SLOW_BY_DESIGN}"
    return f"(coalesce({MARK}, true) OR coalesce({is_slow}, false))"


def are_read(exchanges: pa.Table) -> Bools:
    """Exchanges with a body that rules read, whatever the thresholds are; those that are slow come to them.

    Args:
        exchanges: with their bodies; texts may point to others (:func:`pipeline.lake.arrow.pointing_to`).
    """
    both, one = _read(exchanges)
    return both | one["request"] | one["response"]


def without_bodies(exchanges: pa.Table, settings: SymptomThresholds) -> pa.Table:
    """Exchanges without the bodies that no rule reads: an empty object stands for each, where there was one.

    Args:
        exchanges: with their bodies; texts may point to others (:func:`pipeline.lake.arrow.pointing_to`).
        settings: the latency that is a symptom.
    """
    is_slow = _are_slow(exchanges, settings)
    may_be = truths(pc.fill_null(exchanges.column(MARK), True)) | is_slow
    some = np.flatnonzero(may_be)
    both, one = _read(exchanges.filter(Numbers.all_known(may_be).arrow(pa.bool_())))
    both |= is_slow[some]
    bodies = {f"{half}_body": _only(exchanges.column(f"{half}_body"), some[both | one[half]]) for half in _HALVES}
    nothing = pa.nulls(exchanges.num_rows, pa.string())
    others = {f"{half}_{part}": nothing for half in _HALVES for part in ("embedded", "header")}
    return fit(with_texts(exchanges, {**bodies, **others}), EXCHANGES_WITH_BODIES)


def with_empty_bodies(exchanges: pa.Table) -> pa.Table:
    """Exchanges of the lake whose bodies no rule reads, as :func:`without_bodies` gives them."""
    for half in _HALVES:
        is_there = pc.equal(exchanges.column(f"{half}_status"), "ok")
        exchanges = exchanges.append_column(f"{half}_body", pc.if_else(is_there, "{}", pa.scalar(None, pa.string())))
    return fit(exchanges, EXCHANGES_WITH_BODIES)


def _read(exchanges: pa.Table) -> tuple[Bools, dict[str, Bools]]:
    """Where both bodies are read, and by half where at least that one is."""
    protocol = exchanges.column("protocol")
    is_kafka, is_mongodb = (truths(pc.equal(protocol, name)) for name in ("kafka", "mongodb"))
    api = Numbers.of(exchanges.column("api_key"))
    both = is_kafka & (_of(api, _ALWAYS) | _are_odd(exchanges))
    both |= is_kafka & api.equal(ApiKey.PRODUCE) & truths(pc.is_null(exchanges.column("response_body")))
    both |= _hold(exchanges, "response", is_kafka & ~_are_unthrottled(exchanges.column("response_body")), _is_throttled)
    for key, half, holds in _BY_TEXT:
        both |= _hold(exchanges, half, is_kafka & api.equal(key), holds)
    names_instance = _hold(exchanges, "request", is_kafka & _of(api, NAMING_INSTANCES), _names_instance)
    return both, {
        "request": is_kafka & (_of(api, NAMING_THINGS) | names_instance),
        "response": _hold(exchanges, "response", is_mongodb, _retries_or_greets),
    }


def _are_odd(exchanges: pa.Table) -> Bools:
    """Exchanges with an error, without one of their halves, or of an api or version that Kafka does not have."""
    errors = pc.list_value_length(exchanges.column("error_codes"))
    unknown = pc.is_in(exchanges.column("request_status"), pa.array(["unknown_api", "unknown_version"]))
    found: Bools = (
        truths(pc.greater(errors, 0)) | ~truths(pc.equal(exchanges.column("status"), "paired")) | truths(unknown)
    )
    return found


def _are_slow(exchanges: pa.Table, settings: SymptomThresholds) -> Bools:
    """As :data:`pipeline.analysis.tables.SERVICE_US` has it."""
    taken = Numbers.of(exchanges.column("service_us")).or_else(Numbers.of(exchanges.column("latency_us")))
    is_behind_gap = (Numbers.of(exchanges.column("response_flags")).values & int(FrameFlags.AFTER_GAP)) != 0
    is_slow = taken.known & ~is_behind_gap & (taken.values >= int(settings.slow_seconds * 1_000_000))
    api = Numbers.of(exchanges.column("api_key"))
    is_kafka = truths(pc.equal(exchanges.column("protocol"), "kafka"))
    found: Bools = is_kafka & is_slow & api.known & ~_of(api, SLOW_BY_DESIGN)
    return found


def _of(api: Numbers, keys: Collection[int]) -> Bools:
    found: Bools = api.known & np.isin(api.values, [int(key) for key in keys])
    return found


def _hold(exchanges: pa.Table, half: str, asked: Bools, holds: Callable[[pa.Array], pa.Array]) -> Bools:
    """Of the exchanges that are asked for those whose body has something; no other body is looked at."""
    found = np.zeros(exchanges.num_rows, np.bool_)
    if asked.any():
        bodies = exchanges.column(f"{half}_body").filter(Numbers.all_known(asked).arrow(pa.bool_()))
        found[asked] = truths(holds(whole_array(plain_texts(bodies))))
    return found


def _are_unthrottled(bodies: pa.ChunkedArray) -> Bools:
    """Responses that begin or end with a throttle time of 0, as most do: of these no more is looked at."""
    found = [np.zeros(0, np.bool_)]
    for chunk in bodies.chunks:
        points = isinstance(chunk, pa.DictionaryArray)
        texts = chunk.dictionary if points else chunk
        begins_or_ends = pc.or_(pc.starts_with(texts, "{" + _UNTHROTTLED), pc.ends_with(texts, _UNTHROTTLED + "}"))
        found.append(truths(begins_or_ends.take(chunk.indices) if points else begins_or_ends))
    return np.concatenate(found)


def _is_throttled(bodies: pa.Array) -> pa.Array:
    states = pc.match_substring(bodies, _THROTTLE)
    return pc.and_(states, pc.invert(pc.match_substring(bodies, _UNTHROTTLED)))


def _is_small(bodies: pa.Array) -> pa.Array:
    return pc.less_equal(pc.utf8_length(bodies), _SMALL_METADATA)


def _names_instance(bodies: pa.Array) -> pa.Array:
    return pc.match_substring(bodies, 'nstanceId":"')


def _retries_or_greets(bodies: pa.Array) -> pa.Array:
    begins = pc.utf8_slice_codeunits(bodies, 0, _HELLO)
    return pc.or_(pc.match_substring(bodies, "RetryAfterMs"), pc.match_substring(begins, '"hosts":['))


def _only(bodies: pa.ChunkedArray, places: Ints) -> pa.Array:
    """Bodies at some places, in ascending order; of the others an empty object."""
    texts = whole_array(pc.if_else(bodies.is_valid(), "{}", None).cast(pa.string()))
    is_kept = np.zeros(len(texts), np.bool_)
    is_kept[places] = True
    kept = Numbers.all_known(is_kept).arrow(pa.bool_())
    return pc.replace_with_mask(texts, kept, whole_array(plain_texts(bodies.filter(kept))))


_THROTTLE = '"throttleTimeMs":'
_UNTHROTTLED = f"{_THROTTLE}0"
_BY_TEXT: tuple[tuple[int, str, Callable[[pa.Array], pa.Array]], ...] = (
    (ApiKey.METADATA, "response", _is_small),
    (ApiKey.FETCH, "request", lambda bodies: pc.match_substring(bodies, '"sessionEpoch":0')),
    (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        "request",
        lambda bodies: pc.match_substring_regex(bodies, '"memberEpoch":(0|-)'),
    ),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "response", lambda bodies: pc.match_substring(bodies, '"assignment":{')),
)
"""By api, where both bodies are read if one of them has something."""
