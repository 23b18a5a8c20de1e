"""Reasons why an incident that was under way when the capture began cannot be known from the rest of it.

Each reason is checked against the whole recording: its exchanges, its statements and its incidents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.case.entities import GROUP
from pipeline.analysis.rules.churning import _SPREAD_US
from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM
from pipeline.analysis.rules.rule import edges
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import (
    EXCHANGES,
    EXCHANGES_WITH_BODIES,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    OFFSET_EVENTS,
    STATE_EVENTS,
)

Row = dict[str, Any]
Key = tuple[str, str]
"""Rule and subject of a finding."""

TABLES_HELD = (EXCHANGES, EXCHANGES_WITH_BODIES, OFFSET_EVENTS, STATE_EVENTS, MONGO_COMMANDS, MONGO_HANDSHAKES)
_END_US = 1_000_000
"""What heals it comes so shortly before its end."""
LASTING = frozenset({
    *("stopped", "stalled", "partition_dropped_from_commits", "lag_growing", "hanging_transaction", "lso_stalled"),
    *("read_committed_starved", "frozen_process"),
})  # fmt: skip
"""Rules whose evidence is what no longer happens: that their last sign came before the cut excuses nothing."""

_SETTINGS = finding_settings()
PATIENCE = {
    "stalled": _SETTINGS.poll_seconds,
    "partition_dropped_from_commits": 2 * _SETTINGS.fetched_again_seconds,
    "request_refused": _SETTINGS.retry_without_success_seconds,
    "hanging_transaction": _SETTINGS.transaction_seconds,
    "stale_metadata": _SETTINGS.stale_metadata_seconds,
    "fenced_leader_epoch": _SETTINGS.stale_metadata_seconds,
    "slow_rebalance": _SETTINGS.slow_rebalance_seconds,
    "connection_churn": _SPREAD_US / 1_000_000,
    "coordinator_unavailable": _SETTINGS.unavailable_seconds,
    "partition_unavailable": _SETTINGS.unavailable_seconds,
    "unanswered_requests": _SETTINGS.slow_seconds,
}
"""By rule the seconds that it demands where the subject's own past is unknown."""
_CAUSES_IN_GROUP = {(edge.cause, edge.effect) for edge in edges() if GROUP in edge.shares}
_REPEATED_AFTER = """
    WITH later AS (
        SELECT *, count(*) OVER (PARTITION BY connection_id) AS seen FROM silver_mongo_commands WHERE epoch_us(ts) > $2
    ), written AS (
        SELECT exchange_id, row_number() OVER (PARTITION BY session_id, txn_number ORDER BY ts, exchange_id) AS number,
            first_value(seen) OVER (PARTITION BY session_id, txn_number ORDER BY ts, exchange_id) AS seen
        FROM later WHERE session_id IS NOT NULL AND txn_number IS NOT NULL
    )
    SELECT count(*) FROM written WHERE list_contains($1, exchange_id) AND number > 1 AND seen > 1
"""
"""Repeats after the cut of which the first attempt follows it too. A connection's only message is not recognised."""
_ACCEPTED = f"""
    SELECT count(*) FROM silver_exchanges_with_bodies
    WHERE api_key IN ({int(ApiKey.SHARE_FETCH)}, {int(ApiKey.SHARE_ACKNOWLEDGE)})
        AND epoch_us(request_ts) > $2 AND epoch_us(request_ts) <= $3
        AND contains(request_body, '"groupId":"' || $1 || '"')
        AND regexp_matches(request_body, '"acknowledgeTypes":[[][^]]*1')
"""
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
        for table in TABLES_HELD:
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
        """When the exchanges began that show it; what ends it is none of them."""
        times = self.whole.times_us
        last_us = int(self.row["last_us"])
        return sorted(times[one] for one in self.row["evidence"] if one in times and times[one] <= last_us)

    @cached_property
    def needed_us(self) -> int:
        """How long the rule took to be sure; 0 if it does not state that."""
        return max(int(self.row["details"].get("enough_us") or 0) - int(self.row["first_us"]), 0)

    @cached_property
    def later_us(self) -> list[int]:
        """Of these, those that follow the cut."""
        return [us for us in self.signs_us if us > self.at_us]

    @cached_property
    def seen_us(self) -> int:
        """When something of its group is seen first after the cut; without a group the cut."""
        ((first_us,),) = self.whole.ask(
            "SELECT min(epoch_us(ts)) FROM (SELECT ts, group_id FROM silver_state_events UNION ALL "
            "SELECT ts, group_id FROM silver_offset_events) WHERE group_id = ? AND epoch_us(ts) > ?",
            *(self.row["group_id"], self.at_us),
        )
        return int(first_us or self.at_us)

    @property
    def rest_us(self) -> int:
        """How long the incident is seen to last after the cut."""
        if self.row["rule"] in LASTING:
            return int(self.row["last_us"]) - self.seen_us
        return int(self.row["last_us"]) - self.at_us

    @property
    def calm_us(self) -> int:
        """The longest part of this in which nobody joins the group, of rules that judge nothing while members join."""
        group, last_us = self.row["group_id"], int(self.row["last_us"])
        if not group or self.row["rule"] not in OF_RHYTHM:
            return self.rest_us
        joins = self.whole.ask(
            "SELECT epoch_us(ts) AS us FROM silver_state_events WHERE group_id = ? AND kind = 'join' "
            "AND error_code = 0 AND epoch_us(ts) BETWEEN ? AND ? ORDER BY us",
            *(group, self.seen_us, last_us),
        )
        times = [self.seen_us, *(us for (us,) in joins), last_us]
        return max(after - before for before, after in pairwise(times))

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
    """All that shows it is before the cut, and it is nothing that lasts."""
    return one.row["rule"] not in LASTING and bool(one.signs_us) and one.signs_us[-1] <= one.at_us


