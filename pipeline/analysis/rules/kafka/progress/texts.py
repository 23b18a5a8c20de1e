"""What is reported of a group that does not get on, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from shlex import quote
from typing import Any

from pipeline.analysis.libraries import STORED_BY
from pipeline.analysis.rules.already import from_before
from pipeline.analysis.rules.format import wait_or_waits
from pipeline.analysis.rules.kafka.positions import unread_texts
from pipeline.analysis.rules.kafka.progress import track
from pipeline.analysis.rules.kafka.progress.track import RESET, SEEK, Trouble
from pipeline.analysis.rules.kafka.records_behind import records_behind
from pipeline.analysis.rules.model import NAMELESS
from pipeline.humanize import clock, first_of, pluralize, seconds


def summary(group_id: str, topic: str, trouble: Trouble) -> str:
    """What happened, in plain words."""
    place = topic if trouble.partition is None else f"{topic}-{trouble.partition}"
    if "shape" in trouble.figures:
        return unread_texts.summary(group_id, place, trouble.first_us, trouble.last_us, trouble.figures)
    return _SUMMARIES[trouble.rule](group_id, place, trouble, trouble.figures) + _lost(trouble.figures)


def advice(group_id: str, topic: str, trouble: Trouble) -> str:
    """What to do about it."""
    if "shape" in trouble.figures:
        return unread_texts.advice(group_id, topic, trouble.partition, trouble.figures)
    if "members" in trouble.figures:
        return _HUNG.format(who=_holders(trouble.figures))
    if "anew_us" in trouble.figures:
        return _ANEW
    if trouble.rule == track.STOPPED and "fetched_beyond" in trouble.figures:
        names = trouble.figures.get("committers")
        who = first_of(names) if isinstance(names, list) else "the client that committed last"
        return FETCHING.format(group=quote(group_id), who=who)
    partition, offset = trouble.partition, trouble.figures.get("offset")
    after = offset + 1 if isinstance(offset, int) else "OFFSET"
    is_deleted = trouble.rule == track.STALLED and bool(trouble.figures.get("lost_to_retention"))
    is_fetched = trouble.rule == track.DROPPED and "fetched_beyond" in trouble.figures
    return ADVICE[trouble.rule][is_deleted or is_fetched].format(
        group=quote(group_id), topic=quote(topic), partition=partition, offset=offset, after=after,
        place=quote(f"{topic}:{partition}"),
    )  # fmt: skip


def _lost(figures: Mapping[str, Any]) -> str:
    lost = figures.get("lost_to_retention")
    if not lost:
        return ""
    are = "is" if lost == 1 else "are"
    return f" Before these, {pluralize(lost, 'offset')} {are} lost to retention: the log no longer holds them."


def _span(trouble: Trouble) -> str:
    if trouble.figures.get("already"):
        return from_before(trouble.first_us, trouble.last_us)
    return f"from {clock(trouble.first_us)} to {clock(trouble.last_us)} UTC"


def _growing(group: str, place: str, trouble: Trouble, figures: Mapping[str, Any]) -> str:
    return (
        f"Group {group} falls further behind on {place}: its lag grew from {figures['lag_before']} to "
        f"{pluralize(figures['lag_after'], 'record')} {_span(trouble)}, although it commits and gets on."
    )


def _stopped(group: str, place: str, trouble: Trouble, figures: Mapping[str, Any]) -> str:
    if "members" in figures:
        return _hung(group, trouble, figures)
    since = "has committed nothing" if trouble.is_open else "committed nothing"
    waits = f"{records_behind(figures)} came to wait in {figures['partitions']} of its partitions"
    if figures.get("anew_us") is not None:
        return (
            f"Group {group} {'has committed' if trouble.is_open else 'committed'} no offset of the new log of {place} "
            f"since it was deleted and recreated, {_span(trouble)} ({_duration(trouble)}), while {waits}."
        )
    if figures.get("left_us") is not None:
        return (
            f"Group {group} {since} on {place} {_span(trouble)}: its last member left at {clock(figures['left_us'])} "
            f"UTC, in good order, and {waits}."
        )
    return (
        f"Group {group} {since} on {place} {_span(trouble)} ({_duration(trouble)}), while {waits}.{_fetches(trouble)}"
    )


def _fetches(trouble: Trouble) -> str:
    """That the group fetches what it does not commit, where that was seen."""
    beyond = trouble.figures.get("fetched_beyond")
    if not isinstance(beyond, int):
        return ""
    does = "fetches" if trouble.is_open else "fetched"
    return f" It still {does}: {pluralize(beyond, 'record')} beyond its commits."


def _hung(group: str, trouble: Trouble, figures: Mapping[str, Any]) -> str:
    seen_us = figures.get("heard_us")
    beats = (
        f" The coordinator answered it last at {clock(seen_us)} UTC."
        if seen_us and len(figures["members"]) == 1
        else ""
    )
    return (
        f"{_holders(figures)} of group {group} {'has' if len(figures['members']) == 1 else 'have'} committed nothing "
        f"of {first_of(figures['places'])} {_span(trouble)} ({_duration(trouble)}), while "
        f"{records_behind(figures)} came to wait there and the others of the group got on.{beats}"
    )


def _holders(figures: Mapping[str, Any]) -> str:
    """Members that hold what is not committed, by the names that a person knows."""
    return first_of(figures.get("clients") or figures["client_ids"] or figures["members"])


def _duration(trouble: Trouble) -> str:
    return seconds(trouble.last_us - trouble.first_us)


def _stalled(group: str, place: str, trouble: Trouble, figures: Mapping[str, Any]) -> str:
    others = " Its other partitions get on: it has paused this one, or seeks back." if figures["alone"] else ""
    return (
        f"Group {group} makes no progress on {place}: it committed offset {figures['offset']} "
        f"{pluralize(figures['commits'], 'time')} {_span(trouble)} and fetched nothing beyond it, while "
        f"{records_behind(figures)} {wait_or_waits(figures['records_behind'])}.{others}"
    )


def _dropped(group: str, place: str, trouble: Trouble, figures: Mapping[str, Any]) -> str:
    owner = figures.get("owner_name") or first_of(figures.get("clients", ())) or figures["owner"] or "the same client"
    if figures.get("already"):
        return (
            f"Group {group} left {place} out of its commits {_span(trouble)}, while {records_behind(figures)} came to "
            f"wait there and {owner}, which commits it since, committed other "
            f"partitions of the topic {pluralize(figures['other_commits'], 'time')}."
        )
    return (
        f"Group {group} left {place} out of its commits {_span(trouble)}: it is at offset "
        f"{figures['committed']}, {records_behind(figures)} behind, while other partitions of the "
        f"topic were committed {pluralize(figures['other_commits'], 'time')} by {owner}, "
        f"which holds it.{_fetches(trouble)}"
    )


def _regressed(group: str, place: str, trouble: Trouble, figures: Mapping[str, Any]) -> str:
    times = "once" if figures["falls"] == 1 else f"{figures['falls']} times {_span(trouble)}"
    return (
        f"The committed offset of group {group} on {place} went back {times}; most at "
        f"{clock(figures['at_us'])} UTC, when {_client(figures)} committed {figures['after']} after "
        f"{figures['before']}."
    )


def _rewound(group: str, place: str, trouble: Trouble, figures: Mapping[str, Any]) -> str:
    reached, by = figures["reached_us"], _client(figures)
    again = f"and was back there at {clock(reached)} UTC" if reached else "and is not back there yet"
    back = f"from offset {figures['before']} to {figures['after']}"
    many = figures["before"] - figures["after"]
    records = f"{pluralize(many, 'record')} {'is' if many == 1 else 'are'} processed again."
    when = f"at {clock(trouble.first_us)} UTC"
    if figures["how"] == RESET:
        return f"{by}, which is no member of it, set group {group} back on {place} {when} {back} {again}: {records}"
    if figures["how"] == SEEK:
        return f"{by} of group {group} sought back on {place} {when} {back} {again}: {records}"
    return f"Group {group} went back on {place} {when} {back} (committed by {by}) {again}: {records}"


def _client(figures: Mapping[str, Any]) -> str:
    return figures["client_id"] or NAMELESS


_SUMMARIES: Mapping[str, Callable[[str, str, Trouble, Mapping[str, Any]], str]] = {
    track.LAG_GROWING: _growing,
    track.STOPPED: _stopped,
    track.STALLED: _stalled,
    track.REWOUND: _rewound,
    track.COMMIT_REGRESSED: _regressed,
    track.DROPPED: _dropped,
}

_STOPPED = (
    "Now: `kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group} --members` lists who is still "
    "there; take a stack dump of a member that is, and restart it; start the application if none is. Fix: bound "
    "what one record may take (timeouts of remote calls), and end the process when a worker dies. If the group was "
    "shut down for good, `kafka-consumer-groups.sh --bootstrap-server BROKER --delete --group {group}`."
)
FETCHING = (
    "Now: check the log of {who} for failing commits (in Flink: checkpoints), and take a stack dump: a client that "
    "still fetches either processes records without committing them, or its library fetches ahead of a worker that "
    "hangs. If processing records twice does no harm, restart it: it reads again from the last commit "
    "(`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group}` shows it). Fix: commit or "
    f"acknowledge each record that was processed ({STORED_BY}), bound what one record may take (timeouts of remote "
    "calls, max.poll.interval.ms), end the process when its commits or checkpoints keep failing, and alarm on the "
    "group's lag."
)
_HUNG = (
    "Now: take a stack dump of {who}, then restart it: the others take over what it holds and read on from the last "
    "commit. Fix: bound what one record may take (timeouts of remote calls), end the process when a worker of it dies, "
    "and keep max.poll.interval.ms no longer than a partition may stand still."
)
_ANEW = (
    "Now: restart the members of the group: what they know of the topic (its id, leader epochs, whether it is there) "
    "is of the one that is gone; then see where they begin: offsets that they committed late are of that one, too. "
    "Fix: make a topic again while its groups are stopped, or delete its records instead "
    "(`kafka-delete-records.sh --bootstrap-server BROKER --offset-json-file FILE`); metadata.max.age.ms (librdkafka: "
    "topic.metadata.refresh.interval.ms) bounds how long a topic is missed."
)
SHARE_HANGING = (
    "Now: look at the members named here (a thread dump shows where they hang) and restart them; what they hold is "
    "delivered again when its lock ends. Fix: bound the work on one poll (max.poll.records, a timeout of the database "
    "or service that it waits for), renew locks of long work (AcknowledgeType.RENEW; "
    "group.share.record.lock.duration.ms), and start more members: in a share group several may read one partition."
)
SHARE_LEFT = (
    "Now: start the application again if it was not ended on purpose: the group is empty "
    "(`kafka-share-groups.sh --bootstrap-server BROKER --describe --group {group} --members`). Fix: restart the "
    "process when its consumer ends, and alarm on records that wait. If the group was ended for good, delete it "
    "(`kafka-share-groups.sh --bootstrap-server BROKER --delete --group {group}`)."
)
SHARE_SILENT = (
    "Now: look whether its processes run and reach the brokers (`kafka-share-groups.sh --bootstrap-server BROKER "
    "--describe --group {group} --members` names who is still there), and restart them. Fix: end the process when its "
    "consumer fails, so that it is restarted, and alarm on records that wait."
)
ADVICE: Mapping[str, tuple[str, ...]] = {
    track.LAG_GROWING: (
        "Now: start more members of the group, up to the number of partitions. Fix: make the work per record cheaper; "
        "look at what members wait for (database, remote calls), let them take more at once by fetch.min.bytes and "
        "max.poll.records (librdkafka: consume in batches), and look at skewed keys if only some partitions lag.",
    ),
    track.STOPPED: (_STOPPED, FETCHING, _HUNG, _ANEW, SHARE_HANGING, SHARE_LEFT, SHARE_SILENT),
    track.STALLED: (
        "Now: look at the record at this offset (`kafka-console-consumer.sh --bootstrap-server BROKER --topic "
        "{topic} --partition {partition} --offset {offset} --max-messages 1`); restart the member if it has paused "
        "the partition and never resumes, or set the group past the record while it is stopped "
        "(`kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets --to-offset {after} --group {group} "
        "--topic {place} --execute`). Fix: send a record that cannot be processed to a dead letter topic instead of "
        "retrying forever, and resume() in every path that ends a pause().",
        "Now: the record at offset {offset} is deleted: stop the group, set it to the start of the log "
        "(`kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets --to-earliest --group {group} --topic "
        "{place} --execute`), and start it. Fix: retention.ms and retention.bytes longer than the group may stand "
        "still, an alarm on its lag in seconds, and an end of the process when it does not get on.",
    ),
    track.REWOUND: (
        "Now: if the offsets were not set back on purpose (kafka-consumer-groups.sh, seek), stop the "
        "client named here before it commits again. Fix: let whatever these records cause downstream bear a second "
        "time; commit in order, from one place, and only what is assigned.",
    ),
    track.COMMIT_REGRESSED: (
        "Now: do not restart group {group} until its commits have passed the highest offset that it had committed "
        "before: it would read records twice. Fix: commit offsets of a partition in order and from one place: do not "
        "repeat a failed commitAsync that a newer one may have overtaken, nor commit what worker threads finish out of "
        "order, and let only the owner of a partition commit it.",
    ),
    track.DROPPED: (
        "Now: take a stack dump of the member named here, then restart it; it holds the partition, and its worker for "
        "it has died or hangs, or the partition is paused. Fix: end the process when a worker dies, and resume() what "
        f"was paused; where the application stores offsets itself ({STORED_BY}), store them for every partition that "
        "is assigned.",
        "Now: take a stack dump of the member named here; it still fetches the partition, so it is not paused. If a "
        "worker hangs, restart the member. If none does, the application does not store the offsets of what it has "
        "processed, and a restart only processes these records again. Fix: store the offset of each record that was "
        f"processed, for every partition that is assigned ({STORED_BY}), and end the process when a worker dies.",
    ),
}
"""By rule all that may be done; what else is not known of a trouble, the first."""
