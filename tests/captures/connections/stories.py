"""All recordings of this folder, with what must be found in each."""

from __future__ import annotations

from collections.abc import Callable

from tests.captures.connections import healthy, paths, queues, secure, sick
from tests.captures.connections.listeners import CONTROLLER
from tests.captures.connections.story import Pair, Stage, Story

FAILED = "connection_failed"
_SASL = "SASL_PLAINTEXT"
_ONLY_TLS12 = ("ssl.enabled.protocols=TLSv1.2", "ssl.protocol=TLSv1.2")


def _by(rule: str, *subjects: str) -> frozenset[Pair]:
    """Findings of a rule."""
    return frozenset((rule, subject) for subject in subjects)


def _failed(*shapes: str) -> frozenset[Pair]:
    """Findings of the rule about connections at the story's server."""
    return _by(FAILED, *(f"{{server}}/{shape}" for shape in shapes))


def _clients(shape: str, *names: str) -> frozenset[Pair]:
    """The same, one for each client."""
    return _failed(*(f"{shape}/{name}/{{client}}" for name in names))


_THREE = ("", "-java", "-python")


def _three(shape: str, name: str) -> frozenset[Pair]:
    """The same of librdkafka, Java and kafka-python."""
    return _clients(shape, *(name + end for end in _THREE))


def _story(number: int, play: Callable[[Stage], None], **more: object) -> Story:
    prefix = "healthy_" if play.__module__ == healthy.__name__ else ""
    return Story(number, prefix + play.__name__, play, **more)  # type: ignore[arg-type]


