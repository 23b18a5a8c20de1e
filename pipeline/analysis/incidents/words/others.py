"""Words for incidents of MongoDB and of the capture itself."""

from __future__ import annotations

from pipeline.analysis.incidents.case import ADVICE, Case, begun, count, listed
from pipeline.analysis.incidents.words.model import (
    LATER,
    REFUSED,
    SEEN,
    SLOW,
    WASTES,
    Words,
    advised,
    nobody,
    not_why,
    own_clients,
)
from pipeline.analysis.rules.capture.words import BOTH_WAYS, FILE, MORE_ROOM, NOT_READ, WHOLE
from pipeline.analysis.rules.mongodb.old_servers import AREA
from pipeline.analysis.rules.mongodb.slow import advice_on


def _command(case: Case) -> str:
    commands = sorted({str(one.row["subject"]).rpartition("/")[2] for one in case.bundle.findings})
    return f"{listed(commands)} on {_namespace(case)}"


def _namespace(case: Case) -> str:
    return listed(sorted({str(one.row["subject"]).rpartition("/")[0] for one in case.bundle.findings}))


def _misunderstood(case: Case) -> str:
    details = case.details
    asked = f"the {details.get('asks')} requests of {case.who}"
    connections = count(int(details.get("connections_seen") or 0), "connection")
    if details.get("answers"):
        return f"{_server(case)} answers {details['answers']} to {asked} ({connections})"
    return f"{_server(case)} closes each connection before it answers anything to {asked} ({connections})"


def _counts(case: Case) -> tuple[int, int]:
    """How many of how many that were sent."""
    stated = [(one.details.get("failed"), one.details.get("sent")) for one in case.bundle.findings]
    known = [(failed, sent) for failed, sent in stated if isinstance(failed, int) and isinstance(sent, int)]
    return sum(failed for failed, _ in known), sum(sent for _, sent in known)


def _share(case: Case) -> str:
    failed, sent = _counts(case)
    return f"{failed:,} of {sent:,} times" if failed < sent else "each time"


def _server(case: Case) -> str:
    return str(case.details.get("server") or case.lead.row["cluster"])


def _failed(case: Case) -> str:
    opened_at = [str(name) for name in case.details.get("opened_at", ())]
    if opened_at:
        return (
            f"{case.who} asks {_server(case)} for cursors on {_namespace(case)} that {listed(opened_at)} opened: "
            f"{case.kinds}, {_share(case)}"
        )
    area = case.details.get("area")
    if area == "login":
        return f"{_server(case)} refuses the login of {case.who} {_often(case)}: {case.kinds}"
    failed = f"{_command(case)} fails {_share(case)} ({case.kinds})"
    if area == "rate limit":
        return f"{case.who} exceeds the rate of requests that {_server(case)} allows: {failed}"
    if area == AREA:
        details = case.details
        return (
            f"{_server(case)} is too old for the driver of {case.who}: it speaks wire versions up to "
            f"{details.get('wire_version')} (MongoDB {details.get('mongodb')}), {details.get('driver')} "
            f"{details.get('driver_version')} needs {details.get('least_wire_version')} or newer "
            f"(MongoDB {details.get('least_mongodb')})"
        )
    if area == "too old":
        return f"The driver of {case.who} is too old for {_server(case)}: {failed}"
    return f"{_command(case)} of {case.who} fails {_share(case)}: {case.kinds} (at {_server(case)})"


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
    return f"{_server(case)} takes up to {peak:.1f} s for {listed(_slow_commands(case))}: {case.clients} {waits}"


def _slow_part(case: Case, part: str) -> str:
    found = ADVICE.match(advice_on(str(one.row["subject"]).rpartition("/")[2] for one in case.bundle.findings))
    return found[part] if found else ""


def _cursors(case: Case) -> str:
    left = sum(int(one.details.get("cursors") or 0) for one in case.bundle.findings)
    names = sorted({name for one in case.bundle.findings for name in one.details.get("namespaces", [])})
    return f"{_leaker(case)} leaves {count(left, 'cursor')} on {listed(names)} open at {case.lead.row['cluster']}"


def _leaker(case: Case) -> str:
    application, _, host = str(case.lead.row["subject"]).rpartition("/")
    return f"{application} ({host})"


