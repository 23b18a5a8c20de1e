"""A day of two hundred groups, made of recorded conversations: health raises no alarm; the cost is measured.

`python -m tests.captures.day [--write] [--groups N] [--hours H]` plays recordings of `rhythms` side by side in one
cluster: copies with names, addresses and ids of their own, most of them slower than they were recorded, so that one
life fills the day; others as they were, again and again with their offsets continuing, so that each life is a deploy.
Some groups fall ill. What all of it holds is judged as `wirelake diagnose --follow` does, in the memory that it has.
Exit code 1 if anything above info was reported of the healthy, or an illness was not.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.derive import Gathered
from pipeline.analysis.fit import fit
from pipeline.config.settings import StreamSettings
from pipeline.embedded.streaming_diagnoser import StreamingDiagnoser
from pipeline.tables import EXCHANGES_WITH_BODIES
from tests.captures.matrix import PAGE, write
from tests.captures.simulation.conversation import PARTS, Conversation
from tests.captures.simulation.life import Life, prefix_of
from tests.captures.simulation.pace import Pace
from tests.pipeline.analysis.rules.incidents import recordings

BEGIN, END = "<!-- day: made by python -m tests.captures.day -->", "<!-- end of day -->"

MIDNIGHT_US = 1_798_761_600_000_000
"""2027-01-01T00:00:00Z."""
_SECOND, _HOUR = 1_000_000, 3_600_000_000
_TAKEN_EACH_US, _JUDGED_EACH_US = 300 * _SECOND, 14_400 * _SECOND

SLOWER = {
    "healthy_rhythms": 2, "healthy_java": 8, "healthy_bursts": 6, "healthy_jobs": 15, "healthy_eager": 1,
    "healthy_cooperative": 1, "healthy_kip848": 1, "healthy_scaling": 1, "healthy_idle": 5, "healthy_aiokafka": 2,
}  # fmt: skip
"""Recordings that can be played slower, once for most of the day, and how many copies a day of 200 groups has."""
PAUSING = {
    "healthy_transactions": 2, "healthy_retention": 1, "healthy_streams": 1, "healthy_connect": 1,
    "healthy_operations": 1, "healthy_restarts": 1, "healthy_mongodb": 1,
}  # fmt: skip
"""Recordings whose requests name times (of transactions, of quotas): played as they are, with hours between."""
SICK = (
    "sick_members", "sick_progress_1s", "sick_progress_30s", "sick_commit_1s", "sick_commit_30s",
    "sick_transaction_1s", "sick_transaction_30s",
)  # fmt: skip
"""Played once each."""
_GROUPS = 200
_STRETCHED = (60, 125)
"""How many times slower those are played in a day that can be."""
_UNEVEN = 1.12
"""What a life may take longer than that for its clock is uneven."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A copy of a recording, and when it lives."""

    copy: int
    conversation: Conversation
    paces: Sequence[Pace]

    @property
    def expected(self) -> set[tuple[str, str]]:
        """Rule and subject (as recorded) of what must be found."""
        return set(self.conversation.recording.expected)


@dataclass
class Told:
    """What a simulation came to.

    Attributes:
        findings: all that was told, by copy, rule and subject (as recorded), as severe as it ever was.
        incidents: ids of all incidents above info that were ever told.
        judged: how often.
        judging_s, gathering_s: CPU seconds of rules and incidents (with the derivations that they read), and of
            taking in.
    """

    groups: int
    hours: float
    parts: list[Part]
    findings: dict[tuple[int, str, str], Row] = field(default_factory=dict)
    incidents: set[str] = field(default_factory=set)
    exchanges: int = 0
    weighed: int = 0
    judged: int = 0
    judging_s: float = 0.0
    gathering_s: float = 0.0
    simulating_s: float = 0.0
    begun_bytes: int = 0
    peak_bytes: int = 0

    @property
    def loud(self) -> dict[tuple[int, str, str], Row]:
        """Those above info."""
        return {key: row for key, row in self.findings.items() if row["severity"] != "info"}

    @property
    def declared(self) -> set[tuple[int, str, str]]:
        """Those that the sick must give."""
        return {(part.copy, *each) for part in self.parts for each in part.expected}

    @property
    def unexpected(self) -> list[Row]:
        """Above info, and not declared."""
        return [row for key, row in self.loud.items() if key not in self.declared]

    @property
    def missing(self) -> set[tuple[int, str, str]]:
        """Declared, and not told."""
        return self.declared - set(self.findings)


