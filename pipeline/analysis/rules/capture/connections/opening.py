"""Connections that do not come about, or carry nothing: refused, not answered, answered without use, closed at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.other_address import at_other_address
from pipeline.analysis.rules.capture.connections.other_family import by_other_family
from pipeline.analysis.rules.capture.connections.shapes import (
    AT_ONCE_US,
    MOST_SHOWN,
    Seen,
    Trouble,
    are_sent_once,
    icmp_reports,
    number_of,
    times_of,
)
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.rules.recurrence import apart, earlier
from pipeline.analysis.tables import ADDRESS
from pipeline.humanize import clock, pluralize, seconds, some

REFUSED: Final = (
    "Now: look whether the server runs and listens there: `ss -ltn` on its host shows the address and port. Fix: start "
    "it, or correct bootstrap.servers (MongoDB: the connection string); a server that listens on 127.0.0.1 alone, or "
    "inside a container without a published port, refuses everybody else."
)
UNANSWERED: Final = (
    "Now: look at what is between: a firewall, security group or network policy that drops packets, or a host that "
    "is down (`nc -vz` from the client's host shows the same). Fix: open the port for these clients, or correct the "
    "address; a client waits for socket.connection.setup.timeout.ms (MongoDB: connectTimeoutMS) each time."
)
CLOSED: Final = (
    "Now: look in the server's log and at its limits: a server out of connections or file descriptors accepts and "
    "closes (Kafka: max.connections, max.connections.per.ip; MongoDB: net.maxIncomingConnections), and so does a load "
    "balancer without a healthy server behind it. Fix: raise the limit, or let the clients open fewer connections."
)
ONE_WAY: Final = (
    "Now: capture at the client's host and at the server's at the same time: the SYN-ACK is lost between them, or in "
    "the client's own firewall. Fix: let answers take the way of the requests (routes, rp_filter, a translation that "
    "sees one direction only), or let the firewall on the way back pass them."
)
REJECTED: Final = (
    "Now: look at the rules of the firewall that has the address from which the ICMP messages come (iptables or "
    "nftables `reject`, a security appliance, a network policy). Fix: let that rule pass these clients to this port, "
    "or correct the address that they connect to; Kubernetes has such a rule for a service without ready pods."
)
NO_ROUTE: Final = (
    "Now: ask for the route where the ICMP messages come from (`ip route get` with the server's address): there is "
    "none, the next host does not answer, or packets go round in a loop (time to live exceeded). Fix: bring the route "
    "or the host back, or correct the address that clients connect to."
)
WAS_AWAY: Final = (
    "Now: check that the clients that worked there before work again: it listens again, but some clients give up for "
    "good (tasks of Kafka Connect and MirrorMaker that failed stay so until they are restarted). Fix: find in the "
    "server's log why it was away for so long (after an unclean stop a broker recovers its logs); stop it in good "
    "order, and keep more than one replica of what must be reached meanwhile."
)
ADVICE: Final = (REFUSED, UNANSWERED, CLOSED, ONE_WAY, REJECTED, NO_ROUTE, WAS_AWAY)

FLOOD: Final = 1_000
"""SYNs that are sent once each to one server, from which on that is not ordinary work."""
_KAFKA: Final = frozenset({*range(9091, 9100), 9194, 9196, 9198, 19092, 19093, 29092, 29093, 39092})
_MONGODB: Final = frozenset({*range(27017, 27021)})
_LEAST_US: Final = 2_000_000


def troubles(sources: Sources, known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """All of these shapes."""
    for server, failed in known.by_server(lambda one: one.how in ("refused", "unanswered")).items():
        for how in ("refused", "unanswered"):
            some_of = [one for one in failed if one.how == how and one.icmp is None]
            found = _unreachable(server, how, some_of, sources, known, settings)
            if found is not None:
                yield found
        unanswered = [one for one in failed if one.how == "unanswered"]
        yield from _reported(server, unanswered, sources, known, settings)
        away = _was_away(server, [one for one in failed if one.how == "refused"], sources, known, settings)
        if away is not None:
            yield away
    yield from _one_way(known, settings)
    yield from _closed_at_once(known, settings)


def _is_ours(one: Life, known: Seen) -> bool:
    """Whether it is a port of Kafka or MongoDB, as far as the number, or what else is there, shows."""
    return one.server_port in known.ports or one.server_port in _KAFKA or one.server_port in _MONGODB or known.is_of_few


def _unreachable(
    server: str, how: str, failed: Sequence[Life], sources: Sources, known: Seen, settings: ConnectionThresholds
) -> Trouble | None:
    is_once = how == "unanswered" and are_sent_once(failed)
    if is_once:  # the capture may hold SYNs alone, unless servers answer the same host elsewhere
        failed = [one for one in failed if one.client_ip in known.reached_hosts]
    elif how == "unanswered":
        failed = [one for one in failed if one.syns != 1]
    number, times = number_of(failed), times_of(failed)
    if number < settings.connection_failures or not _is_ours(failed[0], known) or (is_once and number >= FLOOD):
        return None
    begun_us, last_us = min(one.began_us for one in failed), times[-1]
    answered = known.answered.get(server)
    patience_us = int(settings.connection_restart_seconds * 1_000_000) if answered is not None else _LEAST_US
    if last_us - begun_us < patience_us or known.answers_after(server, last_us):
        return None
    if answered is not None and answered[1] > begun_us:
        return None  # it answers some
    if (elsewhere := _elsewhere(server, failed, sources, known)) is not None:
        return elsewhere
    hosts = sorted({one.client_ip for one in failed if one.client_ip})
    span = f"from {clock(begun_us)} to {clock(last_us)} UTC"
    if how == "refused":
        summary = (
            f"No process listens at {server}: {pluralize(number, 'connection')} of {some(hosts)} "
            f"{'was' if number == 1 else 'were'} refused {span}."
        )
    else:
        syns = "one SYN each, no SYN-ACK" if is_once else "no SYN-ACK"
        why = "rejects or drops the packets, the client gives up within a second" if is_once else "drops the packets"
        summary = (
            f"{server} answers no connection of {some(hosts)} ({pluralize(number, 'connection')} {span}, {syns}): a "
            f"firewall {why}, or the host is down."
        )
    return Trouble(
        how, server, "", times, number, answered is None, summary, REFUSED if how == "refused" else UNANSWERED,
        details={"hosts": hosts, "connections": _ids(failed)},
    )  # fmt: skip


def _elsewhere(server: str, failed: Sequence[Life], sources: Sources, known: Seen) -> Trouble | None:
    """That these clients reach a server by another address."""
    return by_other_family(server, failed, sources, known) or at_other_address(server, failed, sources, known)


def _reported(
    server: str, failed: Sequence[Life], sources: Sources, known: Seen, settings: ConnectionThresholds
) -> Iterator[Trouble]:
    """Whose SYNs somebody answers by ICMP: a firewall that rejects them, or a router that knows no way.

    Kubernetes rejects so what comes for a service without ready pods: a restart, unless it lasts.
    """
    for is_refused in (True, False):
        reported = [
            one
            for one in failed
            if one.icmp is not None and one.icmp.of == "client" and one.icmp.is_refusal == is_refused
            and one.began_us > known.asked.get((server, one.client_ip), 0)
        ]  # fmt: skip
        times = times_of(reported)
        if len(reported) < settings.connection_failures or not _is_ours(reported[0], known):
            continue
        patience_us = settings.connection_restart_seconds * 1_000_000 if server in known.answered else _LEAST_US
        if times[-1] - reported[0].began_us < patience_us:
            continue
        if (elsewhere := _elsewhere(server, reported, sources, known)) is not None:
            yield elsewhere
            continue
        hosts = sorted({one.client_ip for one in reported})
        span = f"{pluralize(len(reported), 'connection')} from {clock(reported[0].began_us)} to {clock(times[-1])} UTC"
        summary = (
            f"A firewall rejects the connections of {some(hosts)} to {server}: {icmp_reports(reported)} ({span})."
            if is_refused
            else f"{some(hosts)} has no way to {server}: {icmp_reports(reported)} ({span})."
        )
        yield Trouble(
            "rejected" if is_refused else "no-route", server, "", times, len(reported),
            not known.answers_after(server, reported[0].began_us),
            summary, REJECTED if is_refused else NO_ROUTE, details={"hosts": hosts, "connections": _ids(reported)},
        )  # fmt: skip


_ANSWERS: Final = f"""
    SELECT count(*) AS answers FROM exchanges
    WHERE {ADDRESS["server"]} = $server AND epoch_us(response_ts) BETWEEN $since AND $until
