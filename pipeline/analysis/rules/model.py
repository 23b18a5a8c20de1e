"""A finding, and what a rule may look at."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import orjson

from decoder.fields import as_int64
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.moments.model import Moment, text_of
from pipeline.analysis.tables import Tables

if TYPE_CHECKING:
    from pipeline.analysis.rules.episode import Episode
    from pipeline.analysis.rules.kafka.clients.traffic import Traffic
    from pipeline.analysis.rules.kafka.groups.coming_and_going import Step

T = TypeVar("T")
State = Literal["ongoing", "resolved", "unknown"]
STATE_WORDS = {"resolved": "resolved", "unknown": "may be ongoing"}
"""What people read in place of a state; nothing where it is ongoing."""
NAMELESS = "a client without client_id"
SEVERITIES = ("critical", "warning", "info")
"""The most severe first."""

_LEAST_QUIET_US = 5_000_000


@dataclass(frozen=True, slots=True)
class Sources:
    """What rules look at; of a connection that two agents saw, one copy.

    Attributes:
        tables: by these names, with the columns of the tables in the lake (pipeline.tables) that they come from, of the
            time that is looked at: ``exchanges``, ``events`` (offset_events), ``batches`` (record_batches), ``states``
            (state_events), ``timeline`` (offset_timeline), ``transactions``, ``gaps``, ``connections``,
            ``commands`` (mongo_commands); and ``waiting``, requests without an answer yet, with the columns of the
            same names of ``exchanges``.
            In ``events`` and ``batches`` a topic without a known name has its id as ``topic``.
        catalog: clusters and topic names as known now.
        resolved_after_us: see RuleThresholds.resolved_after_seconds.
        ends, server_ends: by cluster, and by Kafka broker, the time of the last exchange, µs since the epoch.
        made_anew: by cluster and topic the times, µs since the epoch, from which on its name stands for another topic.
        episodes: by rule, what its symptoms were cut into (pipeline.analysis.rules.episodes).
        traffic: who uses which api.
        newest: by cluster and api key the newest version that a broker of it offers.
        steps: when members entered their groups and left them, in the order of time.
        kept: see :meth:`once`.
    """

    tables: Tables
    catalog: ClusterCatalog = field(default_factory=ClusterCatalog)
    resolved_after_us: int = 60_000_000
    ends: Mapping[str, int] = field(default_factory=dict)
    server_ends: Mapping[str, int] = field(default_factory=dict)
    made_anew: Mapping[tuple[str, str], Sequence[int]] = field(default_factory=dict)
    episodes: Mapping[str, Sequence[Episode]] = field(default_factory=dict)
    traffic: Sequence[Traffic] = ()
    newest: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    steps: Sequence[Step] = ()
    kept: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def once(self, what: str, work: Callable[[], T]) -> T:
        """What several rules need, which the first of them works out."""
        if what not in self.kept:
            self.kept[what] = work()
        found: T = self.kept[what]
        return found

    def by_subject(self, rule: str) -> Mapping[tuple[str, str], Sequence[Episode]]:
        """Episodes of a rule by cluster and subject, in the order in which they come."""

        def found() -> Mapping[tuple[str, str], Sequence[Episode]]:
            by_place: dict[tuple[str, str], list[Episode]] = {}
            for one in self.episodes.get(rule, ()):
                by_place.setdefault((one.cluster, one.subject), []).append(one)
            return by_place

        return self.once(f"episodes of {rule} by subject", found)

    def state(self, cluster: str, first_us: int, last_us: int, times: int, *, server: str | None = None) -> State:
        """What is known at the end of the data of a trouble seen ``times`` times from ``first_us`` to ``last_us``.

        It is resolved once it has kept quiet for three of its own intervals, and for five seconds at least; what came
        once only, once it has kept quiet for ``resolved_after_us``. Quiet counts while somebody listens: if ``server``,
        where it showed, was not seen for so long after it although others were, it is unknown. A rule that knows the
        sign of recovery goes by that instead.
        """
        interval = (last_us - first_us) // (times - 1) if times > 1 else self.resolved_after_us
        quiet = max(3 * interval, _LEAST_QUIET_US) if times > 1 else self.resolved_after_us
        if self.ends.get(cluster, last_us) - last_us <= quiet:
            return "ongoing"
        seen_us = None if server is None else self.server_ends.get(server)
        return "unknown" if seen_us is not None and seen_us - last_us <= quiet else "resolved"

    def state_unhealed(self, cluster: str, first_us: int, last_us: int, times: int) -> State:
        """The same of what has a sign of recovery, which was not seen: open while somebody tries, then unknown."""
        return "ongoing" if self.state(cluster, first_us, last_us, times) == "ongoing" else "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnosis (a row of ``gold.findings``). Times are µs since the epoch, UTC.

    Attributes:
        state: ``open`` if it held at the end of the data, ``closed`` if it was seen to be over, ``unknown`` if nothing
            was seen of it any more although the data continued.
        topic, partition, group_id: None if it is about no one of them.
        moments: how it happened, in the order of time (pipeline.analysis.moments.findings); rules leave it empty.
    """

    rule: str
    severity: str
    subject: str
    state: State
    cluster: str
    topic: str | None
    partition: int | None
    group_id: str | None
    first_us: int
    last_us: int
    summary: str
    advice: str
    evidence: Sequence[str] = ()
    details: Mapping[str, object] = field(default_factory=dict)
    moments: Sequence[Moment] = ()

    @property
    def finding_id(self) -> str:
        """Stable as long as rule, cluster and subject are the same."""
        return hashlib.sha256("\0".join((self.rule, self.cluster, self.subject)).encode()).hexdigest()[:32]

    def row(self) -> dict[str, Any]:
        """The columns of ``gold.findings`` by name, with ``first_us`` and ``last_us`` for its timestamps."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            **values,
            "finding_id": self.finding_id,
            "evidence": list(self.evidence),
            "details": _text(self.details),
            "moments": text_of(self.moments),
        }


class Who(NamedTuple):
    """A client as the wire shows it."""

    client_id: str | None
    member_id: str | None
    address: str

    def __str__(self) -> str:
        member = f"member {self.member_id}, " if self.member_id else ""
        return f"{self.client_id or NAMELESS} ({member}{self.address})"

    def details(self) -> dict[str, str | None]:
        """For the ``details`` column."""
        return {"client_id": self.client_id, "member_id": self.member_id, "address": self.address}


def _text(details: Mapping[str, object]) -> str:
    """As JSON; a sum that 64 bits do not hold is not known."""
    try:
        return orjson.dumps(dict(details), option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        return orjson.dumps(_within_64_bits(dict(details)), option=orjson.OPT_SORT_KEYS).decode()


def _within_64_bits(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _within_64_bits(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_within_64_bits(inner) for inner in value]
    return as_int64(value) if type(value) is int else value
