"""Rule ``request_refused``: a broker refuses a request again and again, with a code that no other rule judges.

Meaning: whatever the client wants of this api does not happen. Evidence: the error code of each answer, at each level
of its body, and that no request of the same client, api and thing (partition, group or transactional id) was accepted
between them. What an error means and who can act is taken from the table of error codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pydantic import Field

from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.errors import error_name
from decoder.kafka.schema.table import api_names
from pipeline.analysis.claims.kafka.brokers import REQUEST_REFUSED
from pipeline.analysis.codes.advice import BY_CODE, advice_of
from pipeline.analysis.codes.model import LOSS, TRANSIENT
from pipeline.analysis.rules.case.entities import CLIENT, GROUP, TOPIC
from pipeline.analysis.rules.case.texts import REFUSED
from pipeline.analysis.rules.counted import clients, finding, last_of_each, place, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.by_code import codes_of
from pipeline.analysis.rules.kafka.clients.held_offsets import HELD_ADVICE, held
from pipeline.analysis.rules.kafka.links import STANDSTILL
from pipeline.analysis.rules.kafka.positions.unread import out_of_range
from pipeline.analysis.rules.kafka.progress.thresholds import UnreadThresholds
from pipeline.analysis.rules.kafka.refusals import about_of
from pipeline.analysis.rules.kafka.thresholds import REFUSED_AGAIN_TIMES, RETRY_WITHOUT_SUCCESS_SECONDS
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.rules.rule import OF_CLIENT, Counting, Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.humanize import clock


class RequestRefused(Rule):
    """A broker refuses the same request of a client again and again."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        refused_again_times: Count = REFUSED_AGAIN_TIMES
        refused_briefly_seconds: Seconds = Field(
            default=10.0,
            description="How long requests are refused with an error that passes by itself, such as a timeout, before "
            "it is a finding",
        )
        retry_without_success_seconds: Seconds = RETRY_WITHOUT_SUCCESS_SECONDS

    name = "request_refused"
    title = "Request refused"
    protocol = "kafka"
    about = "clients and brokers"
    severities = ("critical", "warning", "info")
    reads = ("exchanges", "events", "states")
    advice = (BY_CODE, HELD_ADVICE)
    urgency = REFUSED
    gathered = OF_CLIENT
    counting = Counting(is_refused=True)
    effects = (
        Link(("connection_churn",), (CLIENT,), "who is refused connects again"),
        Link(("rebalance_storm",), (GROUP,), "who is refused an assignment joins again"),
        Link(STANDSTILL, (GROUP, TOPIC), "what is refused is neither read nor committed"),
        Link(STANDSTILL, (CLIENT, TOPIC), "what is refused is neither read nor committed"),
    )
    claims = REQUEST_REFUSED

    @classmethod
    def detect(cls, sources: Sources, settings: RequestRefusedThresholds) -> Iterator[Finding]:
        """Apply the rule: one finding for each client, api, error and topic, group or transactional id."""
        some = _without_positions(
            (one for one in sources.episodes.get(cls.name, ()) if _lasts(one, settings)), sources, settings
        )
        last = last_of_each(some)
        for episode, waits in zip(last, held(last, sources.tables), strict=True):
            severity = _severity(episode, settings)
            summary = _summary(episode) if waits is None else f"{waits.words} {_summary(episode)}"
            advice = (waits.advice if waits is not None else "") or advice_of(codes_of(episode))
            made = finding(episode, severity, summary, advice, sources)
            times_us = episode.times_us
            enough = times_us[min(settings.refused_again_times, len(times_us)) - 1]
            more = {"answers": [list(one) for one in episode.answers], "enough_us": enough, **_transaction(episode)}
            more |= {} if waits is None else waits.details
            yield replace(made, state=_state(episode, sources), details={**made.details, **more})


_WORK = frozenset(
    api_names()[api]
    for api in (
        ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE,
    )
)  # fmt: skip
"""Apis without which a client neither reads nor writes; refused requests of others hold up who administers."""

