"""What a message about an incident looks like to whom it is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from pipeline.embedded.incident_changes import IncidentChange
from pipeline.terminal.console import printable

Incident = Mapping[str, Any]
COLUMNS = (
    "incident_id", "severity", "state", "headline", "impact", "immediate_action", "remediation", "confidence",
    "reasoning", "source", "affected", "rule", "cluster", "topic", "partition", "group_id", "first_ts", "last_ts",
)  # fmt: skip
"""Columns of ``gold.incidents`` that a message holds: no payload, no raw bytes."""
_WORDS = {
    "new": "begins",
    "again": "comes again",
    "worse": "gets worse",
    "root": "has another cause than reported",
    "resolved": "is over",
}
_MOST = 2_000
"""Characters of a text that is sent to a chat."""


class Shape(str, Enum):
    """Who reads a message: a program of yours, Slack (or what takes its messages), or Alertmanager."""

    JSON = "json"
    SLACK = "slack"
    ALERTMANAGER = "alertmanager"


def as_json(change: IncidentChange, lake: str, page: str | None) -> dict[str, Any]:
    """The change and the incident's columns, times as ISO 8601 in UTC.

    Args:
        change: what happened to it.
        lake: where it is.
        page: address of the web page; None: not known.
    """
    row = change.row
    message: dict[str, Any] = {"change": change.kind, "lake": lake}
    message |= {name: _plain(row.get(name)) for name in COLUMNS}
    message["page"] = f"{page.rstrip('/')}{row['page']}" if page else None
    return message


def as_slack(change: IncidentChange, lake: str, page: str | None) -> dict[str, Any]:
    """A text in Slack's ``mrkdwn``; names from the wire cannot make links or mentions of it."""
    row = change.row
    lines = [
        f"*{_slack(row['severity']).upper()}* {_WORDS[change.kind]}: {_slack(row['headline'])}",
        _slack(row["impact"]),
    ]
    if change.kind != "resolved":
        lines.append(f"*Now:* {_slack(row['immediate_action'])}")
    lines += (f"Reported before as: {_slack(before)}" for before in change.before)
    if page:
        lines.append(f"<{page.rstrip('/')}{_slack(row['page'])}|Open the incident>")
    return {"text": "\n".join(line for line in lines if line)[:_MOST]}


def is_open(incidents: Iterable[Incident], page: str | None) -> Sequence[dict[str, Any]]:
    """Those that are open as alerts of Alertmanager's API v2.

    Alertmanager takes an alert for resolved that is not sent again within its ``resolve_timeout`` (5 minutes by
    default), so they are sent at each look.
    """
    return [_alert(one, page) for one in incidents if one["state"] == "ongoing"]


def ended(incidents: Iterable[Incident], page: str | None) -> Sequence[dict[str, Any]]:
    """Those that are over as resolved alerts of Alertmanager's API v2."""
    return [_alert(one, page) | {"endsAt": _time(one["last_ts"])} for one in incidents]


def _alert(row: Incident, page: str | None) -> dict[str, Any]:
    labels = {
        "alertname": row["rule"], "severity": row["severity"], "incident_id": row["incident_id"],
        "cluster": row["cluster"], "topic": row.get("topic"), "group": row.get("group_id"),
    }  # fmt: skip
    made = {
        "labels": {name: printable(str(value)) for name, value in labels.items() if value},
        "annotations": {
            "summary": printable(row["headline"]),
            "description": printable(f"{row['impact']} {row['immediate_action']}"),
            "remediation": printable(row["remediation"]),
        },
        "startsAt": _time(row["first_ts"]),
    }
    return made | ({"generatorURL": f"{page.rstrip('/')}{row['page']}"} if page else {})


def _slack(text: str) -> str:
    """Slack's three escapes, without which ``<!channel>`` in a client id would call everybody."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(value: object) -> object:
    return _time(value) if isinstance(value, datetime) else value


def _time(value: datetime) -> str:
    return value.astimezone(timezone.utc).isoformat(timespec="milliseconds")


MESSAGES: Mapping[Shape, Callable[[IncidentChange, str, str | None], dict[str, Any]]] = {
    Shape.JSON: as_json,
    Shape.SLACK: as_slack,
}
"""Shapes in which each change is a message of its own."""
