"""A symptom, and symptoms that belong together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

NAMES_KEPT = 50


@dataclass(frozen=True, slots=True)
class Episode:
    """Symptoms of one rule and subject without a long pause between them. Times are µs since the epoch.

    Attributes:
        server, servers: where the last symptom was shown, and where any was, at most fifty.
        kinds, names: how many distinct ``what`` its symptoms have, and which, at most fifty.
        callers, clients: how many showed it, and who, ``client_id at address``, at most fifty.
        total, peak: sum and maximum of their values.
        evidence, times_us: exchange ids and times of the first of them, as many as ``max_evidence``.
        unhealed: symptoms after which their client did not succeed (see Shown.healed_us).
        run, run_us: the most symptoms of a client between two of its successes, and the longest such time.
        healed_us: when the client of the last symptom succeeded after it; None if that was not seen.
        before: first and last time of its episodes before this one, in order of time. It makes no other episode of it:
            what is known of the one by itself is found by the one that knows what was before.
        each: its symptoms in order of time, of rules that look at each.
        answers: names of the apis and of what they were answered, distinct, at most fifty.
    """

    rule: str
    cluster: str
    server: str
    subject: str
    times: int
    first_us: int
    last_us: int
    total: float
    peak: float
    kinds: int
    names: tuple[str, ...]
    callers: int
    clients: tuple[str, ...]
    topic: str | None
    partition: int | None
    group_id: str | None
    evidence: tuple[str, ...]
    times_us: tuple[int, ...]
    servers: tuple[str, ...] = ()
    unhealed: int = 0
    run: int = 0
    run_us: int = 0
    healed_us: int | None = None
    before: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    each: tuple[Shown, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()

    @property
    def span_us(self) -> int:
        """From the first symptom to the last."""
        return self.last_us - self.first_us

    def with_another(self, other: Episode) -> Episode:
        """This one and what others showed meanwhile."""
        names, clients = sorted({*self.names, *other.names}), sorted({*self.clients, *other.clients})
        shown = sorted(zip((*self.times_us, *other.times_us), (*self.evidence, *other.evidence), strict=True))
        kept = shown[: max(len(self.evidence), len(other.evidence))]
        healed = (self.healed_us, other.healed_us)
        return replace(
            self, times=self.times + other.times, first_us=min(self.first_us, other.first_us),
            total=self.total + other.total, peak=max(self.peak, other.peak),
            kinds=max(self.kinds, other.kinds, len(names)), names=tuple(names[:NAMES_KEPT]),
            callers=max(self.callers, other.callers, len(clients)), clients=tuple(clients[:NAMES_KEPT]),
            evidence=tuple(one for _, one in kept), times_us=tuple(us for us, _ in kept),
            servers=tuple(sorted({*self.servers, *other.servers}))[:NAMES_KEPT],
            unhealed=self.unhealed + other.unhealed, run=max(self.run, other.run),
            run_us=max(self.run_us, other.run_us),
            each=tuple(sorted((*self.each, *other.each), key=lambda one: (one.us, one.exchange_id))),
            healed_us=None if None in healed else max(us for us in healed if us is not None),
            answers=tuple(sorted({*self.answers, *other.answers})[:NAMES_KEPT]),
        )  # fmt: skip


class Shown(NamedTuple):
    """A symptom and who showed it where. Times are µs since the epoch.

    Attributes:
        us: when the request was sent.
        client: ip:port.
        latency_us: from then to the answer; 0 without one.
        healed_us: when the client succeeded in what had failed; None if it was not seen to, or of other rules.
    """

    server: str
    client_id: str | None
    client_ip: str
    us: int
    exchange_id: str
    rule: str
    subject: str
    what: str
    topic: str | None
    partition: int | None
    group_id: str | None
    value: float
    client: str = ""
    connection_id: str = ""
    api_name: str = ""
    latency_us: int = 0
    healed_us: int | None = None


def exchanges_of(episodes: Iterable[Episode]) -> list[str]:
    """The ids of all exchanges that show some episodes, each once, in order."""
    return sorted({one.exchange_id for episode in episodes for one in episode.each})
