"""Rule ``mongo_command_failed``: a command fails again and again, a login is refused, a driver refuses a server.

Evidence: symptoms of single commands, by namespace and command, and their share of what was sent
(:mod:`pipeline.analysis.rules.mongodb.failure_rates`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from pipeline.analysis.claims.mongodb import MONGO_COMMAND_FAILED
from pipeline.analysis.codes.advice import BY_CODE, advice_of
from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import CLIENT, NAMESPACE
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, advised, own_clients, server
from pipeline.analysis.rules.counted import finding
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.mongodb.command_texts import command, namespace, share
from pipeline.analysis.rules.mongodb.elsewhere import CURSOR_NOT_FOUND, ELSEWHERE_ADVICE, opened_elsewhere
from pipeline.analysis.rules.mongodb.failure_rates import Share as ShareOfSent
from pipeline.analysis.rules.mongodb.failure_rates import codes_of, counted, failed_words, judged, shares_of
from pipeline.analysis.rules.mongodb.old_servers import ADVICE, AREA, old_servers
from pipeline.analysis.rules.mongodb.refused import is_login, refused_login, waits_ms
from pipeline.analysis.rules.mongodb.thresholds import MONGO_FAILURE_RUN, MONGO_FAILURE_SHARE
from pipeline.analysis.rules.rule import OF_NAMESPACE, Counting, Link, Rule
from pipeline.analysis.rules.thresholds import AUTH_FAILED_TIMES, Count, RuleThresholds, Share
from pipeline.humanize import first_of, listed, pluralize


def _failed(case: Case) -> str:
    opened_at = [str(name) for name in case.details.get("opened_at", ())]
    if opened_at:
        return _opened_elsewhere(case, opened_at)
    area = case.details.get("area")
    if area == "login":
        return f"{server(case)} refuses the login of {case.who} {_often(case)}: {case.kinds}"
    failed = f"{command(case)} fails {share(case)} ({case.kinds})"
    if area == "rate limit":
        return f"{case.who} exceeds the rate of requests that {server(case)} allows: {failed}"
    if area == AREA:
        details = case.details
        return (
            f"{server(case)} is too old for the driver of {case.who}: it speaks wire versions up to "
            f"{details.get('wire_version')} (MongoDB {details.get('mongodb')}), {details.get('driver')} "
            f"{details.get('driver_version')} needs {details.get('least_wire_version')} or newer "
            f"(MongoDB {details.get('least_mongodb')})"
        )
    if area == "too old":
        return f"The driver of {case.who} is too old for {server(case)}: {failed}"
    return f"{command(case)} of {case.who} fails {share(case)}: {case.kinds} (at {server(case)})"


def _opened_elsewhere(case: Case, opened_at: Sequence[str]) -> str:
    whose = f"{listed(opened_at)} opened"
    if set(opened_at) <= {server(case)}:
        whose = "other connections to it opened, as if several servers have this address"
    return f"{case.who} asks {server(case)} for cursors on {namespace(case)} that {whose}: {case.kinds}, {share(case)}"


def _often(case: Case) -> str:
    return pluralize(case.times, "time") if case.times > 1 else "once"


class MongoCommandFailed(Rule):
    """A MongoDB command fails again and again, a server refuses a login, or a driver does not accept a server."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        mongo_failures: Count = Field(default=3, description="Failures of one command and namespace")
        mongo_failure_share: Share = MONGO_FAILURE_SHARE
        mongo_failure_run: Count = MONGO_FAILURE_RUN
        auth_failed_times: Count = AUTH_FAILED_TIMES

    name = "mongo_command_failed"
    title = "MongoDB command failed"
    protocol = "mongodb"
    severities = ("warning", "info")
    reads = ("commands", "exchanges")
    advice = (BY_CODE, ELSEWHERE_ADVICE, ADVICE)
    urgency = REFUSED
    texts = Texts(
        headline=_failed,
        now=lambda case: begun(advised(case, "now")),
        fix=lambda case: begun(advised(case, "fix")),
        reasoning=f"{SEEN}the server's own answer, with code and message in silver.mongo_commands.",
        affected=own_clients,
    )
    gathered = OF_NAMESPACE
    subject = (NAMESPACE, None)
    counting = Counting(is_refused=True, keeps_each=True)
    effects = (Link(("mongo_retry_storm",), (CLIENT, NAMESPACE), "what failed is asked again"),)
    claims = MONGO_COMMAND_FAILED

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Failures with their share of what was sent, then servers that are too old for their drivers."""
        failed = [e for e in sources.episodes.get(cls.name, ()) if e.times >= _least_failures(e, settings)]
        shares = shares_of(sources.tables, failed, int(settings.episode_pause_seconds * 1_000_000))
        elsewhere = opened_elsewhere(sources.tables, failed)
        of_share = list(judged(failed, shares, settings))
        waits = waits_ms([episode for episode, _, _ in of_share], sources.tables)
        for episode, share_of, severity in of_share:
            opened_at, asked_ms = elsewhere.get(episode, ()), waits.get(episode)
            yield _failed_finding(episode, share_of, severity, opened_at, asked_ms, sources, settings)
        yield from old_servers(sources, settings)


def _least_failures(episode: Episode, settings: MongoCommandFailed.Thresholds) -> int:
    """Who is refused may not come back: one failed login is enough."""
    return settings.auth_failed_times if is_login(episode) else settings.mongo_failures


def _failed_finding(
    episode: Episode, share: ShareOfSent, severity: str, opened_at: Sequence[str], asked_ms: int | None,
    sources: Sources, settings: MongoCommandFailed.Thresholds,
) -> Finding:  # fmt: skip
    """Failures of one command.

    Args:
        episode, share, severity: of them.
        opened_at: the servers that have the cursors that were not found; this episode's own where other connections to
            its address opened them.
        asked_ms: how long the server asks to wait before a repeat, ms; None: it does not say.
        sources, settings: see rules.
    """
    codes = codes_of(episode)
    summary, advice = failed_words(episode, share), advice_of(codes)
    more: dict[str, object] = {"area": codes[0].area} if codes and codes[0].area in ("login", "too old") else {}
    if is_login(episode):
        summary = refused_login(episode)
    elif codes and codes[0].area == "rate limit":
        more = {"area": codes[0].area, "retry_after_ms": asked_ms}
        summary = summary[:-1] + (f" (RetryAfterMs up to {asked_ms:,})." if asked_ms else ".")
    if opened_at and codes[0].name == CURSOR_NOT_FOUND:
        if set(opened_at) <= set(episode.servers):
            summary += (
                f" Other connections to {first_of(opened_at)} opened these cursors less than 10 minutes before, and "
                "are served on: likely more than one server has this address."
            )
        else:
            summary += f" These cursors were opened at {first_of(opened_at)}."
        advice = ELSEWHERE_ADVICE.format(servers=first_of(sorted({*opened_at, *episode.servers})))
    made = finding(episode, severity, summary, advice, sources, _least_failures(episode, settings))
    errors = [one.name for one in codes]
    return counted(made, share, errors=errors, **more, **({"opened_at": list(opened_at)} if opened_at else {}))
