"""Reasons why an incident that was under way when the capture began cannot be known from the rest of it.

Each reason is checked against the whole recording: its exchanges, its statements and its incidents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.connection_churn import _SPREAD_US
from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM
from pipeline.finding_settings import FindingSettings
from pipeline.tables import EXCHANGES, MONGO_COMMANDS, MONGO_HANDSHAKES, OFFSET_EVENTS, STATE_EVENTS

Row = dict[str, Any]
Key = tuple[str, str]
"""Rule and subject of a finding."""

_TABLES = (EXCHANGES, OFFSET_EVENTS, STATE_EVENTS, MONGO_COMMANDS, MONGO_HANDSHAKES)
_END_US = 1_000_000
"""What heals it comes so shortly before its end."""
LASTING = frozenset({
    *("stopped", "stalled", "partition_dropped_from_commits", "lag_growing", "hanging_transaction", "lso_stalled"),
    *("read_committed_starved", "frozen_process"),
})  # fmt: skip
"""Rules whose evidence is what no longer happens: that their last sign came before the cut excuses nothing."""

_SETTINGS = FindingSettings()
PATIENCE = {
    "stalled": _SETTINGS.poll_seconds,
    "partition_dropped_from_commits": 2 * _SETTINGS.fetched_again_seconds,
    "request_refused": _SETTINGS.in_vain_seconds,
    "hanging_transaction": _SETTINGS.transaction_seconds,
    "stale_metadata": _SETTINGS.stale_metadata_seconds,
    "fenced_leader_epoch": _SETTINGS.stale_metadata_seconds,
    "slow_rebalance": _SETTINGS.slow_rebalance_seconds,
    "connection_churn": _SPREAD_US / 1_000_000,
}
"""By rule the seconds that it demands where the subject's own past is unknown."""
OF_RHYTHM = frozenset({"stopped", "stalled", "partition_dropped_from_commits", "lag_growing"})
"""Rules that judge a group by the rhythm of its own commits."""


