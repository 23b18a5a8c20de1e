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
    are_sent_once,
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
_HIDDEN: Final = "encrypted"
_HANDSHAKE_US: Final = 5_000_000
"""A handshake takes no longer."""
_WHY: Final = {
    "unknown_ca": "it does not trust the issuer of the certificate that it got",
    "certificate_unknown": "it does not accept the certificate that it got, mostly as it does not trust the issuer",
    "bad_certificate": "it does not accept the certificate that it got",
    "certificate_expired": "the certificate that it got has expired",
    "certificate_revoked": "the certificate that it got is revoked",
    "unsupported_certificate": "it cannot use the kind of certificate that it got",
    "certificate_required": "the client sends no certificate, and the listener wants one",
    "protocol_version": "the two have no TLS version in common",
    "handshake_failure": "the two have no cipher in common, or the client sends no certificate that the listener wants",
    "insufficient_security": "the ciphers that are offered are too weak for it",
    "unrecognized_name": "the server has no certificate of this name",
    "no_application_protocol": "another protocol is served there (ALPN)",
    "client encrypted": "it does not accept the certificate that it got (TLS 1.3 hides the alert's name)",
    "server encrypted": "it does not accept the client's certificate, or misses one (TLS 1.3 hides the alert's name)",
}
"""By alert, or by who sends it and alert, what it says of the two."""
_CERTIFICATE: Final = ("unknown_ca", "certificate_required", "certificate_unknown", "bad_certificate", _HIDDEN)
"""Alerts by which libraries say that a certificate is not trusted, or missing; the one that says most comes first."""
_OF_VERSIONS: Final = frozenset({"protocol_version", "handshake_failure", "insufficient_security"})
"""Alerts to which the TLS versions that are offered may be the reason."""
ADVICE: Final = (REFUSED, UNANSWERED, CLOSED, ALERT, NO_TLS)

_KAFKA: Final = frozenset({*range(9091, 9100), 19092, 19093, 29092, 29093, 39092})
_MONGODB: Final = frozenset({*range(27017, 27021)})
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
    return one.server_port in known.ports or one.server_port in _KAFKA or one.server_port in _MONGODB or known.is_of_few


def _unreachable(
    server: str, how: str, failed: Sequence[Life], known: Seen, settings: FindingSettings
) -> Trouble | None:
    if how == "unanswered":  # who sends one SYN did not wait: the server's packets may be missing in the capture
        failed = [] if are_sent_once(failed) else [one for one in failed if one.syns != 1]
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
    """TLS handshakes that an alert ended, or that a server without TLS closed."""
    ended: defaultdict[tuple[str, str], list[Life]] = defaultdict(list)
    for one in known.lives:
        if one.how == "other" and one.asks == TLS and one.answers == "nothing" and one.closed_by == "server":
            ended[one.server, ""].append(one)  # an alert of the client may follow: it expected more
        elif one.how == "other" and one.alert and min(one.sent) and not _is_late(one):
            ended[one.server, _cause(one.alert)].append(one)
    for (server, cause), failed in sorted(ended.items()):
        if len(failed) >= settings.connection_failures:
            yield _handshake(server, cause, failed, is_critical=server not in known.answered)


def _cause(alert: str) -> str:
    """What an alert is about: one certificate that is refused is one cause, whichever alerts libraries send."""
    who, _, what = alert.partition(" ")
    return f"{who} certificate" if what in _CERTIFICATE else alert


def _is_late(one: Life) -> bool:
    """Whether what looks like an encrypted alert came when the handshake was long over."""
    return one.alert.endswith(_HIDDEN) and one.ended_us - one.began_us > _HANDSHAKE_US


def _handshake(server: str, cause: str, failed: Sequence[Life], *, is_critical: bool) -> Trouble:
    number, times = len(failed), times_of(failed)
    hosts = sorted({one.client_ip for one in failed})
    names = sorted({one.server_name for one in failed if one.server_name})
    span = f"{count(number, 'connection')} from {clock(times[0])} to {clock(times[-1])} UTC"
    alerts = sorted({one.alert.partition(" ")[2] for one in failed}, key=_by_what_it_says) if cause else []
    if cause:
        who = cause.partition(" ")[0]
        what = alerts[0]
        ends, other = (some(hosts), server) if who == "client" else (server, some(hosts))
        asked = f", asked for as {some(names)}" if names else ""
        why = (_WHY.get(f"{who} {what}") or _WHY.get(what, "")) + _versions(what, failed)
        named = some("an encrypted alert" if one == _HIDDEN else f"the alert {one}" for one in alerts)
        summary = f"{ends} ends the TLS handshake with {other} with {named}{asked} ({span}){': ' if why else ''}{why}."
    else:
        summary = (
            f"{server} closes the TLS handshakes of {some(hosts)} without an answer ({span}): the listener does "
            "not speak TLS, the client does."
        )
    return Trouble(
        cause.replace(" ", "-") or "no-tls", server, "", times, number, is_critical, summary,
        ALERT if cause else NO_TLS,
        details={"hosts": hosts, "connections": _ids(failed), "alerts": alerts, "server_names": names},
    )  # fmt: skip


def _by_what_it_says(alert: str) -> tuple[int, str]:
    return _CERTIFICATE.index(alert) if alert in _CERTIFICATE else -1, alert


def _versions(alert: str, failed: Sequence[Life]) -> str:
    """Which TLS versions the clients offer, and the server chooses, where the alert is about them."""
    offered = sorted({one.tls_offered for one in failed if one.tls_offered})
    if alert not in _OF_VERSIONS or not offered:
        return ""
    chosen = sorted({one.tls_version for one in failed if one.tls_version})
    what = f" (the client offers up to TLS {', '.join(offered)}"
    return f"{what}, the server chose TLS {', '.join(chosen)})" if chosen else f"{what})"


def _ids(failed: Sequence[Life]) -> list[str]:
    """Some of the connections, for ``silver.connections``: no exchange is evidence here."""
    return [one.connection_id for one in failed if one.connections == 1][:MOST_SHOWN]
