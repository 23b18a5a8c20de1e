"""Share groups (KIP-932): a record that is delivered again and again, and a group that does not get on.

They are findings of ``poison_record`` and ``stopped``: for who runs the group it is the same trouble as in a group that
commits offsets, only seen in other requests. In a share group there is no committed offset: each record is accepted,
released or rejected by itself, and a poison record holds up no one else, until the broker gives it up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from pipeline.analysis.rules.kafka.groups.poison_lives import NAME as POISON_RECORD
from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM, patience_of
from pipeline.analysis.rules.kafka.progress.texts import SHARE_HANGING, SHARE_LEFT, SHARE_SILENT
from pipeline.analysis.rules.kafka.progress.track import STOPPED
from pipeline.analysis.rules.kafka.share_groups.share_states import (
    ACCEPT,
    REJECT,
    RELEASE,
    Beat,
    Delivery,
    SharePlace,
    beats,
    deliveries,
    start_offsets,
)
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.recurrence import Span, apart, last_of_each
from pipeline.analysis.safety.work import affordable, check_work
from pipeline.analysis.tables import Tables
from pipeline.humanize import clock, pluralize, seconds

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.groups.poison_record import PoisonRecord
    from pipeline.analysis.rules.kafka.progress.stopped import Stopped

    class ShareThresholds(PoisonRecord.Thresholds, Stopped.Thresholds):
        """Thresholds of rules that share a pass."""


SHARE_ADVICE = (
    "Now: read the record (`kafka-console-consumer.sh --bootstrap-server BROKER --topic {topic} --partition "
    "{partition} --offset {first} --max-messages 1`) and see why members give it back; to continue at once, let the "
    "consumer reject it (AcknowledgeType.REJECT). Fix: reject what can never be processed and write it to a topic of "
    "its own; release only what may succeed later. group.share.delivery.count.limit says after how many deliveries the "
    "broker gives a record up: it is then skipped by this group without a trace. In explicit mode "
    "(share.acknowledgement.mode=explicit) each record needs its own acknowledge() before the lock ends "
    "(group.share.record.lock.duration.ms). librdkafka: its share consumer has the same acknowledge types; the "
    "properties of groups are set at the broker (`kafka-configs.sh --bootstrap-server BROKER --alter --entity-type "
    "groups --entity-name {group} --add-config share.delivery.count.limit=N`)."
)

_FOLLOWED = (1_000, 100, 10, 1)
"""Offsets of one delivery that are looked at one by one: what comes again in larger batches is no single record. The
first if they are no more than ``_MOST_FOLLOWED`` in all; else of smaller deliveries alone."""
_MOST_FOLLOWED = 20_000
_MOST_MET = 100_000
"""Deliveries times offsets that are followed in them, of a partition; of more, the widest deliveries are left out."""
_MOST_PLACES_ASKED = 200
"""Partitions times silences that are looked at; of more, the last silences."""
_REMEMBERED = 200
"""Gaps by which the rhythm of a group is known."""


def share_group_troubles(sources: Sources, settings: ShareThresholds) -> list[Finding]:
    """Apply both."""
    seen = deliveries(sources)
    if not seen:
        return []
    by_place: defaultdict[SharePlace, list[Delivery]] = defaultdict(list)
    for one in seen:
        by_place[one.place].append(one)
    poisoned = (one for place, some in sorted(by_place.items()) for one in _poison(place, some, sources, settings))
    return last_of_each([*poisoned, *_stopped(by_place, sources, settings)])


# --- poison_record ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Suspect:
    """An offset that was delivered more than once."""

    offset: int
    deliveries: int = 1
    shown: list[Delivery] = field(default_factory=list)
    acknowledged: list[Delivery] = field(default_factory=list)

    @property
    def span(self) -> Span:
        """From its first delivery to the last that is known of it."""
        return self.shown[0].us, max(one.us for one in (*self.shown, *self.acknowledged))

    @property
    def end(self) -> str:
        """``accepted``, ``rejected``, or else how it was given back the last time."""
        last = self.acknowledged[-1] if self.acknowledged else None
        if last is not None and last.us >= self.shown[-1].us:
            return {ACCEPT: "accepted", REJECT: "rejected", RELEASE: "released"}.get(last.what or 0, "named")
        return "held"


def suspects(some: Sequence[Delivery], least: int) -> list[_Suspect]:
    """Offsets of one share-partition that were delivered ``least`` times and more.

    Args:
        some: its deliveries and acknowledgements, in order of time.
        least: deliveries, as the broker counts them.
    """
    repeated = [one for one in some if one.what is None and one.deliveries >= least]
    again = {offset for one in _followed(repeated) for offset in range(one.first, one.last + 1)}
    found = {offset: _Suspect(offset) for offset in sorted(again)}
    ordered = list(found)
    spans = [(bisect_left(ordered, one.first), bisect_left(ordered, one.last + 1)) for one in some]
    for place in affordable([max(end - begin, 0) for begin, end in spans], _MOST_MET):
        one, (begin, end) = some[place], spans[place]
        for offset in ordered[begin:end]:
            suspect = found[offset]
            if one.what is None:
                suspect.shown.append(one)
                suspect.deliveries = max(suspect.deliveries, one.deliveries)
            else:
                suspect.acknowledged.append(one)
    return [one for one in found.values() if one.shown]


def _followed(repeated: Sequence[Delivery]) -> list[Delivery]:
    """Those whose offsets are looked at one by one."""
    for most in _FOLLOWED:
        narrow = [one for one in repeated if one.last - one.first < most]
        if sum(one.last - one.first + 1 for one in narrow) <= _MOST_FOLLOWED:
            return narrow
    return narrow[-_MOST_FOLLOWED:]


def _poison(place: SharePlace, some: list[Delivery], sources: Sources, settings: ShareThresholds) -> Iterator[Finding]:
    """The findings about what came again and again while other records were accepted: one for each time."""
    by_span: defaultdict[Span, list[_Suspect]] = defaultdict(list)
    for one in suspects(some, settings.share_deliveries):
        by_span[one.span].append(one)
    troubles = apart(by_span, int(settings.resolved_after_seconds * 1_000_000))
    for spans in troubles[-max(_MOST_MET // len(some), 1) :]:
        bad = sorted((one for span in set(spans) for one in by_span[span]), key=lambda one: one.offset)
        found = _poisoned_by(bad, place, some, sources, settings)
        if found is not None:
            yield found


def _poisoned_by(
    bad: Sequence[_Suspect], place: SharePlace, some: list[Delivery], sources: Sources, settings: ShareThresholds
) -> Finding | None:
    first_us = min(one.shown[0].us for one in bad)
    last_us = max(max(d.us for d in (*one.shown, *one.acknowledged)) for one in bad)
    offsets = {one.offset for one in bad}
    others = sum(
        one.last - one.first + 1
        for one in some
        if one.what == ACCEPT and one.first not in offsets and first_us <= one.us <= last_us
    )
    if not others:  # nothing gets on: it is not these records
        return None
    ends = Counter(one.end for one in bad)
    quiet = sources.ends.get(place.cluster, last_us) - last_us
    lock_us = max(one.lock_us for suspect in bad for one in suspect.shown)
    is_over = not ends["held"] and (not ends["released"] or quiet > max(lock_us, 1_000_000))
    members = sorted({one.client for suspect in bad for one in suspect.shown})
    most = max(one.deliveries for one in bad)
    summary = (
        f"{_range(bad)} of {place.topic}-{place.partition} came to {_some(members)} of share group {place.group} up to "
        f"{pluralize(most, 'time')} from {clock(first_us)} to {clock(last_us)} UTC, while "
        f"{pluralize(others, 'other record')} {'was' if others == 1 else 'were'} accepted. "
        f"{_fate(ends, is_over=is_over)}."
    )
    shown = sorted({(d.us, d.exchange_id) for one in bad for d in (*one.shown, *one.acknowledged)})
    return Finding(
        rule=POISON_RECORD, severity="warning" if is_over else "critical", subject=str(place),
        state="resolved" if is_over else "ongoing", cluster=place.cluster, topic=place.topic, partition=place.partition,
        group_id=place.group, first_us=first_us, last_us=last_us, summary=summary,
        advice=SHARE_ADVICE.format(
            topic=quote(place.topic), partition=place.partition, first=bad[0].offset, group=quote(place.group)
        ),
        evidence=[exchange_id for _, exchange_id in shown][: settings.max_evidence],
        details={
            "offsets": [one.offset for one in bad][:50], "deliveries": most, "ends": dict(ends), "members": members,
            "group_type": "share", "start_offset": start_offsets(sources).get(place),
            "enough_us": min(d.us for one in bad for d in one.shown if d.deliveries >= settings.share_deliveries),
        },
    )  # fmt: skip


def _fate(ends: Counter[str], *, is_over: bool) -> str:
    """What became of the suspects, for people."""
    words = {
        "accepted": "was accepted at last",
        "rejected": "was rejected at last",
        "held": "is held by a member that says nothing of it",
        "released": "was released and not delivered again: the group skips it at its delivery limit"
        if is_over
        else "was released, and will be delivered again",
    }
    if sum(ends.values()) == 1:
        return f"It {words.get(next(iter(ends)), 'was named')}"
    return "Of them " + "; ".join(f"{times} {words.get(end, 'named')}" for end, times in sorted(ends.items()))


def _range(bad: Sequence[_Suspect]) -> str:
    if len(bad) == 1:
        return f"The record at offset {bad[0].offset}"
    return f"{len(bad)} records at offsets {bad[0].offset} to {bad[-1].offset}"


# --- stopped ------------------------------------------------------------------------------------------------------


def _stopped(
    by_place: dict[SharePlace, list[Delivery]], sources: Sources, settings: ShareThresholds
) -> Iterator[Finding]:
    """A group that acknowledges nothing more of a topic while records are written to it; its partitions are one."""
    by_topic: defaultdict[tuple[str, str, str], list[SharePlace]] = defaultdict(list)
    for place in sorted(by_place):
        by_topic[place.cluster, place.group, place.topic].append(place)
    alive: defaultdict[tuple[str, str], list[Beat]] = defaultdict(list)
    for beat in beats(sources):
        alive[beat.cluster, beat.group].append(beat)
    starts, left = start_offsets(sources), _MOST_PLACES_ASKED
    silent: list[tuple[tuple[str, str, str], list[Silence]]] = []
    for what, places in by_topic.items():
        times_us = sorted(one.us for place in places for one in by_place[place] if one.what is not None)
        quiet = list(silences(times_us, sources.ends.get(what[0], 0), settings))[-max(left // len(places), 1) :]
        left -= len(quiet) * len(places)
        if left < 0:
            break
        if quiet:
            silent.append((what, quiet))
    written = _written(sources.tables, {topic for (_, _, topic), _ in silent}) if silent else {}
    for what, quiet in silent:
        cluster, group, topic = what
        steps = {
            place: (written.get((cluster, topic, place.partition), ([], [])), _acknowledged(by_place[place]))
            for place in by_topic[what]
        }
        for silence in quiet:
            waiting = {
                place: count
                for place, (ends, acknowledged) in steps.items()
                if (count := _waiting(ends, acknowledged, silence)) >= settings.behind_records
            }
            if waiting:
                some = [one for place in waiting for one in by_place[place]]
                yield _halt(what, waiting, some, alive[cluster, group], silence, starts)
    check_work("silent partitions of share groups", _MOST_PLACES_ASKED - left, _MOST_PLACES_ASKED)


class Silence(NamedTuple):
    """A time without acknowledgements, µs since the epoch.

    Attributes:
        enough_us: from when on it was longer than usual.
        is_over: whether there was one after it.
    """

    from_us: int
    to_us: int
    enough_us: int
    is_over: bool


def silences(times_us: Sequence[int], end_us: int, settings: ShareThresholds) -> Iterator[Silence]:
    """The times that acknowledgements kept out for much longer than before, in order of time.

    What was such a time is not the group's rhythm, unless it comes as often as it takes to know one.

    Args:
        times_us: of acknowledgements, ascending, µs since the epoch.
        end_us: time of the last exchange of the cluster.
        settings: the shortest silence.
    """
    spans = list(pairwise([*times_us, end_us] if times_us and end_us > times_us[-1] else times_us))
    usual: list[int] = []
    unusual = 0
    for from_us, to_us in spans:
        gap = to_us - from_us
        if gap >= settings.stopped_seconds * 1_000_000:
            known = usual[-_REMEMBERED:]
            patience = patience_of(known, len(known), settings.stopped_seconds, settings.silence_periods)
            if patience is not None and gap >= patience:
                yield Silence(from_us, to_us, from_us + patience, to_us != end_us or to_us == times_us[-1])
                unusual += 1
                if unusual < KNOWN_RHYTHM:
                    continue
        usual.append(gap)


_Steps = tuple[list[int], list[int]]
"""Times, µs since the epoch, ascending, and what was the highest offset from each on."""


def _written(tables: Tables, topics: Iterable[str]) -> dict[tuple[str, str, int], _Steps]:
    """How far partitions of these topics were written."""
    rows = tables.rows(
        """
        WITH ends AS (
            SELECT cluster, topic, partition, epoch_us(ts) AS us,
                max(greatest(coalesce(next_offset, 0), coalesce(high_watermark, 0))) AS written
            FROM events WHERE kind IN ('produced', 'fetched') AND topic IN (SELECT unnest($topics)) GROUP BY ALL
        ), so_far AS (
            SELECT * REPLACE (max(written) OVER (PARTITION BY cluster, topic, partition ORDER BY us) AS written)
            FROM ends
        )
        FROM so_far QUALIFY written IS DISTINCT FROM lag(written) OVER (
            PARTITION BY cluster, topic, partition ORDER BY us
        )
        ORDER BY us
        """,
        topics=sorted(topics),
    )
    found: defaultdict[tuple[str, str, int], _Steps] = defaultdict(lambda: ([], []))
    for row in rows:
        times, offsets = found[row.cluster, row.topic, row.partition]
        times.append(row.us)
        offsets.append(row.written)
    return found


def _acknowledged(some: Iterable[Delivery]) -> _Steps:
    """How far a group acknowledged a partition."""
    known = sorted((one.us, one.last) for one in some if one.what in (ACCEPT, REJECT))
    return [us for us, _ in known], list(accumulate((last for _, last in known), max))


def _at(steps: _Steps, us: int) -> int | None:
    """What was the highest offset at a time."""
    times, offsets = steps
    number = bisect_right(times, us)
    return offsets[number - 1] if number else None


def _waiting(written: _Steps, acknowledged: _Steps, silence: Silence) -> int:
    """Records of a partition that were written and not acknowledged by the group at a time."""
    end, behind = _at(written, silence.to_us), _at(acknowledged, silence.from_us)
    return 0 if end is None or behind is None else max(0, end - behind - 1)


def _halt(
    what: tuple[str, str, str],
    waiting: dict[SharePlace, int],
    some: list[Delivery],
    of_group: list[Beat],
    silence: Silence,
    starts: Mapping[SharePlace, int],
) -> Finding:
    cluster, group, topic = what
    from_us, to_us, enough_us, is_over = silence
    records = sum(waiting.values())
    held = sorted({one.client for one in some if one.what is None and one.us >= from_us - one.lock_us})
    left = {beat.member for beat in of_group if beat.is_leaving and beat.us <= to_us}
    going_on = sorted({b.client for b in of_group if from_us < b.us <= to_us and b.member not in left})
    if going_on:
        doing = "hanging in what they got last" if held else "no delivery to them was seen"
        why, advice = f"{_some(going_on)} still sent heartbeats: alive, but {doing}", SHARE_HANGING
    elif left:
        why, advice = "its members had left the group", SHARE_LEFT
    else:
        why, advice = "its members have sent nothing since", SHARE_SILENT
    last = max((one for one in some if one.what is not None and one.us <= from_us), key=lambda d: (d.us, d.exchange_id))
    return Finding(
        rule=STOPPED, severity="critical" if going_on or not left else "warning", subject=f"{group}/{topic}",
        state="resolved" if is_over else "ongoing", cluster=cluster, topic=topic, partition=None, group_id=group,
        first_us=from_us, last_us=to_us,
        summary=(
            f"Share group {group} acknowledged nothing of {topic} from {clock(from_us)} to {clock(to_us)} UTC "
            f"({seconds(to_us - from_us)}), while {pluralize(records, 'record')} came to wait in {len(waiting)} of its "
            f"partitions: {why}.{' It went on then.' if is_over else ''}"
        ),
        advice=advice.format(group=quote(group)), evidence=[last.exchange_id],
        details={
            "records": records, "partitions": sorted(place.partition for place in waiting), "group_type": "share",
            "members": going_on, "held_by": held,
            "start_offsets": {str(p.partition): starts[p] for p in waiting if p in starts},
            "enough_us": enough_us,
        },
    )  # fmt: skip


def _some(names: Sequence[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
