"""Rule ``kip896_incompatible_client``: whom an upgrade of the brokers to Kafka 4 cuts off, and which release does.

Kafka 4.0.0 dropped old versions of requests (KIP-896); 4.0.1 took JoinGroup v0 and v1 back (KAFKA-19444), by which
librdkafka before 2.11 decides whether it may log in by Kerberos.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from decoder.kafka.apis import ApiKey
from decoder.kafka.schema.releases import is_removed, refused_by, releases
from pipeline.analysis.claims.kafka.brokers import KIP896_INCOMPATIBLE_CLIENT
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import LATER, SEEN, Texts, own_clients
from pipeline.analysis.rules.kafka.clients.traffic import Traffic
from pipeline.analysis.rules.kafka.symptoms import MECHANISM
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import OF_ALL, Link, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import RuleThresholds
from pipeline.humanize import clock, listed, pluralize

ADVICE = (
    "Now: leave the brokers before Kafka 4 until this client is updated; if they are there already, update it at once. "
    "Fix: kafka-clients 2.1 or later, librdkafka 1.0 or later, other libraries of 2019 or later."
)
ADVICE_ONE_RELEASE = (
    "Now: nothing, as long as the brokers do not go to {releases}. Fix: upgrade them to 4.0.1 or later, which take it "
    "back (KAFKA-19444), or update the client: JoinGroup v2 or later; with Kerberos librdkafka 2.11 or later."
)


def _refused(case: Case) -> list[str]:
    """Clients whose requests a broker does not take."""
    refused = [node.bundle for node in case.tree.nodes if node.bundle.rule == "unsupported_version"]
    return sorted({entity[-1] for bundle in refused for entity in bundle.named.get("client", ())})


def _refusing(case: Case) -> str:
    """The brokers that do not take their requests."""
    refused = [node.bundle for node in case.tree.nodes if node.bundle.rule == "unsupported_version"]
    servers = sorted({entity[-1] for bundle in refused for entity in bundle.named.get("server", ())})
    return f"Broker {servers[0]}" if len(servers) == 1 else f"Each of {len(servers)} brokers" if servers else "A broker"


def _with_hosts(case: Case, names: Iterable[str]) -> str:
    hosts = {caller.client_id: caller for one in case.tree.findings for caller in one.callers if caller.host}
    return listed(str(hosts.get(name, name)) for name in names)


def _old_clients(case: Case) -> str:
    clients = _refused(case)
    names = sorted({str(one.row["subject"]) for one in case.bundle.findings if one.rule == case.bundle.rule})
    if clients:
        refused = [one for one in case.tree.findings if one.rule == "unsupported_version"]
        kinds = sorted({str(one.row["subject"]).rpartition("/")[2] for one in refused})
        first = f"{_refusing(case)} refuses {_with_hosts(case, clients)} ({listed(kinds)}); "
        others = [name for name in names if name not in clients]
        if not others:
            return f"{first}the library is too old for it, and for Kafka 4"
        also = "" if len(others) == len(names) else "with it " if len(clients) == 1 else "with them "
        return f"{first}{also}{_too_old(len(names))}: {_with_hosts(case, others)}"
    return f"{_too_old(len(names))}: {_with_hosts(case, names)}"


def _too_old(clients: int) -> str:
    return f"{'1 client is' if clients == 1 else f'{clients} clients are'} too old for Kafka 4"


def _old_clients_now(case: Case) -> str:
    refused = _refused(case)
    now = f"Update the library of {listed(refused)}: it cannot work with its broker. " if refused else ""
    return f"{now}Do not take brokers to Kafka 4 before these clients are updated."


class Kip896IncompatibleClient(Rule):
    """A client uses protocol versions that Kafka 4 has removed."""

    name = "kip896_incompatible_client"
    title = "Client too old for Kafka 4 (KIP-896)"
    protocol = "kafka"
    about = "clients and brokers"
    severities = ("warning", "info")
    reads = ("exchanges", "states")
    advice = (ADVICE, ADVICE_ONE_RELEASE)
    urgency = LATER
    shown_by = ShownBy(further="clients")
    texts = Texts(
        headline=_old_clients,
        now=_old_clients_now,
        fix="kafka-clients 2.1 or later, librdkafka 1.0 or later, other libraries of 2019 or later.",
        reasoning=f"{SEEN}the versions of their requests.",
        affected=own_clients,
        source=lambda case: listed(sorted({str(one.row["subject"]) for one in case.bundle.findings})),
    )
    gathered = OF_ALL
    subject = (CLIENT,)
    effects = (Link(("unsupported_version", "old_message_format"), (CLIENT,), "the library is too old for the broker"),)
    claims = KIP896_INCOMPATIBLE_CLIENT

    @classmethod
    def detect(cls, sources: Sources, settings: RuleThresholds) -> Iterator[Finding]:
        """Apply the rule: who uses what releases refuse, although the broker would take newer ones, or unasked."""
        asks = {(t.server, t.client_id, t.client_ip) for t in sources.traffic if t.api_key == ApiKey.API_VERSIONS}
        found: defaultdict[tuple[str, str], _Client] = defaultdict(_Client)
        by_kerberos = _old_kerberos(sources)
        for t in sources.traffic:
            client = t.cluster, t.client_id or "?"
            if t.api_key == ApiKey.SASL_HANDSHAKE and (t.client_id or "", t.client_ip) in by_kerberos:
                found[client].add("Kerberos with librdkafka before 2.11", t, refused_by(ApiKey.JOIN_GROUP, 0))
            by = refused_by(t.api_key, t.api_version)
            if not by or (by[-1] == _newest() and not is_removed(t.api_key, t.api_version)):
                continue
            has_newer = sources.newest.get(t.cluster, {}).get(t.api_key, 0) >= _first_taken(t.api_key, by[0])
            if has_newer or (t.server, t.client_id, t.client_ip) not in asks:
                found[client].add(f"{t.api_name} v{t.api_version}", t, by)
                found[client].is_removed |= is_removed(t.api_key, t.api_version)
        for (cluster, client_id), client_ in sorted(found.items()):
            yield _finding(cluster, client_id, client_, sources, settings)


_LIBRDKAFKA = re.compile(r"(?:^|rdkafka[ -]?v?)(\d+)\.(\d+)")
_MENDED = (2, 11)
"""The first librdkafka that logs in by Kerberos although a broker lacks JoinGroup v0 (KAFKA-19444)."""
_KERBEROS = "GSSAPI"


@dataclass(slots=True)
class _Client:
    """What of a client some release of Kafka 4 refuses."""

    uses: list[Traffic] = field(default_factory=list)
    refused: dict[str, list[str]] = field(default_factory=dict)
    is_removed: bool = False

    def add(self, what: str, used: Traffic, by: list[str]) -> None:
        """Something that it uses, and the releases that refuse it."""
        self.uses.append(used)
        self.refused[what] = by


def _finding(cluster: str, client_id: str, client: _Client, sources: Sources, settings: RuleThresholds) -> Finding:
    uses, apis = client.uses, sorted(client.refused)
    first_us, last_us = min(t.first_us for t in uses), max(t.last_us for t in uses)
    times = sum(t.times for t in uses)
    hosts = sorted({t.client_ip for t in uses})
    by = sorted({release for some in client.refused.values() for release in some})
    who = "Kafka 4 no longer answers" if client.is_removed else f"Kafka {', '.join(by)} alone does not answer"
    summary = (
        f"Client {client_id} at {', '.join(hosts)} uses {', '.join(apis)}, which {who} "
        f"(KIP-896): {pluralize(times, 'request')} from {clock(first_us)} to {clock(last_us)} UTC."
    )
    return Finding(
        rule=Kip896IncompatibleClient.name, severity="warning" if client.is_removed else "info", subject=client_id,
        state=sources.state(cluster, first_us, last_us, times), cluster=cluster, topic=None, partition=None,
        group_id=None, first_us=first_us, last_us=last_us, summary=summary,
        advice=ADVICE if client.is_removed else ADVICE_ONE_RELEASE.format(releases=", ".join(by)),
        evidence=[t.evidence for t in uses][: settings.max_evidence],
        details={
            "apis": apis, "hosts": hosts, "requests": times, "refused_by": client.refused, "enough_us": first_us,
        },
    )  # fmt: skip


def _old_kerberos(sources: Sources) -> set[tuple[str, str]]:
    """Client ids and hosts of librdkafka before 2.11 that log in by Kerberos, as their ApiVersions state it."""
    logins = [e for e in sources.episodes.get(MECHANISM, ()) if _KERBEROS in e.names]
    if not logins:
        return set()
    by_kerberos = {client for e in logins for client in e.clients}
    rows = sources.tables.rows(
        """
        SELECT DISTINCT coalesce(client_id, '') AS client_id, host_of(client) AS client_ip,
            software_name, software_version
        FROM states WHERE kind = 'software' AND contains(software_name || software_version, 'rdkafka')
        ORDER BY ALL
        """
    )
    return {
        (row.client_id, row.client_ip)
        for row in rows
        if f"{row.client_id} at {row.client_ip}" in by_kerberos and is_before_mended(row.software_version)
    }


def is_before_mended(software_version: str) -> bool:
    """Whether a library is, or is built on, librdkafka before 2.11: ``2.3.0``, or ``2.2.0-rdkafka-2.2.0``."""
    known = _LIBRDKAFKA.findall(software_version)
    return bool(known) and tuple(map(int, known[-1])) < _MENDED


def _first_taken(api_key: int, release: str) -> int:
    """The oldest version of an api that a release answers; 0 if it knows none."""
    return releases()[release].get(api_key, (0, 0))[0]


def _newest() -> str:
    return next(reversed(releases()))
