"""Connections that do not come about, or carry nothing: refused, not answered, closed at once, ended in a handshake."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.analysis.lives import Life
from pipeline.analysis.rules.capture.connections.shapes import (
    AT_ONCE_US,
    MOST_SHOWN,
    Seen,
    Trouble,
    number_of,
    times_of,
)
from pipeline.analysis.rules.model import clock
from pipeline.analysis.rules.people import count, some
from pipeline.finding_settings import FindingSettings
from pipeline.other_protocols import TLS

REFUSED: Final = (
    "Now: look whether the server runs and listens there: `ss -ltn` on its host shows the address and port. Fix: start "
    "it, or correct bootstrap.servers (MongoDB: the connection string); a server that listens on 127.0.0.1 alone, or "
    "inside a container without a published port, refuses everybody else."
)
UNANSWERED: Final = (
    "Now: look at what stands between: a firewall, security group or network policy that drops packets, or a host that "
    "is down (`nc -vz` from the client's host shows the same). Fix: open the port for these clients, or correct the "
    "address; a client waits for socket.connection.setup.timeout.ms (MongoDB: connectTimeoutMS) each time."
)
CLOSED: Final = (
    "Now: look in the server's log and at its limits: a server out of connections or file descriptors accepts and "
    "closes (Kafka: max.connections, max.connections.per.ip; MongoDB: net.maxIncomingConnections), and so does a load "
    "balancer without a healthy server behind it. Fix: raise the limit, or let the clients open fewer connections."
)
ALERT: Final = (
    "Now: compare the certificates: `openssl s_client -connect HOST:PORT` shows what the server has. Fix: what the "
    "alert names: unknown_ca or bad_certificate a truststore that lacks the issuer, certificate_expired a new "
    "certificate, certificate_required or handshake_failure a client certificate or shared ciphers, protocol_version "
    "TLS versions in common, unrecognized_name a name that the certificate has."
)
NO_TLS: Final = (
    "Now: look at the listener's protocol (Kafka: listener.security.protocol.map; MongoDB: net.tls.mode). Fix: connect "
    "without TLS (Kafka: security.protocol=PLAINTEXT or SASL_PLAINTEXT; MongoDB: tls=false), or name the port of a TLS "
    "listener."
)
ADVICE: Final = (REFUSED, UNANSWERED, CLOSED, ALERT, NO_TLS)

_KAFKA: Final = frozenset({*range(9091, 9100), 19092, 19093, 29092, 29093, 39092})
_MONGODB: Final = frozenset({*range(27017, 27021)})
_FEW_SERVERS: Final = 5
_LEAST_US: Final = 2_000_000


def troubles(known: Seen, settings: FindingSettings) -> Iterator[Trouble]:
    """All of these shapes."""
    for server, failed in known.by_server(lambda one: one.how in ("refused", "unanswered")).items():
        for how in ("refused", "unanswered"):
            found = _unreachable(server, how, [one for one in failed if one.how == how], known, settings)
            if found is not None:
                yield found
    yield from _closed_at_once(known, settings)
    yield from _handshakes(known, settings)


def _is_ours(one: Life, known: Seen) -> bool:
    """Whether it is a port of Kafka or MongoDB, as far as the number, or what else is there, shows."""
    if one.server_port in known.ports or one.server_port in _KAFKA or one.server_port in _MONGODB:
        return True
    is_alone = not known.ports and not any(life.how == "other" for life in known.lives)
    return is_alone and len({life.server for life in known.lives}) <= _FEW_SERVERS


def _unreachable(
    server: str, how: str, failed: Sequence[Life], known: Seen, settings: FindingSettings
) -> Trouble | None:
    number, times = number_of(failed), times_of(failed)
    if number < settings.connection_failures or not _is_ours(failed[0], known):
        return None
    begun_us, last_us = min(one.began_us for one in failed), times[-1]
    answered = known.answered.get(server)
    patience_us = int(settings.connection_restart_seconds * 1_000_000) if answered is not None else _LEAST_US
    if last_us - begun_us < patience_us or known.answers_after(server, last_us):
        return None
    if answered is not None and answered[1] > begun_us:
        return None  # it answers some
    hosts = sorted({one.client_ip for one in failed if one.client_ip})
    span = f"from {clock(begun_us)} to {clock(last_us)} UTC"
    if how == "refused":
        summary = (
            f"Nobody listens at {server}: {count(number, 'connection')} of {some(hosts)} "
            f"{'was' if number == 1 else 'were'} refused {span}."
        )
    else:
        summary = (
            f"{server} answers no connection of {some(hosts)} ({count(number, 'connection')} {span}, no SYN-ACK): a "
            "firewall drops the packets, or the host is down."
        )
    return Trouble(
        how, server, "", times, number, answered is None, summary, REFUSED if how == "refused" else UNANSWERED,
        details={"hosts": hosts, "connections": _ids(failed)},
    )  # fmt: skip


def _closed_at_once(known: Seen, settings: FindingSettings) -> Iterator[Trouble]:
    """A server that accepts and closes before either side has sent anything, and answers nobody."""
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
            f"({count(number, 'connection')} from {clock(times[0])} to {clock(times[-1])} UTC)."
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


def _handshakes(known: Seen, settings: FindingSettings) -> Iterator[Trouble]:
    """TLS handshakes that an alert in clear ended, or that a server without TLS closed."""
    ended: defaultdict[tuple[str, str], list[Life]] = defaultdict(list)
    for one in known.lives:
        if one.how == "other" and one.alert:
            ended[one.server, one.alert].append(one)
        elif one.how == "other" and one.asks == TLS and one.answers == "nothing" and one.closed_by == "server":
            ended[one.server, ""].append(one)
    for (server, alert), failed in sorted(ended.items()):
        number, times = len(failed), times_of(failed)
        if number < settings.connection_failures:
            continue
        hosts = sorted({one.client_ip for one in failed})
        names = sorted({one.server_name for one in failed if one.server_name})
        span = f"{count(number, 'connection')} from {clock(times[0])} to {clock(times[-1])} UTC"
        if alert:
            who, _, what = alert.partition(" ")
            ends, other = (some(hosts), server) if who == "client" else (server, some(hosts))
            asked = f", asked for as {some(names)}" if names else ""
            summary = f"{ends} ends the TLS handshake with {other} with the alert {what}{asked} ({span})."
        else:
            summary = (
                f"{server} closes the TLS handshakes of {some(hosts)} without an answer ({span}): the listener does "
                "not speak TLS, the client does."
            )
        yield Trouble(
            alert.replace(" ", "-") or "no-tls", server, "", times, number, server not in known.answered, summary,
            ALERT if alert else NO_TLS,
            details={"hosts": hosts, "connections": _ids(failed), "alert": alert, "server_names": names},
        )  # fmt: skip


def _ids(failed: Sequence[Life]) -> list[str]:
    """Some of the connections, for ``bronze.gaps``: no exchange is evidence here."""
    return [one.connection_id for one in failed if one.connections == 1][:MOST_SHOWN]