@dataclass(frozen=True)
class Whole:
    """A recording that was judged from its beginning to its end.

    Attributes:
        rows: its findings, `details` a dict, with all of their evidence.
        tables: by their full name.
    """

    rows: tuple[Row, ...]
    tables: Mapping[str, pa.Table]

    @cached_property
    def times_us(self) -> dict[str, int]:
        """When each exchange began."""
        found = self.ask("SELECT exchange_id, epoch_us(coalesce(request_ts, response_ts)) FROM silver_exchanges")
        return dict(found)

    @cached_property
    def _asked(self) -> duckdb.DuckDBPyConnection:
        asked = duckdb.connect()
        for table in _TABLES:
            asked.register(table.full_name.replace(".", "_"), self.tables[table.full_name])
        return asked

    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query; tables have `_` for the dot in their names."""
        return self._asked.execute(query, list(values)).fetchall()


@dataclass(frozen=True)
class Silent:
    """A finding of the whole recording that is not among those of the rest of it.

    Attributes:
        row: the finding.
        at_us: where the recording was cut.
        whole: the recording.
        found: what was found in the rest.
    """

    row: Row
    at_us: int
    whole: Whole
    found: Mapping[Key, Row] = field(default_factory=dict)

    @cached_property
    def signs_us(self) -> list[int]:
        """When the exchanges began that show it."""
        times = self.whole.times_us
        return sorted(times[one] for one in self.row["evidence"] if one in times)

    @cached_property
    def needed_us(self) -> int:
        """How long the rule took to be sure; 0 if it does not state that."""
        return max(int(self.row["details"].get("enough_us") or 0) - int(self.row["first_us"]), 0)

    @property
    def rest_us(self) -> int:
        """How long the incident lasts after the cut."""
        return int(self.row["last_us"]) - self.at_us

    @property
    def names(self) -> list[str]:
        """Clients that it names."""
        details = self.row["details"]
        some = [details.get("client_id"), details.get("client"), details.get("application")]
        return sorted({one for one in some if isinstance(one, str) and one})


def _is_gone(one: Silent) -> bool:
    """Nothing of whom it is about follows until it is over."""
    span = one.at_us, one.row["last_us"] - _END_US
    if group := one.row["group_id"]:
        return not one.whole.ask(
            "SELECT 1 FROM silver_state_events WHERE group_id = ? AND epoch_us(ts) BETWEEN ? AND ? UNION ALL "
            "SELECT 1 FROM silver_offset_events "
            "WHERE group_id = ? AND kind <> 'fetched_commit' AND epoch_us(ts) BETWEEN ? AND ?",
            *(group, *span) * 2,
        )
    if one.names:
        return not one.whole.ask(
            "SELECT 1 FROM silver_exchanges WHERE list_contains(?, client_id) AND epoch_us(ts) BETWEEN ? AND ? "
            "UNION ALL SELECT 1 FROM silver_mongo_commands c JOIN silver_mongo_handshakes h USING (connection_id) "
            "WHERE list_contains(?, h.application) AND epoch_us(c.ts) BETWEEN ? AND ?",
            *(one.names, *span) * 2,
        )
    return False


def _is_of_one_time(one: Silent) -> bool:
    """All that shows it lies before the cut, and it is nothing that lasts."""
    return one.row["rule"] not in LASTING and bool(one.signs_us) and one.signs_us[-1] <= one.at_us


def _is_too_few(one: Silent) -> bool:
    """Fewer signs come later than the rule needed."""
    enough_us = one.row["details"].get("enough_us")
    if enough_us is None or one.row["rule"] in LASTING | {"slow_rebalance"}:
        return False
    later = sum(us > one.at_us for us in one.signs_us)
    return later < sum(us <= int(enough_us) for us in one.signs_us)


def _is_too_short(one: Silent) -> bool:
    """It is over sooner than the rule took to be sure, or takes where it knows of no stay before a loop."""
    is_loop = "again" in one.row["details"]
    least_us = int(2 * _SETTINGS.fetched_again_seconds * 1_000_000) if is_loop else 0
    return one.rest_us < max(one.needed_us, least_us)


def _has_no_rhythm(one: Silent) -> bool:
    """The group commits too seldom later to know its rhythm."""
    group, topic = one.row["group_id"], one.row["topic"]
    if not group or topic is None or one.row["rule"] not in OF_RHYTHM:
        return False
    ((commits,),) = one.whole.ask(
        "SELECT count(DISTINCT exchange_id) FROM silver_offset_events WHERE group_id = ? AND topic = ? "
        "AND kind = 'committed' AND epoch_us(ts) > ?",
        *(group, topic, one.at_us),
    )
    return bool(commits < KNOWN_RHYTHM)


def _is_found_otherwise(one: Silent) -> bool:
    """Another rule finds the incident in the rest."""
    incident = one.row.get("incident_id")
    members = {(row["rule"], row["subject"]) for row in one.whole.rows if incident and row["incident_id"] == incident}
    return any(
        found["severity"] != "info" and (key in members or found["subject"] == one.row["subject"])
        for key, found in one.found.items()
    )


def _left_too_soon(one: Silent) -> bool:
    """Each LeaveGroup that shows it comes before the cut, or sooner after it than the client may be busy."""
    limit_us = 1000 * int(one.row["details"].get("max_poll_interval_ms") or 0)
    leaves = one.whole.ask(
        "SELECT epoch_us(request_ts) FROM silver_exchanges WHERE list_contains(?, exchange_id) AND api_key = ?",
        *(list(one.row["evidence"]), int(ApiKey.LEAVE_GROUP)),
    )
    return bool(limit_us and leaves) and all(us - one.at_us < limit_us for (us,) in leaves)


def _needs_more_patience(one: Silent) -> bool:
    """What follows is shorter than the time that settings demand where nothing that precedes it is known."""
    least_s = PATIENCE.get(one.row["rule"], 0.0)
    return one.rest_us < least_s * 1_000_000


REASONS: Mapping[str, tuple[Callable[[Silent], bool], str]] = {
    "otherwise": (_is_found_otherwise, "another rule reports the same incident"),
    "once": (_is_of_one_time, "it happened once: each exchange that shows it precedes the cut"),
    "gone": (_is_gone, "until it is over there is no request of the group or client"),
    "few": (_is_too_few, "fewer exchanges that show it follow than the rule needs"),
    "busy": (
        _left_too_soon,
        "the LeaveGroup follows the cut sooner than max.poll.interval.ms: how long it was busy is unknown",
    ),
    "short": (_is_too_short, "the incident ends sooner after the cut than the rule takes to be sure"),
    "patience": (_needs_more_patience, "the incident ends sooner than settings demand where the past is unknown"),
    "rhythm": (
        _has_no_rhythm,
        f"the group commits fewer than {KNOWN_RHYTHM} times after the cut: its rhythm is unknown",
    ),
}
"""By its name how a reason is checked, and what it says; the first that holds counts."""


def reason_of(one: Silent) -> str | None:
    """The name of the first reason that holds; None: nothing excuses the rule."""
    return next((name for name, (holds, _) in REASONS.items() if holds(one)), None)
