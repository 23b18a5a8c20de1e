"""What was refused again and again with no success between, and what of it is one and the same?

Of each place (a partition, the coordinator of a group) attempts are followed in order of time: an outage is a run of
refusals that no success interrupts, whoever had it. Outages of one cluster at the same time are one wave, as a broker
that goes away makes them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from pipeline.analysis.rules.model import Finding, Sources, clock, seconds
from pipeline.analysis.rules.rule import Rule
from pipeline.analysis.tables import ADDRESS, Tables

USUAL_GAPS = 3
"""An outage is at least so many times as long as the usual time from one success at its place to the next."""
_TOGETHER_US = 2_000_000
"""Outages that begin so shortly after another one ended belong to it: clients notice at different moments."""


class Attempt(NamedTuple):
    """What one answer says of one place.

    Attributes:
        place: ``topic-partition``; or what has a coordinator, as people name it.
        us: µs since the epoch.
        error: name of the refusal; None: it was a success.
        by: client id and host.
    """

    cluster: str
    place: str
    us: int
    exchange_id: str
    error: str | None
    server: str
    by: str


@dataclass(frozen=True, slots=True)
class Outage:
    """A run of refusals. Times are µs since the epoch.

    Attributes:
        refused: in order of time.
        healed: the success that ended it; None: none was seen.
        usual_us: median time between two successes before; None: not known.
    """

    refused: tuple[Attempt, ...]
    healed: Attempt | None
    usual_us: int | None

    @property
    def first_us(self) -> int:
        """Time of the first refusal."""
        return self.refused[0].us

    @property
    def last_us(self) -> int:
        """Time of the last refusal."""
        return self.refused[-1].us

    def lasts(self, least: int, least_us: int) -> bool:
        """Whether so many refusals came over so long, and over several of the usual times between successes."""
        long_enough = max(least_us, USUAL_GAPS * (self.usual_us or 0))
        return len(self.refused) >= least and self.last_us - self.first_us >= long_enough


@dataclass(frozen=True, slots=True)
class Wave:
    """Outages of one cluster at the same time."""

    outages: tuple[Outage, ...]

    @property
    def cluster(self) -> str:
        """Where."""
        return self.outages[0].refused[0].cluster

    @property
    def refused(self) -> list[Attempt]:
        """All refusals, in order of time."""
        return sorted((one for outage in self.outages for one in outage.refused), key=lambda a: (a.us, a.exchange_id))

    @property
    def places(self) -> list[str]:
        """What was unavailable, in order of name."""
        return sorted({outage.refused[0].place for outage in self.outages})

    @property
    def healed(self) -> Attempt | None:
        """The last of the successes that ended it all; None: not all of it was seen to end."""
        ends = [outage.healed for outage in self.outages]
        return None if None in ends else max((one for one in ends if one), key=lambda a: a.us)


def outages(attempts: Iterable[Attempt]) -> Iterator[Outage]:
    """The outages of all places.

    Args:
        attempts: of each place in order of time, place by place.
    """
    for _, some in groupby(attempts, key=lambda a: (a.cluster, a.place)):
        run: list[Attempt] = []
        successes: list[int] = []
        for one in some:
            if one.error is not None:
                run.append(one)
                continue
            if run:
                yield Outage(tuple(run), one, _usual_us(successes))
                run = []
            successes.append(one.us)
        if run:
            yield Outage(tuple(run), None, _usual_us(successes))


def lasting(refused: Iterable[Attempt], least: int, least_us: int) -> list[Attempt]:
    """The refusals of places that were refused so often, over so long: only there successes are worth asking for."""
    by_place: defaultdict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for one in refused:
        by_place[one.cluster, one.place].append(one)
    return [
        one
        for some in by_place.values()
        if len(some) >= least and max(o.us for o in some) - min(o.us for o in some) >= least_us
        for one in some
    ]


def _usual_us(successes: Sequence[int]) -> int | None:
    gaps = [after - before for before, after in pairwise(successes)]
    return int(median(gaps)) if gaps else None


def waves(found: Iterable[Outage]) -> Iterator[Wave]:
    """The waves, cluster by cluster, in order of time."""
    ordered = sorted(found, key=lambda o: (o.refused[0].cluster, o.first_us, o.refused[0].place))
    for _, some in groupby(ordered, key=lambda o: o.refused[0].cluster):
        wave: list[Outage] = []
        for outage in some:
            if wave and outage.first_us > max(o.last_us for o in wave) + _TOGETHER_US:
                yield Wave(tuple(wave))
                wave = []
            wave.append(outage)
        yield Wave(tuple(wave))


def silent_brokers(tables: Tables, wave: Wave, servers: Iterable[str]) -> list[str]:
    """Brokers of the cluster that answered before a wave and nothing for more than half of it."""
    first_us, last_us = wave.refused[0].us, wave.refused[-1].us
    rows = tables.rows(
        f"""
        SELECT {ADDRESS["server"]} AS server, list(epoch_us(response_ts) ORDER BY response_ts) AS times
        FROM exchanges WHERE protocol = 'kafka' AND response_ts IS NOT NULL AND epoch_us(response_ts) <= $last_us
        GROUP BY server ORDER BY server
        """,
        last_us=last_us,
    )
    known, silent = set(servers), []
    for row in rows:
        times = [us for us in row.times if us >= first_us]
        longest = max(after - before for before, after in pairwise((first_us, *times, last_us)))
        if row.server in known and row.times[0] < first_us and 2 * longest > last_us - first_us:
            silent.append(row.server)
    return silent


def finding(
    wave: Wave, rule: Rule, subject: str, what: str, advice: str, sources: Sources, max_evidence: int, least: int
) -> Finding:
    """The finding about a wave; topic, partition and group are not set.

    Args:
        wave: it.
        rule: whose finding it is: critical while it lasts, a warning when it has ended.
        subject: of the finding.
        what: what was unavailable, for people.
        advice: for people.
        sources: what rules look at.
        max_evidence: exchange ids to keep.
        least: refusals that were enough.
    """
    refused, healed = wave.refused, wave.healed
    first_us, last_us = refused[0].us, refused[-1].us
    of_cluster = {server for server in sources.server_ends if sources.facts.cluster_at(server, last_us) == wave.cluster}
    silent = silent_brokers(sources.tables, wave, of_cluster)
    hurt = [name for name, _ in Counter(one.by for one in refused).most_common()]
    errors = sorted({one.error for one in refused if one.error})
    state = "closed" if healed else sources.state(wave.cluster, first_us, last_us, len(refused))
    parts = [
        f"{what} for {seconds((healed.us if healed else last_us) - first_us)}, from {clock(first_us)} UTC on: "
        f"{len(refused)} requests of {_some(hurt)} were refused ({', '.join(errors)})",
        f"{_some(silent)} answered nothing meanwhile" if silent else "",
        f"It was over at {clock(healed.us)} UTC, when {healed.server} served {healed.place} again"
        if healed
        else "No success was seen since",
    ]
    return Finding(
        rule=rule.name, severity="warning" if state == "closed" else "critical", subject=subject, state=state,
        cluster=wave.cluster, topic=None, partition=None, group_id=None, first_us=first_us,
        last_us=last_us, summary=". ".join(part for part in parts if part) + ".", advice=advice,
        evidence=[*dict.fromkeys(one.exchange_id for one in refused)][:max_evidence],
        details={
            "places": wave.places, "times": len(refused), "clients": hurt, "kinds": errors,
            "silent_brokers": silent, "healed_us": healed.us if healed else None,
            "enough_us": refused[min(least, len(refused)) - 1].us,
        },
    )  # fmt: skip


def _some(names: Sequence[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
