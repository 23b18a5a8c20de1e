"""TLS handshakes that do not come about (ended by an alert, closed, not answered in TLS), or that lead to nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.shapes import MOST_SHOWN, Seen, Trouble, times_of
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.humanize import brief, clock, pluralize, seconds, some
from pipeline.other_protocols import TLS

ALERT: Final = (
    "Now: compare the certificates: `openssl s_client -connect HOST:PORT -servername NAME` shows the server's, with "
    "issuer, names and dates. Fix: what the alert names: unknown_ca a truststore that lacks the issuer, "
    "bad_certificate, certificate_unknown and an encrypted alert of a client that as well, or a certificate without "
    "the name or address that clients connect to (subjectAltName; ssl.endpoint.identification.algorithm compares it), "
    "certificate_expired a new certificate, certificate_required or handshake_failure a client certificate or shared "
    "ciphers, protocol_version TLS versions in common, unrecognized_name a name that the certificate has."
)
NO_TLS: Final = (
    "Now: look at the listener's protocol (Kafka: listener.security.protocol.map; MongoDB: net.tls.mode). Fix: connect "
    "without TLS (Kafka: security.protocol=PLAINTEXT or SASL_PLAINTEXT; MongoDB: tls=false), or name the port of a TLS "
    "listener."
)
CLOSED: Final = (
    "Now: look in the server's log at these addresses; compare the server name that the client sends (SNI) with what "
    "the server or the proxy in front of it serves, and the number of connections with its limits. Fix: the name in "
    "bootstrap.servers or in the connection string, a route in the proxy for it, or a higher limit."
)
UNANSWERED: Final = (
    "Now: look whether the process hangs (a thread dump; all of its network threads at work), whether it has reached a "
    "limit of connections (Kafka: max.connections lets new ones wait), and whether a proxy or balancer in front of it "
    "has a server to pass connections to. Fix: restart what hangs, raise the limit, or correct the proxy's route."
)
CUT: Final = (
    "Now: look in the server's log at this time and address: it names the login that failed, or the request that came "
    "before a login; with the key log of a client (--tls-keylog) the requests can be read here. Fix: give the client "
    "the login of that listener (Kafka: security.protocol=SASL_SSL with its sasl.mechanism and valid credentials; SSL "
    "where it has no login); if the log has no such line, compare the number of connections with the server's limits."
)
_HIDDEN: Final = "encrypted"
_HANDSHAKE_US: Final = 5_000_000
"""A handshake takes no longer."""
_REFUSED: Final = "it does not accept the certificate that it got"
_WHY: Final = {
    "unknown_ca": "it does not trust the issuer of the certificate that it got",
    "certificate_unknown": _REFUSED,
    "bad_certificate": _REFUSED,
    "certificate_expired": "the certificate that it got has expired",
    "certificate_revoked": "the certificate that it got is revoked",
    "unsupported_certificate": "it cannot use the kind of certificate that it got",
    "certificate_required": "the client sends no certificate, and the listener wants one",
    "protocol_version": "the two have no TLS version in common",
    "handshake_failure": "the two have no cipher in common, or the client sends no certificate that the listener wants",
    "insufficient_security": "the ciphers that are offered are too weak for it",
    "unrecognized_name": "the server has no certificate of this name",
    "no_application_protocol": "another protocol is served there (ALPN)",
    "client bad_certificate": f"{_REFUSED}, mostly as that lacks {{name}}",
    "client certificate_unknown": f"{_REFUSED}: it does not trust the issuer, or the certificate lacks {{name}}",
    "client encrypted": (
        f"{_REFUSED}: it does not trust the issuer, or the certificate lacks {{name}} (TLS 1.3 hides the alert's name)"
    ),
    "server encrypted": (
        "it does not accept the client's certificate, or demands one that was not sent (TLS 1.3 hides the alert's name)"
    ),
}
"""By alert, or by who sends it and alert, what it says of the two; ``{name}``: whom the client connects to."""
_CERTIFICATE: Final = ("unknown_ca", "certificate_required", "bad_certificate", "certificate_unknown", _HIDDEN)
"""Alerts by which libraries say that a certificate is not trusted, or missing; the one that says most comes first."""
_OF_VERSIONS: Final = frozenset({"protocol_version", "handshake_failure", "insufficient_security"})
"""Alerts to which the TLS versions that are offered may be the reason."""
ADVICE: Final = (ALERT, NO_TLS, CLOSED, UNANSWERED, CUT)
_CLOSED: Final = ("no-tls", "tls-closed")
_GAVE_UP_US: Final = 2_000_000
"""A client that ends a handshake so late (µs) without an answer waited for one."""


def troubles(known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """One for each server, and alert or other way to end handshakes."""
    spoken = speak_tls(known)
    ended: defaultdict[tuple[str, str], list[Life]] = defaultdict(list)
    for one in known.lives:
        shape = _shape(one, spoken)
        if shape:
            ended[one.server, shape].append(one)
    restart_us = int(settings.connection_restart_seconds * 1_000_000)
    for (server, shape), failed in sorted(ended.items()):
        since_us, last_us = failed[0].began_us, max(one.ended_us for one in failed)
        is_short = shape == "tls-closed" and last_us - since_us < restart_us
        if len(failed) < settings.connection_failures or (is_short and not _last(spoken[server], since_us, last_us)):
            continue
        is_critical = server not in known.answered and shape != "tls-closed"
        yield (
            _by_alert(server, shape, failed, is_critical=is_critical)
            if " " in shape
            else _without(server, shape, failed, is_critical=is_critical)
        )
    yield from _cut_off(known, settings)


def _cut_off(known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """A server that ends TLS connections of a host soon after the handshake, and keeps none: what was asked is hidden.

    Clients that have done their work close first.
    """
    by_host: defaultdict[tuple[str, str], list[Life]] = defaultdict(list)
    for server, lives in speak_tls(known).items():
        for one in lives:
            by_host[server, one.client_ip].append(one)
    for (server, host), lives in sorted(by_host.items()):
        cut = [one for one in lives if one.opened == "yes" and one.closed_by == "server" and _is_short(one)]
        times = times_of(cut)
        if len(cut) < settings.connection_failures or times[-1] - times[0] < _GAVE_UP_US:
            continue
        if not all(map(_is_short, lives)):
            continue
        longest_us = max(one.ended_us - one.began_us for one in cut)
        summary = (
            f"{server} finishes TLS handshakes with {host} and closes the connections within {brief(longest_us)} "
            f"({_span(cut)}), and none of that host lasts: the listener wants a login (SASL) or refuses it; the "
            "requests are encrypted."
        )
        yield _trouble(server, "tls-cut", cut, summary, CUT, (), whose=host, is_critical=True)


def _is_short(one: Life) -> bool:
    return one.ended_us - one.began_us <= _HANDSHAKE_US


def speak_tls(known: Seen) -> dict[str, list[Life]]:
    """By server the connections on which it continued the handshake."""
    return known.by_server(lambda one: _is_tls(one) and one.sent[1] > 0 and one.answers in ("", TLS) and not one.alert)


def _last(served: Iterable[Life], since_us: int, until_us: int) -> bool:
    """Whether one of them lasts that long: then the server was not restarted meanwhile."""
    return any(one.began_us <= since_us and one.ended_us >= until_us for one in served)


def _is_tls(one: Life) -> bool:
    return one.how == "other" and one.speaks == "tls"


def _shape(one: Life, spoken: Collection[str]) -> str:
    """How it ended, if that is no handshake in good order: a shape, or the alert's sender and name."""
    if one.how != "other":
        return ""
    by_client = "client" in (one.closed_by, one.reset_by)
    is_answered = one.answers not in (TLS, "", "nothing")
    if one.asks == TLS and (is_answered or (one.answers == "nothing" and one.closed_by == "server")):
        return _CLOSED[one.server in spoken]  # an alert of the client may follow: it expected more
    if one.alert and min(one.sent) and not _is_late(one):
        return _cause(one.alert)
    is_waiting = _is_tls(one) and one.opened == "yes" and one.sent[0] and not one.sent[1]
    return "tls-unanswered" if is_waiting and by_client and one.ended_us - one.began_us >= _GAVE_UP_US else ""


