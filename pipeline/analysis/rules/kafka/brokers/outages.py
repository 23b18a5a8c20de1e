"""What was refused again and again with no success between, and what of it is one and the same.

Of each place (a partition, the coordinator of a group) attempts are followed in order of time: an outage is a run of
refusals that no success interrupts, whoever had it. Outages of one cluster at the same time are one wave, as a broker
that goes away makes them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from pipeline.analysis.rules.model import NAMELESS, Finding, Sources, State
from pipeline.analysis.rules.rule import Rule
from pipeline.analysis.tables import ADDRESS
from pipeline.humanize import clock, first_of, pluralize, seconds

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.brokers.coordinator_unavailable import CoordinatorUnavailable
    from pipeline.analysis.rules.kafka.brokers.partition_unavailable import PartitionUnavailable

USUAL_GAPS = 3
"""An outage is at least so many times as long as the usual time from one success at its place to the next."""
_LAST_SUCCESSES = 100
"""Before an outage, which show how long it usually is from one to the next."""
_TOGETHER_US = 2_000_000
"""Outages that begin so shortly after another one ended belong to it: clients notice at different moments."""


BY = f"coalesce(nullif(client_id, ''), '{NAMELESS}') || ' at ' || host_of(client)"
"""Of a row of ``events`` or ``states`` who was refused, as SQL: see Attempt."""


class Attempt(NamedTuple):
    """A refusal, and of what.

    Attributes:
        place: ``topic-partition``; or what has a coordinator, as people name it.
        us: µs since the epoch.
        error: its name.
        by: client id and host.
    """

    cluster: str
    place: str
    us: int
    exchange_id: str
    error: str
    server: str
    by: str


@dataclass(frozen=True, slots=True)
class Outage:
    """A run of refusals. Times are µs since the epoch.

    Attributes:
        refused: in order of time.
        healed_us: the success that ended it; None: none was seen.
        usual_us: median time between two successes before; None: not known.
    """

    refused: tuple[Attempt, ...]
    healed_us: int | None
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
        """Whether this many refusals came over so long, and over several of the usual times between successes."""
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
    def healed_us(self) -> int | None:
        """The last of the successes that ended it all; None: not all of it was seen to end."""
        ends = [outage.healed_us for outage in self.outages]
        return None if None in ends else max(us for us in ends if us is not None)


def lasting_waves(
    refused: Iterable[Attempt],
    served: Callable[[Sequence[Attempt]], Mapping[tuple[str, str], Sequence[int]]],
    settings: PartitionUnavailable.Thresholds | CoordinatorUnavailable.Thresholds,
) -> Iterator[Wave]:
    """The waves of what was unavailable for long enough.

    Args:
        refused: refusals.
        served: of some of them, by cluster and place, the times of successes, ascending, µs since the epoch.
        settings: how many refusals, and over how long.
    """
    least, least_us = settings.unavailable_refusals, int(settings.unavailable_seconds * 1_000_000)
    often = lasting(refused, least, least_us)
    if often:
        yield from waves(one for one in outages(often, served(often)) if one.lasts(least, least_us))


def outages(refused: Iterable[Attempt], served: Mapping[tuple[str, str], Sequence[int]]) -> Iterator[Outage]:
    """The outages of all places.

    Args:
        refused: refusals.
        served: by cluster and place the times of successes, ascending, µs since the epoch.
    """
    ordered = sorted(refused, key=lambda a: (a.cluster, a.place, a.us, a.exchange_id))
    for where, some in groupby(ordered, key=lambda a: (a.cluster, a.place)):
        times, run = served.get(where, ()), list[Attempt]()
        for one in some:
            if run and (healed_us := _first_after(times, run[-1].us)) is not None and healed_us <= one.us:
                yield Outage(tuple(run), healed_us, _usual_us(times, run[0].us))
                run = []
            run.append(one)
        yield Outage(tuple(run), _first_after(times, run[-1].us), _usual_us(times, run[0].us))


def _first_after(times: Sequence[int], us: int) -> int | None:
    place = bisect_right(times, us)
    return times[place] if place < len(times) else None


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


def _usual_us(times: Sequence[int], until_us: int) -> int | None:
    end = bisect_right(times, until_us)
    gaps = [after - before for before, after in pairwise(times[max(end - _LAST_SUCCESSES, 0) : end])]
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


_ANSWERED = f"""
    SELECT {ADDRESS["server"]} AS server, list(epoch_us(response_ts) ORDER BY response_ts) AS times
    FROM exchanges WHERE protocol = 'kafka' AND response_ts IS NOT NULL GROUP BY server
