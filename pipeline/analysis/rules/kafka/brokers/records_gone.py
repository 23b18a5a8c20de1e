"""Rule ``records_gone``: a partition's log ends earlier than before, so that acknowledged records are no longer in it.

Meaning: a broker leads that lacks them (an unclean leader election), or the disk that held them was lost. Their offsets
are given out again: whoever has read the old records never reads the new ones of the same offsets.
Evidence: base offsets of accepted batches that were sent after a higher end had been acknowledged; or high watermarks
of one broker, or latest offsets, that stay below what the same log had reached. Deleted records move the beginning of
a log, followers that lag are another broker, markers of transactions only add; a topic that was deleted and recreated
has another id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from shlex import quote

from pipeline.analysis.claims.kafka.processes import RECORDS_GONE
from pipeline.analysis.columns.numbering import with_places
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import PARTITION, TOPIC
from pipeline.analysis.rules.case.texts import LOSES
from pipeline.analysis.rules.format import host_of, who
from pipeline.analysis.rules.kafka.brokers.log_ends import Fall, LogEnds, falls
from pipeline.analysis.rules.kafka.brokers.shorter import ASKED_US, ENDS, shorter
from pipeline.analysis.rules.kafka.symptoms import TOPIC_CHANGED
from pipeline.analysis.rules.kafka.thresholds import RESET_RECORDS
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.recurrence import earlier
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock, pluralize, some

_WRITE = (
    "Now: find the replica or disk that still holds the records of offsets {begin} to {end} (`kafka-topics.sh "
    "--bootstrap-server BROKER --describe --topic {topic}`, `kafka-dump-log.sh`) and keep it from being deleted; then "
    "write these records again from there, or from their source."
)
_READ = (
    " {groups} had read there: set {it} to offset {begin} (`kafka-consumer-groups.sh --bootstrap-server BROKER "
    "--reset-offsets --to-offset {begin} --topic {place} --group GROUP --execute`), or it misses what is written "
    "to these offsets now."
)
_FIX = (
    " Fix: unclean.leader.election.enable=false, three replicas, min.insync.replicas=2 and acks=all, so that no broker "
    "leads that lacks acknowledged records."
)


class RecordsGone(Rule):
    """Acknowledged records are no longer in a partition's log: it ends earlier than before."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        reset_records: Count = RESET_RECORDS

    name = "records_gone"
    title = "Acknowledged records gone"
    protocol = "kafka"
    about = "progress"
    severities = ("critical",)
    reads = ("events", "exchanges", "batches")
    advice = (f"{_WRITE}{_FIX}", f"{_WRITE}{_READ}{_FIX}")
    urgency = LOSES
    effects = (
        Link(
            ("offset_reset", "rewound", "commit_regressed", "sequence_gap", "stalled", "lag_growing"),
            (PARTITION,),
            "the log ends before what was read and committed",
        ),
        Link(
            ("offset_reset", "stopped", "fenced_leader_epoch"),
            (TOPIC,),
            "the log ends before what was read and committed",
        ),
    )
    claims = RECORDS_GONE

    @classmethod
    def is_lasting(cls, case: Case) -> bool:
        """What is gone stays gone."""
        del case
        return True

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Apply the rule: one finding for each partition."""
        suspects = shorter(sources.tables)
        if not suspects.num_rows:
            return
        sources.tables.add("shorter", with_places(suspects))
        gone: dict[Place, list[Fall]] = {}
        places = [(row["cluster"], row["topic"], row["partition"]) for row in suspects.to_pylist()]
        for number, ends in LogEnds.by_place(sources.tables.table(_OF_SUSPECTS)):
            place = places[number]
            found = [
                fall for fall in falls(ends)
                if fall.before - fall.after >= settings.reset_records and not _is_anew(place, fall, sources)
            ]  # fmt: skip
            if found:
                gone[place] = found
        for (place, found), touched in zip(gone.items(), _touched(gone, sources.tables), strict=True):
            yield _finding(place, found, touched, sources, settings)


_ASKED = f"""
    SELECT e.*, {ASKED_US} AS asked_us
    FROM ({ENDS}) AS e JOIN exchanges AS x ON e.exchange_id = x.exchange_id
