"""What is reported of positions that are gone, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote

from pipeline.analysis.rules.kafka.positions.resets import (
    BEYOND,
    COMMIT_GONE,
    NO_COMMIT,
    OUT_OF_RANGE,
    SHORTER,
    Reset,
)
from pipeline.humanize import pluralize

_SHOWN = 3
_FROM_SOURCE = "records that retention deleted can be restored from their source only"
_SET_BACK = "Now: if the skipped records are needed, stop the group and set it back ({command})"
SKIPPED, SKIPPED_AND_LOST = f"{_SET_BACK}.", f"{_SET_BACK}; {_FROM_SOURCE}."
LOST = f"Now: {_FROM_SOURCE}; the group reads all later records by itself."
AGAIN = (
    "Now: the group reads these records again by itself; if it does harm to process them twice, stop the group and set "
    "it to where it should continue (`{command}`)."
)
GONE = (
    "Now: unless somebody deleted the topic and created it again, records that were in the log from offset {end} on "
    "are lost: write them again from their source if they are needed, and find the replica that led before "
    "(`kafka-topics.sh --bootstrap-server BROKER --describe --topic {topic}`), whose disk may still hold them."
)
NEVER_SEEN = (
    "Now: find out why the position is beyond the end of the log: the log lost records (an unclean election, a disk "
    "that was replaced), or the offset was never in it (a commit by mistake, an offset of another topic or cluster). "
    "Until that is known, do not rely on what was written there before."
)
FIX = {
    OUT_OF_RANGE: "Fix: retention.ms and retention.bytes of the topic longer than the longest halt of the group, an "
    "alarm on lag in seconds, and auto.offset.reset=none where neither skipping nor reading again is right.",
    COMMIT_GONE: "Fix: offsets.retention.minutes of the brokers longer than the longest halt of the group, and "
    "auto.offset.reset=none where neither skipping nor reading again is right.",
    SHORTER: "Fix: unclean.leader.election.enable=false, three replicas, min.insync.replicas=2 and acks=all, so that "
    "no broker leads that lacks acknowledged records; and auto.offset.reset=none where a reader must not continue.",
    BEYOND: "Fix: unclean.leader.election.enable=false; commit only offsets of records that were read; and "
    "auto.offset.reset=none where neither skipping nor reading again is right.",
    NO_COMMIT: "Fix: auto.offset.reset=earliest; and see that group.id is not a new one with each start.",
}


def how(worst: Reset, places: str) -> str:
    """Where the reader was and where it continued."""
    if worst.cause == NO_COMMIT:
        return f"had no commit on {places} and began at the end of the log, offset {worst.after}"
    if worst.cause == COMMIT_GONE:
        return f"found its commit {worst.before} on {places} gone and continued at offset {worst.after}"
    if worst.cause == SHORTER:
        return (
            f"was at offset {worst.before} of {places}, and the log now ends at {worst.log_end}: it reached "
            f"{worst.ended_at} before, so that {pluralize(worst.cut, 'record')} or more are gone from it; the reader "
            f"continued at {worst.after}"
        )
    is_short = worst.cause == BEYOND
    why = f"the log ends at {worst.log_end}" if is_short else f"the log begins at {worst.log_start}"
    known = is_short or worst.log_start is not None
    return (
        f"was at offset {worst.before} of {places}, which no longer exists"
        f"{f' ({why})' if known else ''}, and continued at {worst.after}"
    )


def now(alike: Sequence[Reset], group: str, topic: str) -> str:
    """What can be had back, and how."""
    back = [one for one in alike if one.skipped]
    is_lost = any(one.lost for one in alike)
    if alike[0].cause == SHORTER:
        return GONE.format(end=min(one.log_end or 0 for one in alike), topic=quote(topic))
    if alike[0].cause == BEYOND:
        return NEVER_SEEN
    if not back:
        return (
            LOST
            if is_lost
            else AGAIN.format(command=f"{_tool(group, _places(topic, alike))} --to-offset OFFSET --execute")
        )
    offsets = {one.partition: max(one.before or 0, one.log_start or 0) for one in back}
    if all(one.before is None or one.before <= (one.log_start or 0) for one in back):
        command = f"`{_tool(group, _places(topic, back))} --to-earliest --execute`"
    elif len(back) == 1:
        command = f"`{_tool(group, _places(topic, back))} --to-offset {offsets[back[0].partition]} --execute`"
    else:
        shown = ", ".join(f"{partition}: {offset}" for partition, offset in list(offsets.items())[:_SHOWN])
        more = ", … (details)" if len(offsets) > _SHOWN else ""
        command = (
            f"`{_tool(group, f'{topic}:PARTITION')} --to-offset OFFSET --execute` for each at its offset: {shown}{more}"
        )
    return (SKIPPED_AND_LOST if is_lost else SKIPPED).format(command=command)


def _places(topic: str, some: Iterable[Reset]) -> str:
    """Topic and partitions as ``--topic`` takes them."""
    return f"{topic}:{','.join(str(partition) for partition in sorted({one.partition for one in some}))}"


def _tool(group: str, topic: str) -> str:
    of_group = f"--group {quote(group or 'GROUP')} --topic {quote(topic)}"
    return f"kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets {of_group}"


def records_of(alike: Iterable[Reset]) -> str:
    """What became of the records."""
    some_resets = list(alike)
    lost, skipped, again = (sum(getattr(one, name) for one in some_resets) for name in ("lost", "skipped", "again"))
    parts = []
    if lost:
        parts.append(f"{pluralize(lost, 'record')} deleted before the group read them")
    if skipped:
        parts.append(f"{pluralize(skipped, 'record')} skipped that are still there")
    if again:
        parts.append(f"up to {pluralize(again, 'record')} read again")
    return ", ".join(parts)
