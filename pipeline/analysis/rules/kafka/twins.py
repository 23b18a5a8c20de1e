"""Processes that share a client id and a host: findings about one of them name its port, member id and since when.

Instances of a service often run on one host under the client id that their image states, or that their library gives.
Evidence: requests of another connection of that name and host meanwhile, as another member of the same group; or, where
no group is named, to the same server by the same api.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from pipeline.analysis.rules.callers import callers_in, host_of_address
from pipeline.analysis.rules.kafka.senders import Sender, with_senders
from pipeline.analysis.rules.model import NAMELESS, Finding
from pipeline.analysis.tables import ADDRESS, Row, Tables
from pipeline.humanize import clock

PROCESS: Final = "process"
"""Names the process in ``details``: client id, address, member id, since when; absent if it has no twin."""
_SHOWN_BY = f"""
    SELECT exchange_id, client_id, client_ip, {ADDRESS["client"]} AS address, {ADDRESS["server"]} AS server, api_key
    FROM exchanges SEMI JOIN shown USING (exchange_id) WHERE protocol = 'kafka'
"""
_MEMBERS = """
    SELECT group_id, client_id, host_of(client) AS host, client AS address, min(epoch_us(ts)) AS since_us,
        max(epoch_us(ts)) AS last_us, list(DISTINCT member_id) FILTER (coalesce(member_id, '') <> '') AS members,
        arg_max(member_id, ts) FILTER (coalesce(member_id, '') <> '') AS member_id
    FROM states WHERE group_id <> '' AND (kind IN ('join', 'heartbeat') OR group_protocol <> 'classic')
        AND group_id IN (SELECT unnest($groups))
    GROUP BY ALL
"""
"""Connections by which members join and show that they live."""
_CONNECTIONS = f"""
    SELECT client_id, client_ip AS host, {ADDRESS["server"]} AS server, api_key, {ADDRESS["client"]} AS address,
        min(epoch_us(ts)) AS since_us, max(epoch_us(ts)) AS last_us, NULL AS members, NULL AS member_id
    FROM exchanges AS e SEMI JOIN suspects AS s ON e.client_id IS NOT DISTINCT FROM s.client_id
        AND e.client_ip = s.host AND e.api_key = s.api_key
    WHERE protocol = 'kafka' GROUP BY ALL
