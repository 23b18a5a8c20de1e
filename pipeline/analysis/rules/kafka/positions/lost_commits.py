"""Commits that a coordinator accepted and has no more: OffsetFetch states an older offset than the last one.

Findings of ``offset_reset``. The coordinator keeps commits in a partition of ``__consumer_offsets``: a replica that
lacks some (an unclean election, a lost disk) states older ones, without an error. Evidence: the last accepted commit of
a group and partition, and an OffsetFetch sent after its answer that states less than any commit of the seconds before
it. Left out: what else may have set it back, such as a commit without a captured answer, the deletion of the group or
of its offsets, a topic that was recreated. Answers without any offset: see offset_reset.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from shlex import quote

from decoder.fields import parsed, text, texts
from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.kafka.positions.shown import shown
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.rules.thresholds import RuleThresholds
from pipeline.analysis.tables import ADDRESS, Row, numbers
from pipeline.humanize import clock, pluralize

LOST_COMMITS = "commits lost"
Place = tuple[str, str, int, str]
"""Cluster, topic, partition, group."""
_TOGETHER_US = 2_000_000
"""Commits that are answered so close together may have been taken in another order."""
_SURE_US = 60_000_000
"""Within this time nothing follows from what two agents saw, whose clocks may differ, or of a transaction's commits:
they count once its markers are written."""
_OFFSETS_SHOWN = 3
_OLDER = f"""
    WITH asked AS (
        SELECT t.cluster, t.topic, t.partition, coalesce(t.incarnation, 0) AS incarnation, t.group_id, t.exchange_id,
            epoch_us(x.request_ts) AS us, epoch_us(t.ts) AS answered_us, t.event_offset, true AS is_answer,
            x.agent_id, {ADDRESS["server"]} AS server
        FROM timeline AS t JOIN exchanges AS x USING (exchange_id)
        WHERE t.kind = 'fetched_commit' AND t.group_id <> '' AND t.event_offset IS NOT NULL
            AND x.request_ts IS NOT NULL
    ), commits AS (
        SELECT cluster, topic, partition, coalesce(incarnation, 0) AS incarnation, group_id, exchange_id,
            epoch_us(ts) AS us, event_offset, false AS is_answer, kind = 'txn_applied' AS in_transaction
        FROM timeline SEMI JOIN asked USING (cluster, topic, partition, group_id)
        WHERE kind IN ('committed', 'txn_applied') AND event_offset IS NOT NULL
    ), known AS (
        SELECT *, last_value(CASE WHEN NOT is_answer THEN
                {{'us': us, 'offset': event_offset, 'exchange_id': exchange_id, 'in_transaction': in_transaction,
                  'least': least}} END IGNORE NULLS) OVER (
            PARTITION BY cluster, topic, partition, incarnation, group_id ORDER BY us, is_answer, exchange_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS before
        FROM (
            SELECT *, min(event_offset) FILTER (NOT is_answer) OVER (
                PARTITION BY cluster, topic, partition, incarnation, group_id ORDER BY us
                RANGE BETWEEN {_TOGETHER_US} PRECEDING AND CURRENT ROW
            ) AS least
            FROM (FROM asked UNION ALL BY NAME FROM commits)
        )
    ), older AS (
        SELECT cluster, topic, partition, group_id, before.us AS committed_us, before."offset" AS committed,
            before.exchange_id AS committed_by, before.in_transaction AS in_transaction, min(us) AS us,
            arg_min(event_offset, us) AS stated, arg_min(exchange_id, us) AS stated_by, arg_min(server, us) AS server,
            arg_min(agent_id, us) AS agent_id, arg_min(answered_us, us) AS answered_us, max(us) AS last_us
        FROM known WHERE is_answer AND before.least > event_offset
        GROUP BY ALL
    )
    SELECT o.* EXCLUDE (agent_id), {ADDRESS["server"]} AS accepted_by, o.agent_id <> x.agent_id AS is_of_two
    FROM older AS o JOIN exchanges AS x ON x.exchange_id = o.committed_by
    QUALIFY row_number() OVER (PARTITION BY cluster, topic, partition, group_id ORDER BY o.us DESC) = 1
    ORDER BY cluster, group_id, topic, committed - stated DESC, partition
"""
"""Answers below the last commit that had been answered when they were asked for; of a place the last."""
_SINCE = """
    WITH seen AS (
        SELECT kind, epoch_us(ts) AS us, event_offset, exchange_id FROM timeline
        WHERE cluster = $cluster AND topic = $topic AND partition = $partition AND group_id = $group
            AND kind IN ('committed', 'txn_applied', 'fetched') AND epoch_us(ts) > $us
    )
    SELECT min(us) FILTER (kind <> 'fetched' AND event_offset >= $committed) AS healed_us,
        count(*) FILTER (kind = 'fetched' AND event_offset >= $stated AND event_offset < $committed) AS again,
        arg_min(exchange_id, us) FILTER (kind = 'committed' AND event_offset <= $stated) AS next_lower
    FROM seen
"""
"""When the group was where it had been, how often it fetched what is between, and the next commit that is lower."""
_ASKED = """
    SELECT exchange_id, epoch_us(request_ts) AS us FROM exchanges WHERE exchange_id IN (SELECT unnest($ids))
"""
_OTHERWISE = f"""
    SELECT epoch_us(ts) AS us, request_body FROM exchanges
    WHERE api_key IN {numbers(ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE)}
        OR (api_key IN {numbers(ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT)} AND status <> 'paired')
    UNION ALL
    SELECT epoch_us(request_ts), request_body FROM waiting
    WHERE api_key IN {numbers(ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT)}
"""
"""What may have set groups back as well: what is deleted, and commits whose answers are not known."""
_OTHERS = (
    "Compare the other groups of coordinator {server}: commits of all that share its partition of __consumer_offsets "
    "may be gone."
)
HEALED = (
    "Now: set no offsets: the group has committed so far again. See whether it did harm that records before these "
    f"offsets were processed twice ({{offsets}}). {_OTHERS}"
)
NOW = (
    "Now: if group {group} was not set back on purpose, and it does harm to process these records twice, stop the "
    "group and set it to where it was (`kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets --group "
    f"{{group}} --topic {{topic}}:PARTITION --to-offset OFFSET --execute`; {{offsets}}). {_OTHERS}"
)
FIX = (
    "Fix: offsets.topic.replication.factor=3, and for __consumer_offsets min.insync.replicas=2 and "
    "unclean.leader.election.enable=false (the factor holds for a new topic only; `kafka-reassign-partitions.sh` adds "
    "replicas to the topic that is there), so that each broker that may become a coordinator has all accepted commits; "
    "let no tool set offsets of a group that runs."
)


Lost = tuple[Row, Row]
"""The commit with the answer that is older, and what the group did since."""


def lost_commits(sources: Sources) -> Mapping[Place, Lost]:
    """By place the last time that a coordinator stated less than it had accepted."""
    return sources.once("lost commits", lambda: dict(_lost(sources)))


def _lost(sources: Sources) -> Iterator[tuple[Place, Lost]]:
    if not shown(sources).is_older:
        return
    rows = [row for row in sources.tables.rows(_OLDER) if _is_sure(row, sources)]
    if not rows:
        return
    otherwise = _otherwise(sources)
    rows = [row for row in rows if not _is_within(otherwise.get(row.group_id, ()), row)]
    asked = [
        {"cluster": row.cluster, "topic": row.topic, "partition": row.partition, "group": row.group_id,
         "committed": row.committed, "stated": row.stated, "us": row.us}
        for row in rows
    ]  # fmt: skip
    sinces = [since for (since,) in sources.tables.of_each(_SINCE, asked)]
    ids = [since.next_lower for since in sinces if since.next_lower is not None]
    sent = {one.exchange_id: one.us for one in sources.tables.rows(_ASKED, ids=ids)} if ids else {}
    for row, since in zip(rows, sinces, strict=True):
        sent_us = sent.get(since.next_lower)
        if sent_us is not None and sent_us <= row.answered_us:
            continue  # the lower commit was under way when the answer was given
        yield (row.cluster, row.topic, row.partition, row.group_id), (row, since)


def _is_sure(row: Row, sources: Sources) -> bool:
    if (row.is_of_two or row.in_transaction) and row.us - row.committed_us < _SURE_US:
        return False
    return not any(row.committed_us <= us <= row.us for us in sources.made_anew.get((row.cluster, row.topic), ()))


def _otherwise(sources: Sources) -> Mapping[str, Sequence[int]]:
    """By group when it may have been set back by what was seen, µs since the epoch, ascending."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row in sources.tables.rows(_OTHERWISE):
        body = parsed(row.request_body)
        for name in texts(body, "groupsNames") or [text(body, "groupId") or ""]:
            found[name].append(row.us)
    return {group: sorted(times) for group, times in found.items()}


def _is_within(times: Sequence[int], row: Row) -> bool:
    """Whether one of these times is after the commit, and before its group was asked."""
    return bisect_left(times, row.committed_us - _TOGETHER_US) < bisect_right(times, row.us)


def findings(rule: str, known: Container[str], sources: Sources, settings: RuleThresholds) -> Iterator[Finding]:
    """One for each group and topic whose subject is not known otherwise."""
    by_topic: defaultdict[tuple[str, str, str], list[Lost]] = defaultdict(list)
    for (cluster, topic, _, group), one in lost_commits(sources).items():
        by_topic[cluster, topic, group].append(one)
    for (_, topic, group), some in by_topic.items():
        if f"{group}/{topic}" not in known:
            yield _finding(rule, some, sources, settings)


def _finding(rule: str, some: Sequence[Lost], sources: Sources, settings: RuleThresholds) -> Finding:
    """Of one group and topic, whose partition with the most records to read again comes first."""
    worst, since = some[0]
    first_us, last_us = min(row.us for row, _ in some), max(row.last_us for row, _ in some)
    again = sum(row.committed - row.stated for row, _ in some)
    state = _state(some, sources, worst.cluster, last_us)
    return Finding(
        rule=rule, severity="warning", subject=f"{worst.group_id}/{worst.topic}",
        state=state, cluster=worst.cluster, topic=worst.topic,
        partition=worst.partition if len(some) == 1 else None, group_id=worst.group_id, first_us=first_us,
        last_us=last_us, summary=_summary(worst, since, again, len(some)),
        advice=f"{HEALED if state == 'resolved' else NOW} {FIX}".format(
            group=quote(worst.group_id), topic=quote(worst.topic), server=worst.server, offsets=_offsets(some),
        ),
        evidence=list(dict.fromkeys(one for row, _ in some for one in (row.committed_by, row.stated_by)))[
            : settings.max_evidence
        ],
        details={
            "cause": LOST_COMMITS, "server": worst.server, "committed": worst.committed, "stated": worst.stated,
            "committed_us": worst.committed_us, "read_again": again, "is_read_again": bool(since.again),
            "partitions": [
                {"partition": row.partition, "before": row.committed, "after": row.stated,
                 "committed_us": others.healed_us} for row, others in some
            ],
            "enough_us": first_us,
        },
    )  # fmt: skip


def _state(some: Sequence[Lost], sources: Sources, cluster: str, last_us: int) -> State:
    """It is over once the group is where it was."""
    if all(since.healed_us is not None for _, since in some):
        return "resolved"
    return sources.state_unhealed(cluster, last_us, last_us, 1)


def _summary(row: Row, since: Row, again: int, places: int) -> str:
    more = f" and {pluralize(places - 1, 'more partition')}" if places > 1 else ""
    moved = "" if row.accepted_by == row.server else f" by {row.accepted_by}"
    reads = "come again" if since.again else "would come again after a restart"
    there = f" At {clock(since.healed_us)} UTC it committed so far again." if since.healed_us else ""
    return (
        f"Coordinator {row.server} states an older commit of group {row.group_id} on {row.topic}-{row.partition}{more} "
        f"than was accepted: {row.stated} at {clock(row.us)} UTC, after {row.committed}{moved} at "
        f"{clock(row.committed_us)} UTC, so that up to {pluralize(again, 'record')} {reads}. No captured request set "
        f"the group back: commits were lost, or a request that was not captured did it.{there}"
    )


def _offsets(some: Sequence[Lost]) -> str:
    shown_ones = [f"partition {row.partition}: {row.committed}" for row, _ in some[:_OFFSETS_SHOWN]]
    return ", ".join([*shown_ones, *(("… (details)",) if len(some) > _OFFSETS_SHOWN else ())])
