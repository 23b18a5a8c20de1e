"""The number under which ``wirelake explain`` shows the request of an exchange, by a capture's landed frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from pipeline.analysis.tables import Tables

PLACE_COLUMNS = ("exchange_id", "direction", "ts")
"""Columns of ``bronze.frames`` that say where in its capture a frame is."""

_NUMBERS = """
WITH shown AS (
    SELECT exchange_id, direction, greatest(epoch_us(ts), CASE WHEN direction = 'response' AND exchange_id IS NOT NULL
        THEN coalesce(max(epoch_us(ts)) FILTER (direction = 'request') OVER (PARTITION BY exchange_id), 0) ELSE 0 END
    ) AS place
    FROM frames
), numbered AS (
    SELECT exchange_id, direction, rank() OVER (ORDER BY place) AS number, count(*) OVER (PARTITION BY place) AS alike
    FROM shown
)
SELECT exchange_id, min(number) AS number FROM numbered
WHERE direction = 'request' AND alike = 1 AND exchange_id IN (SELECT unnest($wanted)) GROUP BY exchange_id
"""


def frame_numbers(frames: pa.Table, exchange_ids: Collection[str]) -> Mapping[str, int]:
    """By exchange the number of its request among all messages of one capture, in the order of time.

    Of messages with the same time the order is not known: their exchanges are left out.

    Args:
        frames: ``PLACE_COLUMNS`` of all frames of one capture.
        exchange_ids: those that are asked for.
    """
    wanted = sorted(exchange_ids)
    if not wanted:
        return {}
    tables = Tables({"frames": frames.select(PLACE_COLUMNS)})
    try:
        return {row.exchange_id: row.number for row in tables.rows(_NUMBERS, wanted=wanted)}
    finally:
        tables.close()
