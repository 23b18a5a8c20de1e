"""Groups whose committed offset is beyond the end of the log: a restart is out of range, and begins elsewhere.

Findings of ``offset_reset``. Evidence: a commit, or an answer to OffsetFetch, that is higher than any end of the log
that the capture states at all, and ends that are stated afterwards; and what the group does with it: it is refused
with OFFSET_OUT_OF_RANGE, fetches far below, or commits beyond the end again and again. A log that was seen to reach the
offset got shorter, which is another trouble.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from pipeline.analysis.rules.format import host_of, who
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.rules.thresholds import RuleThresholds
from pipeline.analysis.tables import Row
from pipeline.humanize import clock, pluralize

COMMITTED_BEYOND = "committed beyond the end"
Place = tuple[str, str, int, str]
"""Cluster, topic, partition, group."""
_LEAST_US = 5_000_000
"""For how long ends are stated that are lower: a high watermark lags for a moment after an election."""
_AGAIN = 2
"""Commits beyond the end that show where the group commits, without a restart."""
_STATES_END = """coalesce(error_code, 0) = 0 AND topic IS NOT NULL AND (
    (kind = 'fetched' AND high_watermark >= 0)
    OR (kind = 'listed' AND list_timestamp = -1 AND "offset" >= 0 AND isolation_level = 'read_uncommitted'))"""
_ENDED = """CASE kind WHEN 'fetched' THEN high_watermark ELSE "offset" END"""
_CLAIMS = """kind IN ('committed', 'fetched_commit') AND group_id <> '' AND "offset" > 0"""
_SUSPECTS = f"""
    SELECT cluster, topic, partition, max(greatest(
        CASE WHEN kind IN ('produced', 'fetched', 'listed') THEN greatest(high_watermark, next_offset) END,
        CASE WHEN kind = 'listed' AND list_timestamp <> -2 THEN "offset" END
    )) AS top
    FROM events WHERE coalesce(error_code, 0) = 0 AND topic IS NOT NULL
    GROUP BY ALL HAVING max("offset") FILTER ({_CLAIMS}) > top
"""
"""Partitions where a group is beyond ``top``, the furthest end that is stated."""
_BEYOND = f"""
    WITH claimed AS (
        SELECT cluster, topic, partition, group_id, kind, client_id, client, epoch_us(ts) AS us, exchange_id,
            "offset" AS stood
        FROM events WHERE {_CLAIMS} AND coalesce(error_code, 0) = 0 AND topic IS NOT NULL
    ), beyond AS (
        SELECT cluster, topic, partition, group_id, top, min(us) FILTER (stood > top) AS first_us,
            max(us) FILTER (stood > top) AS last_us, arg_max(stood, us) FILTER (stood > top) AS stood,
            count(*) FILTER (stood > top AND kind = 'committed') AS commits,
            arg_max(client_id, us) FILTER (stood > top AND kind = 'committed') AS committer,
            arg_max(client, us) FILTER (stood > top AND kind = 'committed') AS committed_from,
            max(us) FILTER (stood > top AND kind = 'committed') AS committed_us,
            arg_min(exchange_id, us) FILTER (stood > top) AS exchange_id,
            min(us) FILTER (stood > top AND kind = 'fetched_commit') AS asked_us,
            max(us) FILTER (stood <= top AND kind = 'committed') AS within_us
        FROM claimed JOIN suspects USING (cluster, topic, partition) GROUP BY ALL HAVING last_us IS NOT NULL
    ), ends AS (
        SELECT cluster, topic, partition, epoch_us(ts) AS us, max({_ENDED}) AS "end", max(exchange_id) AS stated_by
        FROM events SEMI JOIN suspects USING (cluster, topic, partition) WHERE {_STATES_END} GROUP BY ALL
    ), newest AS (
        SELECT cluster, topic, partition, max(us) AS stated_us, arg_max("end", us) AS newest_end,
            arg_max(stated_by, us) AS stated_by
        FROM ends GROUP BY ALL
    ), since AS (
        SELECT * FROM beyond JOIN newest USING (cluster, topic, partition) WHERE stated_us >= first_us
    )
    SELECT s.* EXCLUDE (newest_end), coalesce(e."end", s.newest_end) AS "end"
    FROM since AS s ASOF LEFT JOIN ends AS e
        ON e.cluster = s.cluster AND e.topic = s.topic AND e.partition = s.partition AND s.last_us <= e.us
    ORDER BY s.cluster, s.group_id, s.topic, s.stood - coalesce(e."end", s.newest_end) DESC, s.partition