def cast(groups: int, hours: float, settings: StreamSettings, seed: int = 0) -> list[Part]:
    """Who plays, and when.

    Args:
        groups: about how many consumer groups there are; the sick are played however few.
        hours: how long it continues.
        settings: how recordings are read.
        seed: of all that is random.
    """
    random, end_us = Random(seed), MIDNIGHT_US + int(hours * _HOUR)
    share = groups / _GROUPS
    wanted = {name: max(round(times * share), 1) for name, times in (SLOWER | PAUSING).items()}
    wanted |= dict.fromkeys(SICK if share >= 1 else SICK[::3], 1)
    parts: list[Part] = []
    known = 0
    for recording in sorted(recordings(wanted), key=lambda one: one.is_healthy):
        if recording.is_healthy and known >= groups:
            continue
        conversation = Conversation.of(recording, settings)
        for _ in range(wanted[recording.name]):
            if recording.is_healthy and known + len(conversation.groups) > groups:
                break
            known += len(conversation.groups)
            parts.append(Part(len(parts), conversation, list(_lives(conversation, hours, end_us, random))))
    return parts


def _lives(conversation: Conversation, hours: float, end_us: int, random: Random) -> Iterator[Pace]:
    first_us, last_us = conversation.span_us
    name, day = conversation.recording.name, hours / 24
    if name in PAUSING:
        at_us = MIDNIGHT_US + int(random.uniform(0, 3) * _HOUR * day)
        while at_us < end_us:
            pace = Pace(first_us, last_us, at_us, 1.0, random)
            yield pace
            at_us = pace.end_us + int(random.uniform(4, 10) * _HOUR * day)
        return
    stretch = max(random.uniform(*_STRETCHED) * day, 1.0) if name in SLOWER else 1.0
    longest_us = int((last_us - first_us) * stretch * _UNEVEN)
    yield Pace(
        first_us, last_us, MIDNIGHT_US + random.randrange(max(end_us - MIDNIGHT_US - longest_us, 1)), stretch, random
    )


def play(parts: list[Part], hours: float, settings: StreamSettings, tell: Callable[[str], None] = print) -> Told:
    """Play all of it, and judge it as it continues."""
    told = Told(len({(p.copy, group) for p in parts for group in p.conversation.groups}), hours, parts)
    following = StreamingDiagnoser(settings)
    gathering = following.gathering
    coming = sorted(
        (pace.start_us, part.copy, number, pace) for part in parts for number, pace in enumerate(part.paces)
    )
    living: list[Life] = []
    end_us = MIDNIGHT_US + int(hours * _HOUR)
    judged_us = MIDNIGHT_US
    told.begun_bytes = _most_memory()
    for now_us in range(MIDNIGHT_US + _TAKEN_EACH_US, end_us + 1, _TAKEN_EACH_US):
        began = time.process_time()
        facts: list[Any] = []
        while coming and coming[0][0] < now_us:
            _, copy, number, pace = coming.pop(0)
            living.append(Life(parts[copy].conversation, copy, number, pace))
            facts += living[-1].facts()
        pieces = [life.until(now_us) for life in living]
        living = [life for life in living if not life.is_over]
        simulated = time.process_time()
        told.simulating_s += simulated - began
        if pieces:
            gathering.take(_together(pieces, gathering.kept.catalog.merged(facts)))
        told.gathering_s += time.process_time() - simulated
        if gathering.is_full or now_us - judged_us >= _JUDGED_EACH_US or now_us == end_us:
            _judge(following, told, now_us, tell)
            judged_us = now_us
        if gathering.is_full:
            gathering.drop()
    told.exchanges = gathering.exchanges
    told.peak_bytes = _most_memory()
    return told