STORIES = (
    _story(1, sick.nobody_listens, protocol="", findings=_failed("refused")),
    _story(2, sick.unanswered, findings=_failed("unanswered")),
    _story(3, sick.tls_at_plaintext, findings=_failed("no-tls")),
    _story(4, sick.plaintext_at_tls, protocol="SSL", findings=_by("other_protocol", "{server}/Kafka/TLS")),
    _story(5, sick.certificate_refused, protocol="SSL", findings=_failed("client-certificate")),
    _story(
        6, sick.certificate_refused_tls12, protocol="SSL", settings=_ONLY_TLS12,
        findings=_failed("client-certificate"),
    ),
    _story(
        7, sick.client_certificate_missing, protocol="SSL", settings=("ssl.client.auth=required",),
        findings=_failed("server-certificate"),
    ),
    _story(
        8, sick.tls_version, protocol="SSL", settings=("ssl.enabled.protocols=TLSv1.3",),
        findings=_failed("server-protocol_version"),
    ),
    _story(9, sick.sasl_needed, protocol=_SASL, findings=_three("sasl", "guest")),
    _story(10, sick.mechanism_refused, protocol=_SASL, findings=_by("auth_failed", "{server}/scram")),
    _story(11, sick.credentials_refused, protocol=_SASL, findings=_by("auth_failed", "{server}/mistaken")),
    _story(12, sick.controller, protocol=CONTROLLER, findings=_three("controller", "lost")),
    _story(13, sick.advertised, advertised="kafka-internal:29092", findings=_three("advertised", "outside")),
    _story(14, sick.advertised_refused, advertised="127.0.3.99:9192", findings=_clients("advertised", "outside")),
    _story(15, sick.idle, findings=_clients("idle", "quiet")),
    _story(16, sick.large_requests, findings=_clients("too-large", "bulky")),
    _story(17, sick.large_responses, findings=_clients("too-large", "bulky")),
    _story(18, sick.client_full, findings=_clients("client-full", "frozen")),
    _story(19, sick.server_full, findings=_clients("server-full", "eager"), is_alone=True),
    _story(20, sick.client_resets, findings=_by("connection_churn", "small/{client}")),
    _story(21, sick.limit, most_connections=2, findings=_failed("limit")),
    _story(22, sick.storm, most_connections=2, findings=_failed("storm")),
    _story(23, sick.http_answers, protocol="", findings=_by("other_protocol", "{server}/Kafka/HTTP")),
    _story(
        24, sick.too_old,
        findings=_by("unsupported_version", "old/Produce v1") | _by("kip896_incompatible_client", "old"),
    ),
    _story(25, sick.mongodb_refused, protocol="", is_mongodb=True, findings=_failed("refused")),
    _story(26, sick.mongodb_unanswered, protocol="", is_mongodb=True, findings=_failed("unanswered")),
    _story(27, sick.mongodb_idle, protocol="", is_mongodb=True, findings=_clients("idle", "quiet")),
    _story(28, sick.mongodb_members, protocol="", is_mongodb=True, findings=_clients("members", "outside")),
    _story(29, sick.coordinator_cut, findings=_clients("dropped", "carrier")),
    _story(30, paths.one_way, findings=_failed("one-way")),
    _story(31, paths.mongodb_one_way, protocol="", is_mongodb=True, findings=_failed("one-way")),
    _story(32, paths.away, findings=_failed("away")),
    _story(33, paths.away_behind_handshakes, findings=_failed("away")),
    _story(34, paths.mongodb_away, protocol="", is_mongodb=True, findings=_failed("away")),
    _story(35, paths.host_cut, findings=_failed("path")),
    _story(36, paths.host_shut_out, findings=_failed("path")),
    _story(37, paths.tls_closed, protocol="SSL", most_connections=2, findings=_failed("tls-closed")),
    _story(38, paths.tls_unanswered, protocol="SSL", findings=_failed("tls-unanswered"), is_alone=True),
    _story(39, paths.rejected, has_icmp=True, findings=_failed("rejected")),
    _story(40, paths.mongodb_rejected, has_icmp=True, protocol="", is_mongodb=True, findings=_failed("rejected")),
    _story(51, paths.no_route, has_icmp=True, findings=_failed("no-route")),
    _story(52, paths.rejected_amid_work, has_icmp=True, findings=_failed("rejected")),
    _story(54, paths.deaf, findings=_failed("deaf/{client}")),
    _story(55, secure.name_lacking, protocol="SSL", findings=_failed("client-certificate")),
    _story(
        56, secure.name_lacking_tls12, protocol="SSL", settings=_ONLY_TLS12, findings=_failed("client-certificate"),
    ),
    _story(57, secure.login_lacking, protocol="SASL_SSL", findings=_failed("tls-cut/{client}")),
    _story(58, secure.login_refused, protocol="SASL_SSL", findings=_failed("tls-cut/{client}")),
    _story(60, queues.connections_wait, settings=("max.connections=2",), findings=_failed("unaccepted")),
    _story(61, queues.queue_full, protocol="", findings=_failed("unaccepted")),
    _story(
        63, paths.other_family_dropped, advertised=f"{paths.SLOW}:9155", also_at="::1",
        findings=_by(FAILED, "{also}/other-family"),
    ),
    _story(65, paths.old_address, also_at=paths.GONE, findings=_by(FAILED, "{also}/other-address")),
    _story(66, sick.long_polls, findings=_by("connection_churn", "hasty/{client}/Fetch")),
    _story(62, queues.mongodb_queue_full, protocol="", is_mongodb=True, findings=_failed("unaccepted")),
    _story(41, healthy.checks, info=_failed("check/{client}")),
    _story(42, healthy.idle_at_client),
    _story(43, healthy.idle_at_broker, settings=("connections.max.idle.ms=5000",)),
    _story(44, healthy.deploy),
    _story(45, healthy.restart, is_alone=True),
    _story(46, healthy.short_outage),
    _story(47, healthy.mongodb_pool, protocol="", is_mongodb=True),
    _story(48, healthy.answers_lost),
    _story(49, healthy.packets_lost),
    _story(53, healthy.rejected_briefly, has_icmp=True),
    _story(59, healthy.tls_clients, protocol="SSL", settings=("connections.max.idle.ms=5500",)),
    _story(
        64, healthy.two_families, advertised=f"{healthy.BOTH}:9156", also_at="::1",
        info=_by(FAILED, "{also}/other-family"),
    ),
    _story(50, healthy.tls_pause, protocol="SSL", is_alone=True),
)  # fmt: skip