"""


def silent_brokers(sources: Sources, wave: Wave, servers: Iterable[str]) -> list[str]:
    """Brokers of the cluster that answered before a wave and nothing for more than half of it."""
    answered: dict[str, list[int]] = sources.once(
        "times of answers by server", lambda: {row.server: row.times for row in sources.tables.rows(_ANSWERED)}
    )
    first_us, last_us = wave.refused[0].us, wave.refused[-1].us
    silent = []
    for server in sorted(servers):
        times = answered.get(server, [])
        before, until = bisect_left(times, first_us), bisect_right(times, last_us)
        longest = max(after - us for us, after in pairwise((first_us, *times[before:until], last_us)))
        if before and 2 * longest > last_us - first_us:
            silent.append(server)
    return silent


def finding(
    wave: Wave, rule: type[Rule], subject: str, what: str, advice: str, sources: Sources, max_evidence: int, least: int
) -> Finding:
    """The finding about a wave; topic, partition and group are not set.

    Args:
        wave: it.
        rule: whose finding it is: critical until it has ended, then a warning.
        subject: of the finding.
        what: what was unavailable, for people.
        advice: for people.
        sources: what rules look at.
        max_evidence: exchange ids to keep.
        least: refusals that were enough.
    """
    refused, healed_us = wave.refused, wave.healed_us
    first_us, last_us = refused[0].us, refused[-1].us
    of_cluster = {
        server for server in sources.server_ends if sources.catalog.cluster_at(server, last_us) == wave.cluster
    }
    silent = silent_brokers(sources, wave, of_cluster)
    hurt = [name for name, _ in Counter(one.by for one in refused).most_common()]
    errors = sorted({one.error for one in refused})
    state: State = (
        "resolved" if healed_us else sources.state_unhealed(wave.cluster, first_us, last_us, len(refused))
    )  # fmt: skip
    parts = [
        f"{what} for {seconds((healed_us or last_us) - first_us)}, from {clock(first_us)} UTC on: "
        f"{pluralize(len(refused), 'request')} of {first_of(hurt)} {'was' if len(refused) == 1 else 'were'} refused "
        f"({', '.join(errors)})",
        f"{first_of(silent)} answered nothing meanwhile" if silent else "",
        f"It was over at {clock(healed_us)} UTC, when all of it was served again"
        if healed_us
        else "No success was seen since"
        if state == "ongoing"
        else f"It is unknown since {clock(last_us)} UTC: no client has asked again, and no success was seen since",
    ]
    return Finding(
        rule=rule.name, severity="warning" if state == "resolved" else "critical", subject=subject, state=state,
        cluster=wave.cluster, topic=None, partition=None, group_id=None, first_us=first_us,
        last_us=last_us, summary=". ".join(part for part in parts if part) + ".", advice=advice,
        evidence=[*dict.fromkeys(one.exchange_id for one in refused)][:max_evidence],
        details={
            "places": wave.places, "times": len(refused), "clients": hurt, "kinds": errors,
            "silent_brokers": silent, "healed_us": healed_us,
            **({"known_until_us": last_us} if state == "unknown" else {}),
            "enough_us": refused[min(least, len(refused)) - 1].us,
        },
    )  # fmt: skip
