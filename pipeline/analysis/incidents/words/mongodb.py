"""Words for incidents of MongoDB."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.incidents.case import Case, begun, count, listed
from pipeline.analysis.incidents.words.model import (
    REFUSED,
    SEEN,
    SLOW,
    WASTES,
    Words,
    advised,
    never,
    nobody,
    not_why,
    own_clients,
    part_of,
    server,
)
from pipeline.analysis.rules.mongodb.old_servers import AREA
from pipeline.analysis.rules.mongodb.slow import advice_on


def _command(case: Case) -> str:
    commands = sorted({str(one.row["subject"]).rpartition("/")[2] for one in case.bundle.findings})
    return f"{listed(commands)} on {_namespace(case)}"


def _namespace(case: Case) -> str:
    return listed(sorted({str(one.row["subject"]).rpartition("/")[0] for one in case.bundle.findings}))


def _counts(case: Case) -> tuple[int, int]:
    """How many of how many that were sent."""
    stated = [(one.details.get("failed"), one.details.get("sent")) for one in case.bundle.findings]
    known = [(failed, sent) for failed, sent in stated if isinstance(failed, int) and isinstance(sent, int)]
    return sum(failed for failed, _ in known), sum(sent for _, sent in known)


def _share(case: Case) -> str:
    failed, sent = _counts(case)
    return f"{failed:,} of {sent:,} times" if failed < sent else "each time"


def _failed(case: Case) -> str:
    opened_at = [str(name) for name in case.details.get("opened_at", ())]
    if opened_at:
        return _opened_elsewhere(case, opened_at)
    area = case.details.get("area")
    if area == "login":
        return f"{server(case)} refuses the login of {case.who} {_often(case)}: {case.kinds}"
    failed = f"{_command(case)} fails {_share(case)} ({case.kinds})"
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
    return f"{_command(case)} of {case.who} fails {_share(case)}: {case.kinds} (at {server(case)})"


def _opened_elsewhere(case: Case, opened_at: Sequence[str]) -> str:
    whose = f"{listed(opened_at)} opened"
    if set(opened_at) <= {server(case)}:
        whose = "other connections to it opened, as if several servers have this address"
    return (
        f"{case.who} asks {server(case)} for cursors on {_namespace(case)} that {whose}: {case.kinds}, {_share(case)}"
    )


def _often(case: Case) -> str:
    return count(case.times, "time") if case.times > 1 else "once"


def _slow_commands(case: Case) -> list[str]:
    """Slow commands with their namespaces, the slowest first."""
    slowest = sorted(case.bundle.findings, key=lambda one: -float(one.details.get("peak") or 0))
    named = (str(one.row["subject"]).rpartition("/") for one in slowest)
    return list(dict.fromkeys(f"{command} on {namespace}" for namespace, _, command in named))


def _slow(case: Case) -> str:
    peak = max(float(one.details.get("peak") or 0) for one in case.bundle.findings) / 1_000_000
    waits = "waits" if len(case.callers) <= 1 else "wait"
    return f"{server(case)} takes up to {peak:.1f} s for {listed(_slow_commands(case))}: {case.who} {waits}"


def _slow_part(case: Case, part: str) -> str:
    commands = (str(one.row["subject"]).rpartition("/")[2] for one in case.bundle.findings)
    return begun(part_of(advice_on(commands), part))


def _cursors(case: Case) -> str:
    left = sum(int(one.details.get("cursors") or 0) for one in case.bundle.findings)
    names = sorted({name for one in case.bundle.findings for name in one.details.get("namespaces", [])})
    return f"{_leaker(case)} leaves {count(left, 'cursor')} on {listed(names)} open at {case.lead.row['cluster']}"


def _leaker(case: Case) -> str:
    application, _, host = str(case.lead.row["subject"]).rpartition("/")
    return f"{application} ({host})"


MONGODB: dict[str, Words] = {
    "mongo_slow_command": Words(
        _slow,
        lambda case: _slow_part(case, "now"),
        lambda case: _slow_part(case, "fix"),
        f"{SEEN}the time between command and reply. {not_why('server')}",
        SLOW,
        source=lambda case: listed(_slow_commands(case)),
        affected=own_clients,
        is_cause=never,
    ),
    "mongo_command_failed": Words(
        _failed,
        lambda case: begun(advised(case, "now")),
        lambda case: begun(advised(case, "fix")),
        f"{SEEN}the server's own answer, with code and message in silver.mongo_commands.",
        REFUSED,
        affected=own_clients,
    ),
    "mongo_retry_storm": Words(
        lambda case: f"{case.who} repeats {_command(case)}, {_share(case)} ({case.kinds})",
        lambda case: begun(advised(case, "now")),
        lambda case: begun(advised(case, "fix")),
        f"{SEEN}the same write with the same transaction number, or errors that ask for a repeat.",
        SLOW,
        affected=own_clients,
    ),
    "mongo_cursor_leak": Words(
        _cursors,
        lambda case: (
            f"Restart {_leaker(case)} if the server runs short of memory; else cursors end after ten idle minutes."
        ),
        lambda case: begun(advised(case, "fix")),
        f"{SEEN}the cursors were opened, and neither read to their end nor killed.",
        WASTES,
        source=_leaker,
        affected=nobody,
    ),
}