def _cause(alert: str) -> str:
    """What an alert is about: one certificate that is refused is one cause, whichever alerts libraries send."""
    who, _, what = alert.partition(" ")
    return f"{who} certificate" if what in _CERTIFICATE else alert


def _is_late(one: Life) -> bool:
    """Whether what looks like an encrypted alert came when the handshake was long over."""
    return one.alert.endswith(_HIDDEN) and one.ended_us - one.began_us > _HANDSHAKE_US


def _by_alert(server: str, cause: str, failed: Sequence[Life], *, is_critical: bool) -> Trouble:
    alerts = sorted({one.alert.partition(" ")[2] for one in failed}, key=_by_what_it_says)
    who, what = cause.partition(" ")[0], alerts[0]
    hosts, names = some(_hosts(failed)), _names(failed)
    ends, other = (hosts, server) if who == "client" else (server, hosts)
    asked = f", asked for as {some(names)}" if names else ""
    why = _WHY.get(f"{who} {what}") or _WHY.get(what, "")
    why = why.format(name=f"the name {some(names)}" if names else "its name or address") + _versions(what, failed)
    named = some("an encrypted alert" if one == _HIDDEN else f"the alert {one}" for one in alerts)
    summary = (
        f"{ends} ends the TLS handshake with {other} with {named}{asked} ({_span(failed)}){': ' if why else ''}{why}."
    )
    return _trouble(server, cause.replace(" ", "-"), failed, summary, ALERT, alerts, is_critical=is_critical)


