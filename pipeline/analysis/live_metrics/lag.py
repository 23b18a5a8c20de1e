"""How far a group is behind now: from its last statement, and from a log that has continued since.

The views calculate it in SQL, ``wirelake top`` and the trends of incidents in Python; both forms are here, side by
side, and a test holds them equal. Lag counts records: transaction markers and what retention removed are none.
"""

from __future__ import annotations

LAG_SQL = """CASE
  WHEN l.{end} >= g.{end_then} AND l.{end} >= g.committed_offset
    THEN least(try_add(g.{lag}, try_subtract(l.{end}, g.{end_then})), try_subtract(l.{end}, g.committed_offset))
  WHEN l.{end} < g.committed_offset THEN 0
  ELSE try_subtract(l.{end}, g.committed_offset)
END"""
"""Lag of a group ``g`` on a log ``l``: what was added since its statement; a log that was cut is looked at again.

To be filled in: ``end`` of the log now, ``end_then`` and ``lag`` as the group's last statement has them.
"""
LAG_SECONDS_SQL = """CASE
    WHEN s.lag = 0 THEN 0
    WHEN s.lag_then > 0 THEN s.lag_seconds + (unix_micros(s.as_of) - unix_micros(s.group_seen)) / 1e6
  END"""
"""Age of the oldest record that waits, as of the last word of its cluster; null: the statement does not show it.

Of a row ``s``: the oldest record of then waits still; when the first came since, nothing shows.
"""


def lag_now(lag_then: int, high_then: int | None, committed: int | None, high: int | None) -> int:
    """Records that a group has not committed, now that the log ends at ``high``: as ``LAG_SQL``.

    Args:
        lag_then: at the group's last statement.
        high_then: where the log ended then.
        committed: what the group has committed.
        high: where the log ends now.
    """
    if high is None or high_then is None or committed is None:
        return lag_then
    if high < committed:
        return 0
    return min(lag_then + high - high_then if high >= high_then else high - committed, high - committed)


def lag_seconds_now(lag: int | None, lag_then: int | None, seconds_then: float | None, passed_us: int) -> float | None:
    """Age of the oldest record that waits: as ``LAG_SECONDS_SQL``.

    Args:
        lag: now.
        lag_then: at the group's last statement.
        seconds_then: the age then.
        passed_us: from then to the last word of the cluster, µs.
    """
    if lag == 0:
        return 0.0
    return seconds_then + passed_us / 1e6 if lag_then and seconds_then is not None else None
