"""Where an agent is, for another process to continue, and what it counts of its connections."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.capture.sessions.session import Session
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.connection import HOLE_TIMEOUT_US, Connection
from pipeline.capture.tcp.state import AgentState, OpenConnection
from pipeline.capture.tcp.tracker import Tracker

REPLAY_US = 600_000_000
"""Capture time that is read again at most when an agent continues in another process. A message that has been under way
for longer is cut off, a gap."""


def agent_state(tracker: Tracker, sessions: Mapping[Connection, Session], newest_us: int, steady_us: int) -> AgentState:
    """Where an agent is.

    Args:
        tracker, sessions: its connections.
        newest_us, steady_us: capture time of its newest packet, and the steady time of that, µs.
    """
    oldest, connections = newest_us, []
    for connection in tracker.connections():
        session = sessions.get(connection)
        state = session.state() if session is not None else None
        if connection.is_over():
            if connection.last_ts < steady_us - HOLE_TIMEOUT_US:
                continue  # so late nothing is sent again
        else:
            sinces = (state.since if state else None, connection.held_since())
            oldest = min([oldest, *(since for since in sinces if since is not None)])
        connections.append(OpenConnection(connection.state(state.unread if state else (0, 0)), state))
    needs_from = max(oldest - HOLE_TIMEOUT_US, newest_us - REPLAY_US)
    return AgentState(needs_from, tracker.segments, tuple(connections))


def count_connection(stats: CaptureStats, session: Session) -> None:
    """Count a connection by what it speaks, or why that is not known."""
    (stats.connections if session.recognised else stats.not_recognised)[session.verdict] += 1
    if session.recognition.tls is not None:
        stats.count_tls(session.recognition.tls)
    if session.other_talk is not None:
        stats.count_other_talk(session.other_talk)
    if session.requests_forgotten:
        stats.notices["requests_forgotten"] += session.requests_forgotten
