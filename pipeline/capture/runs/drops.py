"""Packets that the kernel dropped: a loss of the interface, since their connections are unknown.

Where a connection continues behind them, its own gap shows what it lost. This one stands for those that did not
continue, or had no packet.
"""

from __future__ import annotations

import re

from decoder.model import Gap

_TCPDUMP = re.compile(r"(\d+) packets? dropped by (?:kernel|interface)")
_DUMPCAP = re.compile(r"Packets received/dropped on interface '.*?': \d+/(\d+)")
_REPORT = re.compile(r"\d+ packets? captured")
"""How each report of tcpdump begins."""


def dropped_packets(statistics: str) -> int | None:
    """Packets dropped by the kernel and the interface until the last report of tcpdump or dumpcap; None if none."""
    for report in reversed(_REPORT.split(statistics)):
        counts = _TCPDUMP.findall(report) or _DUMPCAP.findall(report)
        if counts:
            return sum(map(int, counts))
    return None


def without_reports(log: str) -> str:
    """What tcpdump printed beside the reports that it was asked for on the way, each a line."""
    return "\n".join(line for line in log.splitlines() if not re.match(rf"tcpdump: {_REPORT.pattern}", line))


class Drops:
    """The drops of one interface in one run.

    Args:
        agent_id: name of the agent.
        interface: its name.
        start_us: when the run began, µs since the epoch; distinguishes it from other runs.
    """

    def __init__(self, agent_id: str, interface: str, start_us: int) -> None:
        self._agent_id = agent_id
        self._connection_id = f"interface:{interface}:{agent_id}:{start_us}"
        self._reported = 0

    def since_last(self, dropped: int | None, ts: int) -> list[Gap]:
        """The loss since the last call, if there is one.

        Args:
            dropped: packets until now, since the run began; None if not known.
            ts: now, µs since the epoch.
        """
        if dropped is None or dropped <= self._reported:
            return []
        self._reported = dropped
        # The bytes are not counted. The number grows with each row, so that each has a key of its own.
        return [Gap(self._agent_id, self._connection_id, dropped, "request", ts, 0, "none", 0.0)]
