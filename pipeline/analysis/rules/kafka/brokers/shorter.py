"""Partitions whose log may have become shorter, by arrays: windows of SQL take more than twice as long.

When an end of a log was asked for is in the exchange, and few ends need that: those below an end that was answered
earlier. Many partitions are looked at in parts, so that memory has a bound.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from decoder.columns import Bools, Ints
from pipeline.analysis.columns.nullable import Numbers
from pipeline.analysis.tables import Tables

EVENTS_AT_ONCE = 1_000_000
"""Events of partitions that are looked at together, about; some 200 MB."""
ENDS = """
    SELECT cluster, topic, partition, epoch_us(ts) AS us, exchange_id, ordinal, server, kind,
        CASE WHEN kind = 'fetched' THEN server ELSE '' END AS whose, "offset" AS base,
        CASE kind WHEN 'produced' THEN next_offset WHEN 'fetched' THEN high_watermark ELSE "offset" END AS ended
    FROM events
    WHERE topic IS NOT NULL AND coalesce(error_code, 0) = 0 AND (
        (kind = 'produced' AND "offset" >= 0 AND next_offset > "offset") OR (kind = 'fetched' AND high_watermark >= 0)
        OR (kind = 'listed' AND list_timestamp = -1 AND "offset" >= 0 AND isolation_level = 'read_uncommitted')
    )
"""
"""Where logs end, as answers state it; ``whose``: whose watermarks never fall, see LogEnds."""
ASKED_US = "epoch_us(coalesce(x.request_ts, x.ts))"
"""When an exchange ``x`` was asked, as SQL, µs since the epoch."""
_PLACE = "(hash(cluster, topic, partition) >> 1)::BIGINT"
_KEYED = f"""
    SELECT *, {_PLACE} AS place,
        CASE kind WHEN 'produced' THEN -1 ELSE (hash(cluster, topic, partition, whose) >> 1)::BIGINT END AS own,
        CASE kind WHEN 'produced' THEN base ELSE ended END AS stated
    FROM ({ENDS}) WHERE {_PLACE} % $parts = $part
"""
"""``own``: what a watermark is compared with; -1 of a batch, which is compared with all ends of its partition."""
_STATED = f"""
    SELECT place, own, stated, ended, min(us) AS us, max(us) AS last_us
    FROM ({_KEYED}) GROUP BY ALL
"""
_ASKED = f"""
    SELECT place, own, stated, any_value(cluster) AS cluster, any_value(topic) AS topic,
        any_value(partition) AS partition, max({ASKED_US}) AS asked_us
    FROM ({_KEYED}) AS e SEMI JOIN doubtful USING (place, own, stated) JOIN exchanges AS x USING (exchange_id)
    GROUP BY place, own, stated
"""


def shorter(tables: Tables) -> pa.Table:
    """Cluster, topic and partition, each once, in this order.

    A batch is below what had been acknowledged when it was sent, or a watermark of a broker below what that had
    stated before it was asked. What is stated many times counts as an end when it is answered first, and as a question
    when it is asked last.

    Args:
        tables: ``events`` and ``exchanges``.
    """
    (count,) = tables.rows("SELECT count(*) AS rows FROM events")[0]
    parts = 1 + count // EVENTS_AT_ONCE
    found = pa.concat_tables(_shorter(tables, parts, part) for part in range(parts))
    return found.sort_by([(name, "ascending") for name in found.column_names])


def _shorter(tables: Tables, parts: int, part: int) -> pa.Table:
    of_part = {"parts": parts, "part": part}
    stated = tables.table(_STATED, **of_part)
    place, own, asked, ended, us, last_us = (Numbers.of(column).values for column in stated.columns)
    ends = place, own, us, ended
    # Nothing is asked after it was answered: what is not below by that time is not below.
    doubtful = _below(ends, (place, own, last_us, asked))
    keys = stated.select(["place", "own", "stated"]).filter(Numbers.all_known(doubtful).arrow(pa.bool_()))
    tables.add("doubtful", keys.group_by(keys.column_names).aggregate([]))
    questions = tables.table(_ASKED, **of_part)
    place_of, own_of, asked, asked_us = (
        Numbers.of(questions.column(name)).values for name in ("place", "own", "stated", "asked_us")
    )
    is_below = _below(ends, (place_of, own_of, asked_us, asked))
    found = questions.select(["cluster", "topic", "partition"]).filter(Numbers.all_known(is_below).arrow(pa.bool_()))
    return found.group_by(found.column_names).aggregate([])


def _below(ends: tuple[Ints, Ints, Ints, Ints], questions: tuple[Ints, Ints, Ints, Ints]) -> Bools:
    """As :func:`below`: a batch and all ends of its partition, a watermark and those of the same broker.

    Args:
        ends: of each the place, whose watermark it is (-1: a batch), when it was answered, and the offset.
        questions: of each the same, but when it was asked.
    """
    (places, owns, us, ended), (place, own, asked_us, asked) = ends, questions
    is_write, is_watermark, found = own == -1, owns != -1, np.zeros(len(own), bool)
    found[is_write] = below(places, us, ended, place[is_write], asked_us[is_write], asked[is_write])
    its, watermarks = ~is_write, (owns[is_watermark], us[is_watermark], ended[is_watermark])
    found[its] = below(*watermarks, own[its], asked_us[its], asked[its])
    return found


def below(key: Ints, us: Ints, ended: Ints, asked_key: Ints, asked_us: Ints, asked: Ints) -> Bools:
    """Whether each question states less than the furthest end of its key that was answered before it was asked.

    Args:
        key, us, ended: of each end the key, when it was answered, and the offset.
        asked_key, asked_us, asked: of each question the key, when it was asked, and the offset.
    """
    if not len(key) or not len(asked_key):
        return np.zeros(len(asked_key), bool)
    keys, at = np.concatenate([asked_key, key]), np.concatenate([asked_us, us])
    order = np.lexsort((at, keys))  # stable: questions are before the ends of their microsecond
    in_order = keys[order]
    number = np.cumsum(np.concatenate([[False], in_order[1:] != in_order[:-1]]))
    known, rank = np.unique(np.concatenate([asked, ended]), return_inverse=True)
    is_end = order >= len(asked_key)
    floor = number * len(known)
    furthest = np.maximum.accumulate(np.where(is_end, floor + rank[order], floor - 1))
    found = np.zeros(len(keys), bool)
    found[order] = ~is_end & (furthest > floor + rank[order])
    return found[: len(asked_key)]