"""
"""Groups beyond any end that is stated, with an end that was stated since: the next one, or the last."""
_SINCE = """
    WITH seen AS (
        SELECT kind, epoch_us(ts) AS us, exchange_id, event_offset, event_next_offset FROM timeline
        WHERE cluster = $cluster AND topic = $topic AND partition = $partition AND group_id = $group
            AND (kind = 'fetched' OR (kind = 'fetch_rejected' AND error_name = 'OFFSET_OUT_OF_RANGE'
                AND coalesce(event_offset, $stood) > $top AND epoch_us(ts) >= $first))
    ), refused AS (
        SELECT min(us) AS refused_us, max(us) AS refused_last_us, count(DISTINCT exchange_id) AS refusals FROM seen
        WHERE kind <> 'fetched'
    ), begun AS (
        SELECT least(refused_us, $asked) AS us FROM refused
    ), fetches AS (
        SELECT s.us >= b.us AS is_since, s.* FROM seen AS s, begun AS b
        WHERE kind = 'fetched' AND event_offset <= $top
    ), read AS (
        SELECT max(coalesce(event_next_offset, event_offset)) FILTER (NOT is_since) AS before,
            min(us) FILTER (is_since) AS went_us, max(us) FILTER (is_since) AS last_us,
            arg_min(event_offset, us) FILTER (is_since) AS went_on_at,
            arg_min(exchange_id, us) FILTER (is_since) AS went_on_by
        FROM fetches
    )
    SELECT r.*, f.last_us, f.before IS NULL OR r.refusals > 0 OR f.went_on_at < f.before AS is_start,
        CASE WHEN is_start THEN f.went_us END AS went_us, CASE WHEN is_start THEN f.went_on_at END AS went_on_at,
        CASE WHEN is_start THEN f.went_on_by END AS went_on_by
    FROM refused AS r, read AS f