"""
"""Ends of logs with when they were asked for."""
_OF_SUSPECTS = f"""
    WITH asked AS ({_ASKED}), repeated AS (
        SELECT DISTINCT exchange_id, topic, partition FROM (
            SELECT exchange_id, topic, partition, row_number() OVER (
                PARTITION BY cluster, topic, partition, producer_id, producer_epoch, base_sequence
                ORDER BY ts, exchange_id
            ) AS number
            FROM batches SEMI JOIN shorter USING (cluster, topic, partition)
            WHERE source = 'produce' AND producer_id >= 0
        ) WHERE number > 1
    )
    SELECT s.place, e.us, e.asked_us, e.base, e.ended, e.kind = 'produced' AS is_write,
        r.exchange_id IS NOT NULL AS is_repeated, e.whose, e.server, e.exchange_id
    FROM asked AS e JOIN shorter AS s ON e.cluster = s.cluster AND e.topic = s.topic AND e.partition = s.partition
    LEFT JOIN repeated AS r ON e.exchange_id = r.exchange_id AND e.topic = r.topic AND e.partition = r.partition
    ORDER BY s.place, e.us, e.exchange_id, e.ordinal
"""
_TOUCHED = r"""
    SELECT kind, coalesce(group_id, '') AS group_id, client_id, any_value(client) AS client,
        max(coalesce(next_offset, "offset")) AS reached
    FROM events
    WHERE cluster = $cluster AND topic = $topic AND partition = $partition AND epoch_us(ts) < $us
        AND coalesce(error_code, 0) = 0 AND (
            (kind IN ('produced', 'fetched') AND next_offset > $begin) OR (kind = 'committed' AND "offset" > $begin)
        )
    GROUP BY kind, coalesce(group_id, ''), client_id ORDER BY ALL
"""

Place = tuple[str, str, int]


def _is_anew(place: Place, fall: Fall, sources: Sources) -> bool:
    """Whether the topic was deleted and recreated meanwhile."""
    cluster, topic, _ = place
    if any(fall.before_us <= us <= fall.us for us in sources.made_anew.get((cluster, topic), ())):
        return True
    changes = sources.by_subject(TOPIC_CHANGED).get((cluster, topic), ())
    return any(e.first_us <= fall.us and e.last_us >= fall.before_us for e in changes)


def _finding(
    place: Place,
    found: Sequence[Fall],
    touched: Mapping[str, list[str]],
    sources: Sources,
    settings: RecordsGone.Thresholds,
) -> Finding:
    cluster, topic, partition = place
    last = found[-1]
    gone = last.before - last.after
    writers, groups, readers = touched["writers"], touched["groups"], touched["readers"]
    given = "its offsets were given out again" if last.is_given_again else "its high watermark stays there"
    moved = f" ({last.servers[0]} answered before, {last.servers[1]} since)" if len(last.servers) > 1 else ""
    by = f" Written by {some(writers)}." if writers else ""
    of = f" Read by {some([*(f'group {name}' for name in groups), *readers])}." if groups or readers else ""
    return Finding(
        rule=RecordsGone.name, severity="critical", subject=f"{topic}-{partition}",
        state=sources.state(cluster, last.us, last.us, 1), cluster=cluster, topic=topic, partition=partition,
        group_id=None, first_us=last.us, last_us=last.us,
        summary=f"{pluralize(gone, 'acknowledged record')} of {topic}-{partition} {'is' if gone == 1 else 'are'} gone: "
        f"the log end fell from {last.before} to {last.after} at {clock(last.us)} UTC, and {given}{moved}.{by}{of}",
        advice=f"{_WRITE}{_READ if groups else ''}{_FIX}".format(
            begin=last.after, end=last.before - 1, topic=quote(topic), place=quote(f"{topic}:{partition}"),
            groups=f"{'Group' if len(groups) == 1 else 'Groups'} {some(groups)}",
            it="it" if len(groups) == 1 else "each",
        ),
        evidence=[one for fall in found for one in fall.evidence][-settings.max_evidence :],
        details={
            "lost": gone, "before": last.before, "after": last.after, "given_again": last.is_given_again,
            "writers": [name.partition(" at ")[0] for name in writers], "groups": groups, "clients": readers or writers,
            "servers": list(last.servers), "before_us": last.before_us,
            **earlier((one.us, one.us) for one in found), "enough_us": last.us,
        },
    )  # fmt: skip


def _touched(gone: Mapping[Place, Sequence[Fall]], tables: Tables) -> list[Mapping[str, list[str]]]:
    """Of each partition who wrote, who read, and which groups had committed what is gone."""
    asked = [
        {"cluster": cluster, "topic": topic, "partition": partition, "us": found[-1].us, "begin": found[-1].after}
        for (cluster, topic, partition), found in gone.items()
    ]
    return [_by_kind(rows) for rows in tables.of_each(_TOUCHED, asked)]


def _by_kind(rows: Sequence[Row]) -> Mapping[str, list[str]]:
    def of(kind: str) -> list[str]:
        return sorted({who(row.client_id, host_of(row.client)) for row in rows if row.kind == kind})

    groups: Collection[str] = {row.group_id for row in rows if row.kind == "committed" and row.group_id}
    return {"writers": of("produced"), "readers": of("fetched"), "groups": sorted(groups)}
