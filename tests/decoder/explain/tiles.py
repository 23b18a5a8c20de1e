"""Whether the rows of an explanation account for every byte, once."""

from __future__ import annotations

from collections.abc import Sequence

from decoder.explain.explanation import Line

_CONTAINERS = ("array", "struct", "message", "records", "bytes", "document", "scoped code")
_TERMINATED = ("array", "document", "scoped code")
"""BSON ends with a zero."""


def assert_tiles(lines: Sequence[Line], until: int) -> None:
    """The rows without others inside tile the bytes below ``until``, but for the length in front of each container."""
    rows = [line for line in lines if not line.is_error]
    open_rows: list[Line] = []
    containers, leaves = [], [Line(0, 0, 0, "", "", "", "")]
    for index, row in enumerate(rows):
        while open_rows and open_rows[-1].end <= row.start:
            open_rows.pop()
        assert not open_rows or row.end <= open_rows[-1].end, (open_rows[-1], row)
        if index + 1 < len(rows) and rows[index + 1].start < row.end:
            assert row.type.endswith(_CONTAINERS), row
            open_rows.append(row)
            containers.append(row)
        elif row.end > row.start:
            leaves.append(row)
    starts = {row.start for row in containers}
    ends = {row.end - 1 for row in containers if row.type in _TERMINATED}
    for before, after in zip(leaves, [*leaves[1:], Line(until, until, 0, "", "", "", "")], strict=True):
        at = before.end
        assert at <= after.start or after.start == until, (before, after)
        while at in ends and at < after.start:
            at += 1
        assert at >= after.start or at in starts, (before, after)