"""


def named_apart(findings: Iterable[Finding], tables: Tables) -> list[Finding]:
    """The same findings with the hosts of their clients; of a process with twins each names it as no other.

    Args:
        findings: of any rule. What is for information is left as it is.
        tables: ``exchanges``, ``states``.
    """
    found = list(findings)
    ids = sorted({one for finding in found if _is_meant(finding) for one in finding.evidence})
    if not ids:
        return found
    tables.add("shown", pa.table({"exchange_id": pa.array(ids, pa.string())}))
    shown = {
        row.exchange_id: Sender(row.client_id, row.client_ip, row.address, row.server, row.api_key)
        for row in tables.rows(_SHOWN_BY)
    }
    found = [with_senders(one, shown) if _is_meant(one) else one for one in found]
    members = _twins(_members(found, tables), lambda row: (row.group_id, row.client_id, row.host))
    connections = _twins(
        _connections(found, shown, tables), lambda row: (row.client_id, row.host, row.server, row.api_key)
    )
    return [
        _named(finding, _process(finding, shown, members, connections)) if _is_meant(finding) else finding
        for finding in found
    ]


def _is_meant(finding: Finding) -> bool:
    return finding.severity != "info" and PROCESS not in finding.details


def _members(found: Iterable[Finding], tables: Tables) -> list[Row]:
    groups = sorted({one.group_id for one in found if one.group_id and _is_meant(one)})
    return tables.rows(_MEMBERS, groups=groups) if groups else []


def _connections(found: Iterable[Finding], shown: Mapping[str, Sender], tables: Tables) -> list[Row]:
    """Those of whoever sent the evidence of findings about no group."""
    suspects = {
        (one.client_id, one.host, one.api_key)
        for finding in found
        if _is_meant(finding) and not finding.group_id
        for one in _senders(finding, shown)
    }
    if not suspects:
        return []
    names, hosts, apis = zip(*sorted(suspects, key=str), strict=True)
    columns = {
        "client_id": pa.array(names, pa.string()),
        "host": pa.array(hosts, pa.string()),
        "api_key": pa.array(apis, pa.int32()),
    }
    tables.add("suspects", pa.table(columns))
    return tables.rows(_CONNECTIONS)


def _twins(rows: Iterable[Row], key: Any) -> dict[tuple[Any, ...], list[Row]]:
    """By key those that were there at the same time as another one of it."""
    of: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        of[key(row)].append(row)
    return {name: twins for name, some in of.items() if len(some) > 1 and (twins := _beside_another(some))}


def _beside_another(some: Sequence[Row]) -> list[Row]:
    in_order = sorted(some, key=lambda row: (row.since_us, row.last_us, row.address))
    beside: dict[str, Row] = {}
    last: Row | None = None
    for row in in_order:
        if last is not None and row.since_us < last.last_us:
            beside |= {last.address: last, row.address: row}
        if last is None or row.last_us > last.last_us:
            last = row
    return list(beside.values())


def _senders(finding: Finding, shown: Mapping[str, Sender]) -> Iterator[Sender]:
    return (shown[one] for one in finding.evidence if one in shown)


def _process(
    finding: Finding, shown: Mapping[str, Sender], members: Mapping[tuple[Any, ...], Sequence[Row]],
    connections: Mapping[tuple[Any, ...], Sequence[Row]],
) -> Row | None:  # fmt: skip
    """The process that a finding is about, if it has twins and it is known which of them it is."""
    senders = set(_senders(finding, shown))
    if not finding.group_id:
        if len({one.address for one in senders}) != 1:
            return None
        (address,) = {one.address for one in senders}
        rows = [
            row for one in senders for row in connections.get((one.client_id, one.host, one.server, one.api_key), ())
        ]
        return next((row for row in rows if row.address == address), None)
    stated = {name for key in ("member_id", "members") for name in _texts(finding.details.get(key))}
    names = {(one.client_id, one.host) for one in senders}
    names |= {(one.client_id, one.host) for one in callers_in(dict(finding.details)) if one.host is not None}
    twins = [row for name in sorted(names, key=str) for row in members.get((finding.group_id, *name), ())]
    by_member = [row for row in twins if stated & set(row.members or ())]
    by_address = [row for row in twins if row.address in {one.address for one in senders}]
    meant = by_member or by_address
    return meant[0] if len({row.address for row in meant}) == 1 else None


def _texts(value: object) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def _named(finding: Finding, process: Row | None) -> Finding:
    if process is None or process.address in finding.summary:  # which names it already
        return finding
    name = process.client_id or NAMELESS
    by_host = re.compile(rf"(?<!\w){re.escape(f'{name} at {process.host}')}(?![\w:]|\.\d)")
    short = f"{name} at {process.address}"
    stated = {name: getattr(process, name) for name in ("client_id", "address", "member_id", "since_us")}
    details = {**finding.details, PROCESS: stated}
    if isinstance(clients := details.get("clients"), str):
        details["clients"] = short if clients == name else by_host.sub(_literal(short), clients)
    return replace(
        finding, summary=by_host.sub(_literal(short), finding.summary),
        advice=by_host.sub(_literal(in_full(stated)), finding.advice), details=details,
    )  # fmt: skip


def _literal(text: str) -> str:
    return text.replace("\\", r"\\")


def in_full(process: Mapping[str, Any]) -> str:
    """Client id, host, port, member id, and since when it is seen."""
    member = f"member {process['member_id']}, " if process.get("member_id") else ""
    name = process.get("client_id") or NAMELESS
    return f"{name} at {process.get('address')} ({member}since {clock(int(process.get('since_us') or 0))} UTC)"


def is_of(process: Mapping[str, Any], client_id: str | None, host: str | None) -> bool:
    """Whether it is the process of that client id and host; a host that is not known is any."""
    own = host_of_address(str(process.get("address") or ""))
    return process.get("client_id") == client_id and host in (None, own)