def _is_too_few(one: Silent) -> bool:
    """Fewer signs come later than the rule needed."""
    enough_us = one.row["details"].get("enough_us")
    if enough_us is None or one.row["rule"] in LASTING | {"slow_rebalance"}:
        return False
    if one.row["rule"] == "rebalance_storm" and one.row["details"].get("generations"):
        return _generations(one) < _SETTINGS.storm_generations
    if one.row["rule"] == "mongo_retry_storm":
        ((pairs,),) = one.whole.ask(_REPEATED_AFTER, list(one.row["evidence"]), one.at_us)
        return bool(pairs < _SETTINGS.mongo_retries)
    return len(one.later_us) < sum(us <= int(enough_us) for us in one.signs_us)


def _generations(one: Silent) -> int:
    """Generations of the group that begin after the cut, until the incident is over."""
    ((begun,),) = one.whole.ask(
        "SELECT count(DISTINCT generation) FROM silver_state_events WHERE kind = 'join' AND error_code = 0 "
        "AND generation >= 0 AND group_id = ? AND epoch_us(ts) BETWEEN ? AND ?",
        *(one.row["subject"], one.at_us, one.row["last_us"]),
    )
    return int(begun)


def _is_small_share(one: Silent) -> bool:
    """What shows it is a smaller share of the client's requests after the cut than the rule demands."""
    if one.row["rule"] != "fetch_session_churn":
        return False
    ((fetches,),) = one.whole.ask(
        "SELECT count(*) FROM silver_exchanges WHERE api_key = ? AND client_id = ? AND epoch_us(ts) BETWEEN ? AND ?",
        *(int(ApiKey.FETCH), one.row["subject"], one.at_us, one.row["last_us"]),
    )
    return len(one.later_us) < _SETTINGS.churn_share * fetches


def _is_alike(one: Silent) -> bool:
    """Nothing of the group gets on meanwhile, so that nothing tells the record from all others."""
    if one.row["rule"] != "poison_record" or not one.later_us:
        return False
    group, last_us = one.row["group_id"], one.later_us[-1]
    if one.row["details"].get("group_type") == "share":
        return one.whole.ask(_ACCEPTED, group, one.later_us[0], last_us) == [(0,)]
    begun = one.whole.ask(
        "SELECT min(epoch_us(ts)) FROM silver_state_events WHERE group_id = ? AND kind = 'join' AND epoch_us(ts) > ?",
        *(group, one.at_us),
    )[0][0]
    return begun is not None and not one.whole.ask(
        "SELECT 1 FROM silver_offset_events WHERE group_id = ? AND kind IN ('committed', 'txn_committed') "
        "AND epoch_us(ts) BETWEEN ? AND ?",
        *(group, begun, last_us),
    )


