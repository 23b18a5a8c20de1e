"""What lanes count of a connection (pipeline.capture.tcp.life.Life), as a row of numbers."""

from __future__ import annotations

from pipeline.capture.fast_path.lane_kernel import (
    AGAIN,
    AGAIN_FROM,
    AGAIN_UNTIL,
    COUNTED,
    LATEST,
    PACKETS,
    PROBES,
    SENT,
    SILENCE,
    SILENT_UNTIL,
    SPOKE,
    STALLED,
    STALLED_SINCE,
    ZERO_FROM,
    ZEROS,
)
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.life import Life


def begin_counts(connection: Connection, flip: int) -> list[int]:
    """The row of a connection that enters a lane; ``flip``: 1 if its direction 0 is that of the flow's higher end."""
    counts = [0] * COUNTED
    counts[SILENCE], counts[LATEST] = connection.life.silence[0], connection.last_ts
    for way, since in enumerate(connection.life.stalled_since):
        counts[STALLED_SINCE + (way ^ flip)] = since or 0
    return counts


def end_counts(life: Life, counts: list[int], flip: int) -> None:
    """Add the row of a connection that leaves its lane to what was counted before."""
    if counts[SILENT_UNTIL]:
        life.silence = counts[SILENCE], counts[SILENT_UNTIL]
    for way, side in ((0, flip), (1, 1 - flip)):
        if counts[AGAIN + side]:
            life.note_again(way, counts[AGAIN + side], counts[AGAIN_FROM + side], counts[AGAIN_UNTIL + side])
        life.probes[way] += counts[PROBES + side]
        life.zero_windows[way] += counts[ZEROS + side]
        if counts[ZEROS + side]:
            life.note_zero(way, counts[ZERO_FROM + side])
        life.stalled_us[way] += counts[STALLED + side]
        life.stalled_since[way] = counts[STALLED_SINCE + side] or None
        life.pass_by(way, counts[PACKETS + side], counts[SENT + side], counts[SPOKE + side] or None)
