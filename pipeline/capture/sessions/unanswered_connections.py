"""What was never looked at: packets of connections that came when strangers had used up what they may cost."""

from __future__ import annotations

from collections.abc import Iterator

from decoder.model import Gap
from pipeline.capture.sessions.unread_bytes import REFUSED
from pipeline.capture.stats import CaptureStats

_UNREAD = "too_much_work"
"""Why packets were skipped that belong to no connection yet."""


class UnansweredConnections:
    """Counts what is skipped of unknown connections, and reports its loss.

    Args:
        agent_id: name of the agent.
        stats: counts what is skipped.
    """

    def __init__(self, agent_id: str, stats: CaptureStats) -> None:
        self._agent_id = agent_id
        self._stats = stats
        self._bytes = self._since = 0  # of what is not reported yet, and from when on (µs)

    def skip(self, packets: int, payload: int, ts: int) -> None:
        """This many packets with this many bytes of TCP payload were not looked at, from ``ts`` on (µs)."""
        self._stats.skipped[_UNREAD] += packets
        self._since = self._since if self._bytes else ts
        self._bytes += payload

    def lost(self) -> Iterator[Gap]:
        """The loss since the last call, if there is one; to be asked for once strangers are read again."""
        lost, self._bytes = self._bytes, 0
        if lost:
            self._stats.notices["work_refused"] += 1
            name = f"strangers:{self._agent_id}:{self._since}"
            yield Gap(self._agent_id, name, 0, "request", self._since, lost, REFUSED, 0.0)
