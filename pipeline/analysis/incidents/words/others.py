"""Words for incidents of the capture itself, and of servers of another protocol."""

from __future__ import annotations

from pipeline.analysis.incidents.case import Case, begun, count, listed
from pipeline.analysis.incidents.words.model import (
    LATER,
    REFUSED,
    SEEN,
    Words,
    advised,
    nobody,
    not_why,
    own_clients,
    server,
)
from pipeline.analysis.rules.capture.words import BOTH_WAYS, FILE, MORE_ROOM, NOT_READ, WHOLE


def _misunderstood(case: Case) -> str:
    details = case.details
    asked = f"the {details.get('asks')} requests of {case.who}"
    connections = count(int(details.get("connections_seen") or 0), "connection")
    if details.get("answers"):
        return f"{server(case)} answers {details['answers']} to {asked} ({connections})"
    others = ", and continues TLS handshakes of others" if details.get("is_tls") else ""
    return f"{server(case)} closes each connection before it answers anything to {asked} ({connections}){others}"


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


def _is_likely(case: Case) -> bool:
    """A capture filter may leave out brokers that Metadata names: only a failed attempt to reach one is certain."""
    shape = case.details.get("shape")
    return shape in _LIKELY or (shape in ("advertised", "members") and not case.details.get("tried"))


def _cut_off(case: Case) -> str:
    """Why a connection failed, by the shape of its failure."""
    shape = str(case.details.get("shape"))
    if shape in ("advertised", "members") and case.details.get("tried"):
        return f"{SEEN}what the answers name, and that the client's connections to it failed."
    return _FAILED.get(shape, f"{SEEN}how each of these connections ended.")


_LIKELY = frozenset(
    {
        "sasl",
        "credentials",
        "first-request",
        "idle",
        "limit",
        "too-large",
        "storm",
        "flood",
        "dropped",
        "no-tls",
        "tls-closed",
        "tls-unanswered",
        "one-way",
        "away",
        "path",
    }
)
_FAILED = {
    "refused": f"{SEEN}a reset answers each SYN.",
    "unanswered": f"{SEEN}nothing answered a SYN of these connections.",
    "one-way": f"{SEEN}the server's answers to SYNs, and that the client sent the same SYNs again.",
    "no-tls": f"{SEEN}what the server did as soon as it got the handshake. {not_why('server')}",
    "tls-closed": f"{SEEN}how the server ended these handshakes, and that it continued others. {not_why('server')}",
    "tls-unanswered": f"{SEEN}handshakes that no byte answers. {not_why('server')}",
    "closed": f"{SEEN}the server closed the connections before anything was sent. {not_why('server')}",
    "sasl": f"{SEEN}the server closed each connection after this request. {not_why('server')}",
    "credentials": f"{SEEN}the server closed each connection after the credentials. {not_why('server')}",
    "first-request": f"{SEEN}the server closed each connection after ApiVersions, not others. {not_why('server')}",
    "controller": f"{SEEN}the server's own answer to ApiVersions lists what it serves.",
    "limit": f"{SEEN}the server closed these connections and served others meanwhile. {not_why('server')}",
    "too-large": f"{SEEN}the same segments are sent again and again, and nothing acknowledges them.",
    "client-full": f"{SEEN}the client asked to be sent nothing (a receive window of zero), and for how long.",
    "server-full": f"{SEEN}the server asked to be sent nothing (a receive window of zero), and for how long.",
    "storm": f"{SEEN}when these connections began and ended, and that nothing was accepted before.",
    "dropped": f"{SEEN}nothing acknowledged these requests, and others of the host were answered meanwhile.",
    "away": f"{SEEN}nothing acknowledged these requests, and nothing else of these hosts was answered.",
    "path": f"{SEEN}nothing of the server answered these hosts, and it answered others meanwhile.",
    "flood": f"{SEEN}SYNs that no packet of the same addresses follows. Whether the server answered is not known.",
    "scan": f"{SEEN}which ports were tried, and that none of these accepted.",
    "check": f"{SEEN}connections without a byte of data, in a steady rhythm.",
    "idle": f"{SEEN}nothing acknowledged the request, or a reset answered it. What stands between is not on the wire.",
    "members": f"{SEEN}what hello names, and that no packet of the client to it was captured.",
    "advertised": f"{SEEN}what Metadata names, and that no packet of the client to it was captured.",
}

OTHERS: dict[str, Words] = {
    "connection_failed": Words(
        lambda case: str(case.lead.row["summary"]).rstrip("."),
        lambda case: begun(advised(case, "now")),
        lambda case: begun(advised(case, "fix")),
        _cut_off,
        REFUSED,
        source=lambda case: str(case.details.get("server") or ""),
        affected=own_clients,
        is_likely=_is_likely,
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
        source=lambda case: str(case.details.get("server") or ""),
        affected=own_clients,
    ),
    "capture_loss": Words(
        _lost,
        _lost_now,
        _whole,
        f"{SEEN}sequence numbers of TCP show the holes, `bronze.gaps` lists them.",
        LATER,
        source=nobody,
        affected=own_clients,
    ),
}
