"""Rules of Kafka that follow from the same causes, and why; for what rules state as their effects."""

from __future__ import annotations

from typing import Final

BEHIND: Final = ("lag_growing", "stalled")
"""Who stays behind."""
STANDSTILL: Final = ("lag_growing", "stopped", "stalled", "partition_dropped_from_commits")
"""Who stands still."""
PUT_OUT: Final = ("commit_rejected", "zombie_member")
"""Who was put out of its group."""

AWAY: Final = "while members join, nothing is read and nothing is committed"
RESENT: Final = "what got no answer is sent again"
SLOWED: Final = "who waits for the broker gives up, asks again, or comes too late"
STALE_OFFSET: Final = "the stale offset is committed over the newer one"
OPEN_TRANSACTION: Final = "read_committed readers stop at the first open transaction"
