"""Partitions whose log may have become shorter, by arrays: windows of SQL take more than twice as long."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from decoder.columns import Bools, Ints
from pipeline.analysis.columns.nullable import Numbers, truths, whole_array
from pipeline.analysis.tables import Tables


def shorter(tables: Tables, asked: str) -> pa.Table:
    """Cluster, topic and partition, each once, in this order.

    A batch is below what had been acknowledged when it was sent, or a watermark of a broker below what that had
    stated before it was asked. What is stated many times counts as an end when it is answered first, and as a question
    when it is asked last.

    Args:
        tables: what ``asked`` reads.
        asked: a query that gives what states the end of a log: ``cluster``, ``topic``, ``partition``, ``kind``,
            ``whose`` (whose watermarks never fall), ``base`` and ``ended`` (offsets), and when it was asked and
            answered (``asked_us`` and ``us``, µs since the epoch).
    """
    stated = tables.table(f"""
        SELECT cluster, topic, partition, kind = 'produced' AS is_write,
            CASE kind WHEN 'produced' THEN '' ELSE whose END AS whose, ended,
            CASE kind WHEN 'produced' THEN base ELSE ended END AS base, min(us) AS us, max(asked_us) AS asked_us,
            (hash(cluster, topic, partition) >> 1)::BIGINT AS place,
            (hash(cluster, topic, partition, whose) >> 1)::BIGINT AS own
        FROM ({asked}) GROUP BY ALL
    """)
    place, own, ended, base, us, asked_us = (
        Numbers.of(stated.column(name)).values for name in ("place", "own", "ended", "base", "us", "asked_us")
    )
    is_write = truths(whole_array(stated.column("is_write")))
    is_below = np.zeros(len(is_write), bool)
    is_below[is_write] = below(place, us, ended, place[is_write], asked_us[is_write], base[is_write])
    others = ~is_write
    is_below[others] = below(
        own[others], us[others], ended[others], own[others], asked_us[others], base[others]
    )  # fmt: skip
    found = stated.select(["cluster", "topic", "partition"]).filter(Numbers.all_known(is_below).arrow(pa.bool_()))
    return (
        found.group_by(found.column_names).aggregate([]).sort_by([(name, "ascending") for name in found.column_names])
    )


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