def _without(server: str, shape: str, failed: Sequence[Life], *, is_critical: bool) -> Trouble:
    """A handshake without an alert."""
    hosts, span = some(_hosts(failed)), _span(failed)
    answers = sorted({one.answers for one in failed} - {"", "nothing"})
    if shape == "tls-unanswered":
        waited_us = max(one.ended_us - one.began_us for one in failed)
        summary = (
            f"{server} answers nothing to the TLS handshakes of {hosts} for up to {seconds(waited_us)} ({span})"
            ": the server hangs, takes up no more connections, or what is in front of it reaches no server."
        )
        return _trouble(server, shape, failed, summary, UNANSWERED, (), is_critical=is_critical)
    if shape == "tls-closed":
        summary = (
            f"{server} closes TLS handshakes of {hosts} without an answer ({span}) and continues others: a limit, a "
            "name or address that it does not accept, or something between closes them."
        )
        return _trouble(server, shape, failed, summary, CLOSED, (), is_critical=is_critical)
    how = f"answers {some(answers)} to" if answers else "closes"
    without = "" if answers else " without an answer"
    summary = (
        f"{server} {how} the TLS handshakes of {hosts}{without} ({span}): the listener does not speak TLS, the client "
        "does."
    )
    return _trouble(server, shape, failed, summary, NO_TLS, (), is_critical=is_critical)


def _trouble(
    server: str, shape: str, failed: Sequence[Life], summary: str, advice: str, alerts: Sequence[str], *,
    is_critical: bool, whose: str = "",
) -> Trouble:  # fmt: skip
    return Trouble(
        shape, server, whose, times_of(failed), len(failed), is_critical, summary, advice,
        details={
            "hosts": _hosts(failed), "connections": [one.connection_id for one in failed][:MOST_SHOWN],
            "alerts": list(alerts), "server_names": _names(failed),
        },
    )  # fmt: skip


def _hosts(failed: Sequence[Life]) -> list[str]:
    return sorted({one.client_ip for one in failed})


def _names(failed: Sequence[Life]) -> list[str]:
    return sorted({one.server_name for one in failed if one.server_name})


def _span(failed: Sequence[Life]) -> str:
    times = times_of(failed)
    return f"{pluralize(len(failed), 'connection')} from {clock(times[0])} to {clock(times[-1])} UTC"


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