"""
"""What the group did with it: who asks for its commit, or is refused, and then fetches elsewhere begins there; who
reads on where it was does not."""
NOW = (
    "Now: stop group {group}, find out up to where it has processed the partition, and set it there (`"
    "kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets --group {group} --topic {place} --to-offset "
    "OFFSET --execute`): each start without a commit inside the log begins where "
    "auto.offset.reset says."
)
FIX = (
    "Fix: commit only the offset after a record that was read from this partition, never one that was calculated, or "
    "comes from another topic, cluster or a backup. If the log did reach so far once, it lost its end "
    "(unclean.leader.election.enable=false), or the topic was deleted and created again."
)


HEALED = (
    "Now: set no offsets: group {group} has committed inside the log since. See whether a restart before that skipped "
    "records, or read them again."
)


@dataclass(frozen=True, slots=True)
class Beyond:
    """A partition whose committed offset is beyond the end. Offsets are those of the log, times µs since the epoch.

    Attributes:
        row: the commit or the answer (``stood``), the end that was stated since (``end``), and by whom.
        since: what the group did afterwards.
    """

    row: Row
    since: Row

    @property
    def place(self) -> Place:
        """Where."""
        return self.row.cluster, self.row.topic, self.row.partition, self.row.group_id

    @property
    def healed_us(self) -> int | None:
        """When the group committed inside the log again."""
        within = self.row.within_us
        return within if within is not None and within > self.row.last_us else None

    @property
    def again(self) -> int:
        """Records that the first restart read again, at most."""
        return 0 if self.since.went_on_at is None else max(int(self.row.end) - int(self.since.went_on_at), 0)

    @property
    def last_us(self) -> int:
        """When it was seen last."""
        some = (self.row.last_us, self.since.last_us, self.since.refused_last_us)
        return self.healed_us or max(us for us in some if us is not None)


def beyond_ends(sources: Sources) -> Sequence[Beyond]:
    """Of each group and partition, those farthest beyond the end first; asked once."""
    return sources.once("commits beyond the end", lambda: list(_beyond_ends(sources)))


def _beyond_ends(sources: Sources) -> Iterator[Beyond]:
    if not sources.tables.keep("suspects", _SUSPECTS):
        return
    rows = [row for row in sources.tables.rows(_BEYOND) if not sources.made_anew.get((row.cluster, row.topic))]
    asked = [
        {
            "cluster": row.cluster, "topic": row.topic, "partition": row.partition, "group": row.group_id,
            "first": row.first_us, "asked": row.asked_us, "stood": row.stood, "top": row.top,
        }
        for row in rows
    ]  # fmt: skip
    for row, (since,) in zip(rows, sources.tables.of_each(_SINCE, asked), strict=True):
        is_known = since.refusals or row.stated_us - row.first_us >= _LEAST_US
        if is_known and (since.refusals or since.went_us is not None or row.commits >= _AGAIN):
            yield Beyond(row, since)


def with_findings(
    resets: list[Finding], beyond: Sequence[Beyond], rule: str, sources: Sources, settings: RuleThresholds
) -> list[Finding]:
    """Findings about positions that are gone, with those about commits: of a group and topic the more severe one."""
    by_group: defaultdict[tuple[str, str, str], list[Beyond]] = defaultdict(list)
    for one in beyond:
        cluster, topic, _, group = one.place
        by_group[cluster, topic, group].append(one)
    worse = {finding.subject for finding in resets if finding.severity == "critical"}
    found = [_finding(rule, some, sources, settings) for some in by_group.values()]
    found = [finding for finding in found if finding.subject not in worse]
    subjects = {finding.subject for finding in found}
    return [*(finding for finding in resets if finding.subject not in subjects), *found]


def _finding(rule: str, some: list[Beyond], sources: Sources, settings: RuleThresholds) -> Finding:
    """A finding about partitions of one group and topic."""
    worst = some[0]
    cluster, topic, partition, group = worst.place
    row, since = worst.row, worst.since
    first_us, last_us = min(one.row.first_us for one in some), max(one.last_us for one in some)
    partitions = sorted(one.row.partition for one in some)
    committers = sorted({who(one.row.committer, host_of(one.row.committed_from)) for one in some if one.row.commits})
    details: dict[str, Any] = {
        "cause": COMMITTED_BEYOND, "clients": committers, "committed": row.stood, "log_end": row.end,
        "commits": sum(one.row.commits for one in some), "refusals": sum(one.since.refusals for one in some),
        "went_on_at": since.went_on_at, "read_again": sum(one.again for one in some),
        "partitions": [
            {"partition": one.row.partition, "before": one.row.stood, "after": one.since.went_on_at,
             "log_end": one.row.end, "committed_us": one.healed_us} for one in some
        ],
        "enough_us": _enough_us(worst),
    }  # fmt: skip
    return Finding(
        rule=rule, severity="warning", subject=f"{group}/{topic}", state=_state(some, sources, cluster),
        cluster=cluster, topic=topic, partition=partition if len(some) == 1 else None, group_id=group,
        first_us=first_us, last_us=last_us, summary=_summary(worst, len(some), committers),
        advice=f"{NOW if _state(some, sources, cluster) != 'resolved' else HEALED} {FIX}".format(
            group=quote(group), place=quote(f"{topic}:{','.join(str(number) for number in partitions)}")
        ),
        evidence=list(
            dict.fromkeys(
                exchange_id
                for one in some
                for exchange_id in (one.row.exchange_id, one.since.went_on_by, one.row.stated_by)
                if exchange_id
            )
        )[: settings.max_evidence],
        details=details,
    )  # fmt: skip


def _enough_us(one: Beyond) -> int:
    known = [us for us in (one.since.refused_us, one.since.went_us) if us is not None]
    return int(min(known) if known else one.row.first_us + _LEAST_US)


def _state(some: list[Beyond], sources: Sources, cluster: str) -> State:
    if all(one.healed_us is not None for one in some):
        return "resolved"
    last_us = max(one.last_us for one in some)
    return sources.state_unhealed(cluster, last_us, last_us, 1)


def _summary(worst: Beyond, places: int, committers: list[str]) -> str:
    row, since = worst.row, worst.since
    more = f" and {pluralize(places - 1, 'more partition')}" if places > 1 else ""
    parts = [
        f"Group {row.group_id}: its committed offset {row.stood} on {row.topic}-{row.partition}{more} "
        f"{'is' if worst.healed_us is None else 'was'} beyond the end of the log, {row.end}: {_what_follows(worst)}."
    ]
    if since.refusals:
        parts.append(
            f"OFFSET_OUT_OF_RANGE was answered {pluralize(since.refusals, 'time')} to its fetches, the last one at "
            f"{clock(since.refused_last_us)} UTC."
        )
    if row.commits:
        again = f", one of {pluralize(row.commits, 'commit')} beyond the end" if row.commits > 1 else ""
        parts.append(f"{committers[0]} committed it at {clock(row.committed_us)} UTC{again}.")
    if worst.healed_us is not None:
        parts.append(f"At {clock(worst.healed_us)} UTC the group committed inside the log.")
    return " ".join(parts)


def _what_follows(worst: Beyond) -> str:
    at = worst.since.went_on_at
    if at is None:
        begins = "begins" if worst.healed_us is None else "would have begun"
        return f"a restart {begins} where auto.offset.reset says"
    if worst.again:
        reads = "each restart reads" if worst.healed_us is None else "a restart read"
        return f"{reads} all again, from offset {at} on ({pluralize(worst.again, 'record')})"
    begins, skips = ("each restart begins", "skips") if worst.healed_us is None else ("a restart began", "skipped")
    return f"{begins} at the end, offset {at}, and {skips} what came meanwhile"