def _whole(case: Case) -> str:
    """What the kernel dropped was not read; what is missing from a connection may have been cut off as well."""
    names = [str(name) for one in case.bundle.findings for name in one.details.get("connections", ())]
    if _captured(case):
        return f"{BOTH_WAYS[:1].upper()}{BOTH_WAYS[1:]}."
    if names and all(name.startswith(FILE) for name in names):
        return "Look in `ops.landing_files` at what was wrong with the file, and read the capture again."
    more_room = f"{MORE_ROOM[:1].upper()}{MORE_ROOM[1:]}"
    if names and all(name.startswith(NOT_READ) for name in names):
        return f"{more_room}."
    return f"{WHOLE[:1].upper()}{WHOLE[1:]}. If they were whole, {MORE_ROOM}."


def _captured(case: Case) -> set[str]:
    """Which directions alone were captured, if that is what all findings say."""
    found = {str(one.details.get("captured") or "") for one in case.bundle.findings}
    return set() if "" in found else found


def _lost_now(case: Case) -> str:
    if _captured(case):
        return "Conclude nothing about these connections, also not that requests went unanswered."
    return "Do not conclude from what is missing: counts, unanswered requests and offsets of that time."


def _one_way(case: Case) -> str:
    details = [one.details for one in case.bundle.findings]
    servers = sorted({str(some.get("server")) for some in details if some.get("captured") == "requests"})
    answering = sorted({str(some["answering"]) for some in details if some.get("answering")})
    if answering:
        return f"{listed(answering)} answers what {listed(servers)} is asked: the capture is beside a translation"
    (captured, *others) = sorted(_captured(case))
    servers = sorted({str(some.get("server")) for some in details})
    only = f"only {captured}" if not others else "only one direction"
    return f"The capture holds {only} of the connections to {listed(servers)}: nothing on them was judged"


def _lost(case: Case) -> str:
    if _captured(case):
        return _one_way(case)
    lost = sum(int(one.details.get("bytes_lost") or 0) for one in case.bundle.findings)
    agents = sorted({str(one.row["subject"]).partition("/")[0] for one in case.bundle.findings})
    names = sorted({entity[-1] for entity in case.bundle.named.get("client", ())})
    of = f" of {listed(names)}" if names else ""
    but = "what is said of them is incomplete" if names else "what was not seen may have happened"
    return f"The capture ({listed(agents)}) lost {count(lost, 'byte')}{of}: {but}"


OTHERS: dict[str, Words] = {
    "mongo_slow_command": Words(
        _slow,
        lambda case: begun(_slow_part(case, "now")),
        lambda case: begun(_slow_part(case, "fix")),
        f"{SEEN}the time between command and reply. {not_why('server')}",
        SLOW,
        culprit=lambda case: listed(_slow_commands(case)),
        hurt=own_clients,
        is_cause=False,
    ),
    "mongo_command_failed": Words(
        _failed,
        lambda case: begun(advised(case, "now")),
        lambda case: begun(advised(case, "fix")),
        f"{SEEN}the server's own answer, with code and message in silver.mongo_commands.",
        REFUSED,
        hurt=own_clients,
    ),
    "mongo_retry_storm": Words(
        lambda case: f"{case.who} repeats {_command(case)}, {_share(case)} ({case.kinds})",
        lambda case: begun(advised(case, "now")),
        lambda case: begun(advised(case, "fix")),
        f"{SEEN}the same write with the same transaction number, or errors that ask for a repeat.",
        SLOW,
        hurt=own_clients,
    ),
    "mongo_cursor_leak": Words(
        _cursors,
        lambda case: (
            f"Restart {_leaker(case)} if the server runs short of memory; else cursors end after ten idle minutes."
        ),
        "Close cursors where they are opened (`with collection.find(…) as cursor`, try-with-resources), also after "
        "errors; ask for no more than is read (limit); cursorTimeoutMillis on the server.",
        f"{SEEN}the cursors were opened, and neither read to their end nor killed.",
        WASTES,
        culprit=_leaker,
        hurt=nobody,
    ),
    "other_protocol": Words(
        _misunderstood,
        lambda case: begun(advised(case, "now")),
        lambda case: begun(advised(case, "fix")),
        lambda case: (
            f"{SEEN}the first bytes of the server's answer."
            if case.details.get("answers")
            else f"{SEEN}the server closed the connections before it sent a byte. {not_why('server')}"
        ),
        REFUSED,
        culprit=lambda case: str(case.details.get("server") or ""),
        hurt=own_clients,
    ),
    "capture_loss": Words(
        _lost,
        _lost_now,
        _whole,
        f"{SEEN}sequence numbers of TCP show the holes, `bronze.gaps` lists them.",
        LATER,
        culprit=nobody,
        hurt=own_clients,
    ),
}
