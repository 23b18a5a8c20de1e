"""Rule ``mongo_command_failed``."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipeline.analysis.codes.advice import BY_CODE
from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import CLIENT, NAMESPACE
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, advised, own_clients, server
from pipeline.analysis.rules.mongodb.command_texts import command, namespace, share
from pipeline.analysis.rules.mongodb.elsewhere import ELSEWHERE_ADVICE
from pipeline.analysis.rules.mongodb.old_servers import ADVICE, AREA
from pipeline.analysis.rules.mongodb.thresholds import MONGO_FAILURE_RUN, MONGO_FAILURE_SHARE
from pipeline.analysis.rules.rule import OF_NAMESPACE, Counting, Link, Rule
from pipeline.analysis.rules.thresholds import AUTH_FAILED_TIMES, Count, RuleThresholds, Share
from pipeline.humanize import listed, pluralize


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