def _is_too_short(one: Silent) -> bool:
    """It is over, or members join, sooner than the rule took to be sure, or takes where it knows of no stay before."""
    is_loop = "again" in one.row["details"]
    least_us = int(2 * _SETTINGS.fetched_again_seconds * 1_000_000) if is_loop else 0
    return one.calm_us < max(one.needed_us, least_us)


def _has_no_rhythm(one: Silent) -> bool:
    """The group commits too seldom later to know its rhythm: by the intervals between commits."""
    group, topic = one.row["group_id"], one.row["topic"]
    if not group or topic is None or one.row["rule"] not in OF_RHYTHM:
        return False
    anew_us = [
        row["last_us"] for (rule, _), row in one.found.items() if rule == "topic_recreated" and row["topic"] == topic
    ]
    ((commits,),) = one.whole.ask(
        "SELECT count(DISTINCT exchange_id) FROM silver_offset_events WHERE group_id = ? AND topic = ? "
        "AND kind = 'committed' AND epoch_us(ts) > ? AND epoch_us(ts) <= ?",
        *(group, topic, one.at_us, min(anew_us, default=2**62)),
    )
    return bool(commits - 1 < KNOWN_RHYTHM)


def _is_found_otherwise(one: Silent) -> bool:
    """Another rule finds the incident in the rest."""
    incident = one.row.get("incident_id")
    members = {(row["rule"], row["subject"]) for row in one.whole.rows if incident and row["incident_id"] == incident}
    return any(
        found["severity"] != "info"
        and (key in members or found["subject"] == one.row["subject"] or _is_cause(found, one.row))
        for key, found in one.found.items()
    )


def _is_cause(found: Row, row: Row) -> bool:
    """Whether a finding about the same group at the same time is a cause of such incidents."""
    is_meanwhile = found["first_us"] <= row["last_us"] and row["first_us"] <= found["last_us"]
    is_of_group = bool(row["group_id"]) and found["group_id"] == row["group_id"]
    return is_meanwhile and is_of_group and (found["rule"], row["rule"]) in _CAUSES_IN_GROUP


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
    rule = one.row["rule"]
    least_us = PATIENCE.get(rule, 0.0) * 1_000_000
    span_us = one.later_us[-1] - one.later_us[0] if one.later_us and rule not in LASTING else one.rest_us
    return min(span_us, one.rest_us) < least_us


REASONS: Mapping[str, tuple[Callable[[Silent], bool], str]] = {
    "otherwise": (_is_found_otherwise, "another rule reports the same incident"),
    "once": (_is_of_one_time, "it happened once: each exchange that shows it precedes the cut"),
    "gone": (_is_gone, "until it is over there is no request of the group or client"),
    "few": (_is_too_few, "fewer exchanges that show it follow than the rule needs"),
    "busy": (
        _left_too_soon,
        "the LeaveGroup follows the cut sooner than max.poll.interval.ms: how long it was busy is unknown",
    ),
    "short": (_is_too_short, "the incident ends, or members join, sooner after the cut than the rule takes to be sure"),
    "patience": (_needs_more_patience, "the incident ends sooner than settings demand where the past is unknown"),
    "rhythm": (
        _has_no_rhythm,
        f"fewer than {KNOWN_RHYTHM} intervals between the group's commits follow, or precede the next time that its "
        "topic is recreated: its rhythm is unknown",
    ),
    "alike": (_is_alike, "nothing of the group gets on after the cut, which would tell the record from others"),
    "share": (_is_small_share, "what follows is a smaller share of the client's requests than the rule demands"),
}
"""By its name how a reason is checked, and what it says; the first that holds counts."""


def reason_of(one: Silent) -> str | None:
    """The name of the first reason that holds; None: nothing excuses the rule."""
    return next((name for name, (holds, _) in REASONS.items() if holds(one)), None)
