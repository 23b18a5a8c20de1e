"""The partitions that a body lists, found again in the other body of the same exchange."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from decoder.columns import Bools, Ints
from decoder.fields import LARGEST_INT32
from decoder.kernel.leaves import Rows
from pipeline.analysis.columns.nullable import Numbers, text_array, truths
from pipeline.analysis.columns.numbering import codes, numbered

_PARTITION_BITS = 31


def numbers(rows: Rows, name: str) -> Numbers:
    """A leaf that is a number."""
    return Numbers(*rows.integer(name))


def flags(rows: Rows, name: str) -> Numbers:
    """A leaf that is true or false."""
    values, known = rows.flag(name)
    return Numbers(values.astype(np.int64), known)


@dataclass(frozen=True, slots=True)
class Listed:
    """Partitions, of those rows that name one.

    Attributes:
        rows: their numbers in their level.
        exchanges: number of the exchange.
        topics: number of the topic in :class:`Topics`.
        partitions: indices.
        keys: the same number for the same partition of the same exchange.
    """

    rows: Ints
    exchanges: Ints
    topics: Ints
    partitions: Ints
    keys: Ints


class Topics:
    """The topics that several levels list, by name and id.

    Args:
        levels: of each its rows, and the leaves that hold name and id.

    Attributes:
        names, ids: of each topic, one level after the other.
    """

    def __init__(self, *levels: tuple[Rows, str, str]) -> None:
        self.names = pa.concat_arrays([text_array(rows.text(name)) for rows, name, _ in levels])
        self.ids = pa.concat_arrays([text_array(rows.text(id_)) for rows, _, id_ in levels])
        self._exchanges = np.concatenate([rows.parents for rows, _, _ in levels])
        self._begins = np.cumsum([0, *(len(rows) for rows, _, _ in levels)])
        self._numbers = numbered(self._exchanges, codes(self.names), codes(self.ids))
        self._is_named: Bools = ~(_is_null(self.names) & _is_null(self.ids))

    def listed(self, level: int, rows: Rows, index: str) -> Listed:
        """The partitions of a level's topics, whose indices ``rows`` hold; those without topic or index left out."""
        partitions = numbers(rows, index)
        topics = rows.parents + self._begins[level]
        is_one = partitions.known & (partitions.values >= 0) & (partitions.values <= LARGEST_INT32)
        found = np.flatnonzero(is_one & self._is_named[topics] if len(topics) else is_one)
        topics, indices = topics[found], partitions.values[found]
        keys = (self._numbers[topics] << _PARTITION_BITS) | indices
        return Listed(found, self._exchanges[topics], topics, indices, keys)


def found_in(wanted: Listed, others: Listed) -> Ints:
    """Of each partition the place in ``others`` that is the same, -1 without one; each is in there once at most."""
    if not len(others.keys):
        return np.full(len(wanted.keys), -1, np.int64)
    order = np.argsort(others.keys, kind="stable")
    keys = others.keys[order]
    places = np.minimum(np.searchsorted(keys, wanted.keys), len(keys) - 1)
    return np.where(keys[places] == wanted.keys, order[places], -1)


def repeated(*some: Listed) -> Ints:
    """Numbers of exchanges whose body lists a partition twice."""
    found = []
    for listed in some:
        order = np.argsort(listed.keys, kind="stable")
        keys = listed.keys[order]
        found.append(listed.exchanges[order[1:][keys[1:] == keys[:-1]]])
    return np.unique(np.concatenate(found))


def _is_null(values: pa.Array) -> Bools:
    return truths(values.is_null())