_OUT_OF_RANGE = ((api_names()[ApiKey.FETCH], error_name(KafkaError.OFFSET_OUT_OF_RANGE)),)
_TRANSACTIONS = frozenset(
    api_names()[api]
    for api in (
        ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN,
    )
)  # fmt: skip
"""Requests that name a transactional id."""


class RequestRefusedThresholds(RequestRefused.Thresholds, UnreadThresholds):
    """With those of positions that are out of range."""


def _without_positions(
    episodes: Iterable[Episode], sources: Sources, settings: RequestRefusedThresholds
) -> Iterator[Episode]:
    """All but those of positions out of range that are reported as partitions that their group does not read."""
    for one in episodes:
        about = one.cluster, one.topic, one.subject.partition("/")[0]
        if one.answers != _OUT_OF_RANGE or about not in _not_read(sources, settings):
            yield one


def _not_read(sources: Sources, settings: RequestRefusedThresholds) -> set[tuple[str, str, str]]:
    """Cluster, topic and client of partitions that are reported as not read since their position was out of range."""
    return sources.once(
        "who does not read since a position was out of range",
        lambda: {(row.cluster, row.topic, row.client_id or "?") for row in out_of_range(sources, settings)},
    )


def _state(episode: Episode, sources: Sources) -> State:
    """It is over once it was accepted; who has not asked again may still be refused."""
    if episode.healed_us is not None:
        return "resolved"
    return sources.state_unhealed(episode.cluster, episode.first_us, episode.last_us, episode.times)


def _transaction(episode: Episode) -> dict[str, str]:
    """The transactional id that it is about, for what follows from it."""
    thing = _thing(episode)
    is_known = thing and episode.topic is None and all(api in _TRANSACTIONS for api, _ in episode.answers)
    return {"transactional_id": thing} if is_known else {}


def _thing(episode: Episode) -> str:
    """What is behind the error in its subject."""
    return about_of(episode.subject, episode.names[0] if episode.names else "")


def _passes(episode: Episode) -> bool:
    """Whether clients send the request again, and the error usually passes."""
    return all(one.kind == TRANSIENT for one in codes_of(episode))


def _lasts(episode: Episode, settings: RequestRefusedThresholds) -> bool:
    """Whether it is more than a try, and more than what passes by itself."""
    if episode.run < settings.refused_again_times:
        return False
    least_s = (
        settings.retry_without_success_seconds if episode.healed_us is not None else settings.refused_briefly_seconds
    )
    return not _passes(episode) or episode.run_us >= least_s * 1_000_000


def _severity(episode: Episode, settings: RequestRefusedThresholds) -> str:
    is_long = episode.run_us >= settings.retry_without_success_seconds * 1_000_000
    if episode.healed_us is not None:
        return "warning" if is_long else "info"
    is_work = any(api in _WORK for api, _ in episode.answers)
    is_loss = any(one.kind == LOSS for one in codes_of(episode))
    return "critical" if is_work and (is_long or is_loss) else "warning"


def _summary(episode: Episode) -> str:
    error = episode.names[0] if episode.names else "an error"
    facts = codes_of(episode)
    api = episode.answers[0][0] if episode.answers else "a request"
    end = (
        "none was accepted since"
        if episode.healed_us is None
        else f"since {clock(episode.healed_us)} UTC it is accepted"
    )
    return (
        f"{episode.server} refused {api} of {clients(episode)}{_about(episode)} {when(episode)} with "
        f"{error}, and {end}.{f' {error} means: {facts[0].meaning}' if facts else ''}"
    )


def _about(episode: Episode) -> str:
    """The partition, topic, group or transactional id that was refused, for people."""
    group = "" if episode.group_id is None else f"group {episode.group_id}"
    if episode.topic is not None:
        return f" for {place(episode)}{' of ' if group else ''}{group}"
    about = group or _thing(episode)
    return f" for {about}" if about else ""