def _most_memory() -> int:
    """That this process ever had, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _together(pieces: Sequence[dict[str, pa.Table]], catalog: ClusterCatalog) -> Gathered:
    tables = {part: pa.concat_tables([piece[part] for piece in pieces]).combine_chunks() for part in PARTS}
    return Gathered(pending=fit(pa.table({}), EXCHANGES_WITH_BODIES), catalog=catalog, **tables)


_PREFIX = re.compile(r"team(\d+)\.")


def _judge(following: StreamingDiagnoser, told: Told, now_us: int, tell: Callable[[str], None]) -> None:
    began = time.process_time()
    changes = following.judge()
    told.judging_s += time.process_time() - began
    told.judged += 1
    tell(
        f"{_clock(now_us)} {len(following.incidents)} incidents, {following.gathering.exchanges:,} exchanges, "
        f"{told.judging_s:.0f} s of judging, {told.gathering_s:.0f} s of taking in, {told.simulating_s:.0f} s of play"
    )
    told.weighed += following.gathering.kept.exchanges.num_rows
    told.incidents |= {row["incident_id"] for row in following.incidents if row["severity"] != "info"}
    for change in changes:
        row = dict(change.row)
        key = (copy_of(row), row["rule"], _PREFIX.sub("", row["subject"]))
        known = told.findings.get(key)
        if known is None or _SEVERITIES.index(row["severity"]) < _SEVERITIES.index(known["severity"]):
            told.findings[key] = row
            if row["severity"] != "info" and key not in told.declared:
                tell(f"{_clock(now_us)} {row['severity']} {row['rule']} {row['subject']}: {row['summary']}")


_SEVERITIES = ("critical", "warning", "info")


def copy_of(row: Row) -> int:
    """The copy that a finding is of; by a name, or by a server's address."""
    named = _PREFIX.search(f"{row['subject']} {row['group_id']} {row['topic']} {row['details']}")
    at = re.search(r"10\.[23]\.(\d+)\.\d+", f"{row['subject']} {row['cluster']} {row['details']}")
    found = named or at
    return int(found[1]) if found else -1


def _clock(us: int) -> str:
    minutes = (us - MIDNIGHT_US) // (60 * _SECOND)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def table(told: Told) -> str:
    """What it came to, as Markdown."""
    names = Counter(part.conversation.recording.name for part in told.parts)
    lives = sum(len(part.paces) for part in told.parts)
    sick = [part for part in told.parts if part.expected]
    found = len(told.declared) - len(told.missing)
    rules: dict[tuple[str, str], set[int]] = defaultdict(set)
    for (copy, rule, _), row in told.findings.items():
        rules[rule, row["severity"]].add(copy)
    frames = 2 * told.exchanges
    lines = [
        f"{told.groups} groups in {len(told.parts)} copies of {len(names)} recordings, {lives} lives of them in "
        f"{told.hours:g} hours, {frames / 1e6:.1f} million frames. {len(sick)} of the copies fall ill.",
        "",
        "| what | how much |",
        "|---|---|",
        f"| findings above info of who is healthy | {len(told.unexpected)} |",
        f"| findings that the sick must give | {found} of {len(told.declared)} |",
        f"| incidents above info | {len(told.incidents)} |",
        f"| judged | {told.judged} times, {told.weighed / max(told.judged, 1):,.0f} exchanges each |",
        f"| derivations, rules and incidents, CPU of a frame that is judged | "
        f"{1e6 * told.judging_s / max(2 * told.weighed, 1):.1f} µs |",
        f"| the same of a frame that came, for it is judged more than once | "
        f"{1e6 * told.judging_s / max(frames, 1):.1f} µs |",
        f"| memory at most, and before the first is judged, for recordings | {told.peak_bytes / 1e9:.1f} GB, "
        f"{told.begun_bytes / 1e9:.1f} GB |",
        "",
        "| rule | severity | copies in which it was reported |",
        "|---|---|---|",
    ]
    lines += [f"| `{rule}` | {severity} | {len(copies)} |" for (rule, severity), copies in sorted(rules.items())]
    return "\n".join(lines)


def main(arguments: list[str], tell: Callable[[str], None] = print, page: Path = PAGE) -> int:
    """Play what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(description="A day of two hundred groups: is health kept quiet about?")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/findings.md")
    parser.add_argument("--groups", type=int, default=_GROUPS)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    settings = StreamSettings()
    told = play(cast(options.groups, options.hours, settings, options.seed), options.hours, settings, tell)
    for copy, rule, subject in sorted(told.missing):
        tell(f"{rule} of {prefix_of(copy)} {subject} was not told")
    text = table(told)
    tell(text)
    if options.write:
        write(text, page, BEGIN, END)
    return 1 if told.unexpected or told.missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
