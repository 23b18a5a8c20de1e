"""The host of each client that a finding names, and the clients of a group where it names none: by its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.callers import callers_in
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.model import NAMELESS, Finding

_OF_GROUPS = frozenset({
    ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT,
    ApiKey.TXN_OFFSET_COMMIT, ApiKey.CONSUMER_GROUP_HEARTBEAT,
})  # fmt: skip
"""Requests of a group's own clients; others read and write the same topic."""


class Sender(NamedTuple):
    """Who sent a request that a finding has as evidence."""

    client_id: str | None
    host: str
    address: str
    server: str
    api_key: int | None


def with_senders(finding: Finding, shown: Mapping[str, Sender]) -> Finding:
    """A finding whose ``details`` name the hosts of its clients, as far as its evidence shows them.

    Args:
        finding: of any rule.
        shown: by id of an exchange, who sent its request.
    """
    senders = list(dict.fromkeys(shown[one] for one in finding.evidence if one in shown))
    details = {**finding.details, **_hosts(finding, senders)}
    return replace(finding, details=details) if senders and details != finding.details else finding


def _hosts(finding: Finding, senders: Iterable[Sender]) -> Mapping[str, Any]:
    some, details = list(senders), dict(finding.details)
    hosts: dict[str | None, set[str]] = {}
    for one in some:
        hosts.setdefault(one.client_id, set()).add(one.host)
    callers = list(callers_in(details))
    if not callers and finding.group_id:
        names = {who(one.client_id, one.host) for one in some if one.api_key in _OF_GROUPS}
        return {"clients": sorted(names)} if names else {}
    if not callers:
        subject = next((name for name in hosts if name and f"/{finding.subject}".endswith(f"/{name}")), None)
        return {"hosts": sorted(hosts[subject])} if subject and "hosts" not in details else {}
    return dict(_filled(details, {name: next(iter(of)) for name, of in hosts.items() if len(of) == 1}))


def _filled(details: Mapping[str, Any], hosts: Mapping[str | None, str]) -> Iterator[tuple[str, Any]]:
    """What names clients without their host, with it."""
    name = details.get("client_id")
    if isinstance(name, str) and name in hosts and not details.keys() & {"host", "hosts", "client_ip", "address"}:
        yield "host", hosts[name]
    clients = details.get("clients")
    if isinstance(clients, list):
        yield "clients", [who(one, hosts[one]) if one in hosts and one != NAMELESS else one for one in clients]
