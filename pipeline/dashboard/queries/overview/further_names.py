"""Finds what a search names besides groups and the like: errors, rules, KIPs, members, an offset of a partition."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

import duckdb

from pipeline.analysis.rules.rule import Rule, all_rules
from pipeline.dashboard.queries.scope import IN_SPAN, Scope, rows_if_there

MOST = 12
"""Of each kind."""
MOST_NAMES = 300
"""Different errors that are looked through, the most frequent."""
_LEAST_MEMBER = 3
"""Characters by which a member is looked for."""
_OFFSET = re.compile(r"(?P<topic>.+)-(?P<partition>\d{1,9})@(?P<offset>\d{1,18})")
_KIP = re.compile(r"kip-?(\d+)", re.IGNORECASE)
_ERRORS = f"""
SELECT name, count(*) AS n FROM (SELECT unnest(error_names) AS name FROM silver.exchanges WHERE {IN_SPAN})
GROUP BY name ORDER BY n DESC, name LIMIT $most
"""  # noqa: S608 - our own text
_MEMBERS = f"""
SELECT DISTINCT cluster, group_id, member_id FROM silver.state_events
WHERE {IN_SPAN} AND contains(lower(member_id), $text) ORDER BY group_id, member_id LIMIT $most
"""  # noqa: S608 - our own text
_AT_OFFSET = f"""
SELECT kind, client_id, group_id, ts, exchange_id FROM silver.offset_events
WHERE {IN_SPAN} AND topic = $topic AND partition = $partition AND "offset" = $offset
ORDER BY ts, exchange_id LIMIT $most
"""  # noqa: S608 - our own text
_OF_RULES = """
SELECT rule, count(*) AS n, any_value(incident_id) AS incident_id FROM gold.findings
WHERE rule IN (SELECT unnest($rules::VARCHAR[])) AND first_ts <= $end
  AND (coalesce(state, 'ongoing') <> 'resolved' OR last_ts >= $start)
GROUP BY rule
"""


_NEVER_FOUND = {"n": 0, "incident_id": None}


@dataclass(frozen=True, slots=True)
class Found:
    """What a search finds.

    Attributes:
        kind: ``error``, ``api``, ``rule``, ``member`` or ``offset``.
        text: what it is called.
        count: how many there are: exchanges with an error, findings of a rule; None: not counted.
        cluster, group_id: of a member.
        incident_id: one that has a finding of a rule.
        exchange_id, ts: of an exchange that states an offset.
    """

    kind: str
    text: str
    count: int | None = None
    cluster: str = ""
    group_id: str | None = None
    incident_id: str | None = None
    exchange_id: str | None = None
    ts: datetime | None = None


def errors_seen(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[Found]:
    """Errors of the span and the number of exchanges with each, the most frequent first."""
    rows = rows_if_there(connection, _ERRORS, scope, most=MOST_NAMES)
    return [Found("error", row["name"], row["n"]) for row in rows]


def members_like(connection: duckdb.DuckDBPyConnection, scope: Scope, text: str) -> list[Found]:
    """Members of groups whose id has the text in it, in any case."""
    if len(text) < _LEAST_MEMBER:
        return []
    rows = rows_if_there(connection, _MEMBERS, scope, text=text.lower(), most=MOST)
    return [Found("member", row["member_id"], None, row["cluster"], row["group_id"]) for row in rows]


def at_offset(connection: duckdb.DuckDBPyConnection, scope: Scope, text: str) -> list[Found]:
    """What exchanges state of one offset, e.g. of ``payments-2@24``; the first of them."""
    asked = _OFFSET.fullmatch(text)
    if asked is None:
        return []
    rows = rows_if_there(
        connection, _AT_OFFSET, scope, topic=asked["topic"], partition=int(asked["partition"]),
        offset=int(asked["offset"]), most=MOST,
    )  # fmt: skip
    return [
        Found(
            "offset", f"{row['kind']} by {row['client_id'] or '?'} {row['group_id'] or ''}".rstrip(),
            exchange_id=row["exchange_id"], ts=row["ts"],
        )
        for row in rows
    ]  # fmt: skip


def rules_like(connection: duckdb.DuckDBPyConnection, scope: Scope, text: str) -> list[Found]:
    """Rules whose name or title has the text in it, or that speak of a KIP, with the number of their findings."""
    named = [rule for rule in all_rules() if _speaks_of(rule, text)][:MOST]
    rows = rows_if_there(connection, _OF_RULES, scope, rules=[rule.name for rule in named])
    known = {row["rule"]: row for row in rows}
    return sorted(
        (
            Found("rule", rule.name, row["n"], incident_id=row["incident_id"])
            for rule in named
            for row in [known.get(rule.name, _NEVER_FOUND)]
        ),
        key=lambda one: (not one.count, one.text),
    )


def _speaks_of(rule: type[Rule], text: str) -> bool:
    if asked := _KIP.fullmatch(text):
        spoken = " ".join((rule.title, rule.__doc__ or "", rule.meaning, *rule.advice))
        return re.search(rf"KIP-{asked[1]}\b", spoken) is not None
    wanted = text.casefold()
    return wanted in rule.name or wanted in rule.title.casefold()
