"""The number under which ``wirelake explain`` shows the request of an exchange, by a capture's landed frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.columns import Ints
from pipeline.analysis.columns.nullable import Numbers, truths, whole_array
from pipeline.lake.arrow import arrow_array

PLACE_COLUMNS = ("exchange_id", "direction", "ts")
"""Columns of ``bronze.frames`` that say where in its capture a frame is."""


def frame_numbers(frames: pa.Table, exchange_ids: Collection[str]) -> Mapping[str, int]:
    """By exchange the number of its request among all messages of one capture, in the order of time.

    Of messages with the same time the order is not known: their exchanges are left out.

    Args:
        frames: ``PLACE_COLUMNS`` of all frames of one capture.
        exchange_ids: those that are asked for.
    """
    if not exchange_ids or not frames.num_rows:
        return {}
    ids = whole_array(frames.column("exchange_id")).dictionary_encode()
    exchanges = Numbers.of(ids.indices)
    requests = np.flatnonzero(truths(pc.equal(frames.column("direction"), "request")))
    places = _places(Numbers.of(frames.column("ts")).values, exchanges, requests)
    is_wanted = truths(pc.is_in(ids.dictionary, arrow_array(sorted(exchange_ids), pa.string())))
    asked = requests[exchanges.known[requests]]
    asked = asked[is_wanted[exchanges.values[asked]]]
    ordered = np.sort(places)
    before = np.searchsorted(ordered, places[asked])
    is_alone = np.searchsorted(ordered, places[asked], side="right") - before == 1
    found: dict[str, int] = {}
    for row, number in zip(asked[is_alone], before[is_alone] + 1, strict=True):
        exchange_id = ids.dictionary[int(exchanges.values[row])].as_py()
        found[exchange_id] = min(int(number), found.get(exchange_id, int(number)))
    return found


def _places(times: Ints, exchanges: Numbers, requests: Ints) -> Ints:
    """By frame the time (µs) by which it is shown: a response is never shown before its request."""
    known = requests[exchanges.known[requests]]
    known = known[np.argsort(times[known], kind="stable")]
    asked_at = np.full(int(exchanges.values.max()) + 1, np.iinfo(np.int64).min)
    asked_at[exchanges.values[known]] = times[known]  # the last one counts
    is_answer = exchanges.known.copy()
    is_answer[requests] = False
    return np.where(is_answer, np.maximum(times, asked_at[exchanges.values]), times)