"""


def _was_away(
    server: str, failed: Sequence[Life], sources: Sources, known: Seen, settings: ConnectionThresholds
) -> Trouble | None:
    """A server that answered, then refused all for longer than a restart takes, and answers again."""
    restart_us = int(settings.connection_restart_seconds * 1_000_000)
    if not failed or server not in known.answered or not known.answers_after(server, times_of(failed)[-1]):
        return None
    spans = [(one.began_us, one.ended_us) for one in failed]
    bouts = [(bout[0][0], max(until_us for _, until_us in bout)) for bout in apart(spans, restart_us)]
    long = [(since, until) for since, until in bouts if until - since >= restart_us]
    asked = [{"server": server, "since": since, "until": until} for since, until in long]
    answered = sources.tables.of_each(_ANSWERS, asked)
    accepted = [one.began_us for one in known.lives if one.server == server and one.opened == "yes"]
    away = [
        (since, until)
        for (since, until), ((answers,),) in zip(long, answered, strict=True)
        if not answers and not any(since <= us <= until for us in accepted)
    ]
    if not away:
        return None
    since_us, until_us = away[-1]
    refused = [one for one in failed if since_us <= one.began_us <= until_us]
    number, times = number_of(refused), times_of(refused)
    if number < settings.connection_failures:
        return None
    hosts = sorted({one.client_ip for one in refused if one.client_ip})
    summary = (
        f"No process listened at {server} from {clock(since_us)} to {clock(until_us)} UTC "
        f"({seconds(until_us - since_us)}): {pluralize(number, 'connection')} of {some(hosts)} "
        f"{'was' if number == 1 else 'were'} refused. Then it answered again."
    )
    return Trouble(
        "refused", server, "", times, number, False, summary, WAS_AWAY,
        details={
            "hosts": hosts, "connections": _ids(refused), "enough_us": since_us + restart_us, **earlier(away),
        },
    )  # fmt: skip


def _one_way(known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """A server that accepts connections of hosts which ask again as if it had not, and send nothing else."""
    answered = known.by_server(
        lambda one: one.how == "silent" and 1 < one.syns == one.packets[0] and one.packets[1] > 0
    )
    for server, repeated in answered.items():
        failed = [one for one in repeated if (server, one.client_ip) not in known.reached]
        if len(failed) < settings.connection_failures or not _is_ours(failed[0], known):
            continue
        hosts, times = sorted({one.client_ip for one in failed}), times_of(failed)
        syns, answers = (sum(numbers) for numbers in zip(*(one.packets for one in failed), strict=True))
        span = f"{pluralize(len(failed), 'connection')} from {clock(failed[0].began_us)} to {clock(times[-1])} UTC"
        summary = (
            f"{some(hosts)} sends its SYNs to {server} again although it answers them ({span}, {syns} SYNs, "
            f"{pluralize(answers, 'packet')} back): what the server sends does not reach the client."
        )
        yield Trouble(
            "one-way", server, "", times, len(failed), server not in known.answered, summary, ONE_WAY,
            details={"hosts": hosts, "connections": _ids(failed)},
        )  # fmt: skip


def _closed_at_once(known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """A server that accepts and closes before either side has sent anything, and answers no client."""
    cut = known.by_server(
        lambda one: one.how == "silent" and one.closed_by == "server" and one.ended_us - one.began_us <= AT_ONCE_US
    )
    for server, failed in cut.items():
        number, times = len(failed), times_of(failed)
        if number < settings.connection_failures or server in known.answered or not _is_ours(failed[0], known):
            continue
        hosts = sorted({one.client_ip for one in failed})
        summary = (
            f"{server} accepts the connections of {some(hosts)} and closes them at once, before anything is sent "
            f"({pluralize(number, 'connection')} from {clock(times[0])} to {clock(times[-1])} UTC)."
        )
        yield Trouble(
            "closed",
            server,
            "",
            times,
            number,
            False,
            summary,
            CLOSED,
            details={"hosts": hosts, "connections": _ids(failed)},
        )


def _ids(failed: Sequence[Life]) -> list[str]:
    """Some of the connections, for ``silver.connections``: no exchange is evidence here."""
    return [one.connection_id for one in failed if one.connections == 1][:MOST_SHOWN]
