"""Rule ``kip896_incompatible_client``."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import LATER, SEEN, Texts, own_clients
from pipeline.analysis.rules.rule import OF_ALL, Link, Rule
from pipeline.humanize import listed

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
    first = ""
    if clients:
        refused = [one for one in case.tree.findings if one.rule == "unsupported_version"]
        kinds = sorted({str(one.row["subject"]).rpartition("/")[2] for one in refused})
        first = f"{_refusing(case)} refuses {_with_hosts(case, clients)} ({listed(kinds)}); "
        names = [name for name in names if name not in clients]
        if not names:
            return f"{first}the library is too old for it, and for Kafka 4"
    many = "1 client is" if len(names) == 1 else f"{len(names)} clients are"
    return f"{first}{many} too old for Kafka 4: {_with_hosts(case, names)}"


def _old_clients_now(case: Case) -> str:
    refused = _refused(case)
    now = f"Update the library of {listed(refused)}: it cannot work with its broker. " if refused else ""
    return f"{now}Do not take brokers to Kafka 4 before these clients are updated."


class Kip896IncompatibleClient(Rule):
    """A client uses protocol versions that Kafka 4 has removed."""

    name = "kip896_incompatible_client"
    title = "Client too old for Kafka 4 (KIP-896)"
    protocol = "kafka"
    severities = ("warning", "info")
    reads = ("exchanges", "states")
    advice = (ADVICE, ADVICE_ONE_RELEASE)
    urgency = LATER
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
