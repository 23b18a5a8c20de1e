"""All that the page asks of a lake: every query, over its whole time, of what it shows first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import duckdb

from pipeline.dashboard.queries import clients, latency, mongodb, quality
from pipeline.dashboard.queries.overview import findings, health, incidents, losses, names, proof, trends
from pipeline.dashboard.queries.progress import groups, offsets, partitions, shares, transactions
from pipeline.dashboard.queries.scope import NotThereYetError, Scope, extent
from pipeline.dashboard.queries.traffic import exchange_search, exchanges, sequence, steps
from pipeline.dashboard.sql import connect
from pipeline.dashboard.views import views

Guard = Callable[[], AbstractContextManager[None]]
_MOST = 12
"""Groups, partitions, findings and exchanges of which each is asked."""


def ask_everything(lake: Path, guard: Guard) -> None:
    """Ask each question by itself within a guard, so that one that fails hides no other."""
    with guard():
        connection = connect(lake)
        found = extent(connection)
        if found is not None:
            _ask(connection, Scope(found.first, found.last), guard)


def _ask(connection: duckdb.DuckDBPyConnection, scope: Scope, guard: Guard) -> None:
    def asked(question: Callable[..., Any], *given: Any) -> Any:
        with guard(), suppress(NotThereYetError):
            return question(connection, *given)
        return None

    for question in (
        clients.clients, clients.counts, latency.apis, latency.errors, mongodb.applications, mongodb.commands,
        mongodb.slow, mongodb.errors, mongodb.cursors, mongodb.open_cursors, findings.findings, findings.counts,
        incidents.incidents, incidents.incident_counts, health.health, names.names, partitions.lag,
        transactions.held_partitions, transactions.open_transactions, transactions.ended_transactions, exchanges.apis,
    ):  # fmt: skip
        asked(question, scope)
    asked(lambda _: clients.verdicts(clients.clients(connection, scope)))
    for question in (quality.checked, quality.failed):
        asked(question)
    asked(losses.losses, scope, "local/127.0.0.1:9092")
    for any_of in (latency.Asked(), latency.Asked(protocol="kafka")):
        for question in (latency.span, latency.over_time, latency.day_before, latency.heat):
            asked(question, scope, any_of)
    for view in views():
        asked(lambda connection, name=view.name: connection.sql(f"SELECT * FROM {name}").to_arrow_table())
    _ask_of_progress(asked, scope)
    _ask_of_trouble(asked, scope)
    _ask_of_traffic(asked, scope)


def _ask_of_progress(asked: Callable[..., Any], scope: Scope) -> None:
    for group in (asked(groups.groups, scope) or [])[:_MOST]:
        seen = asked(groups.group_seen, scope, group)
        asked(groups.rhythm, scope, group)
        if seen is not None:
            asked(lambda _, seen=seen: (seen.labels, seen.partitions))
    for place in (asked(partitions.places, scope) or [])[:_MOST]:
        for question in (offsets.offsets, partitions.lines, partitions.owners, partitions.committers):
            asked(question, scope, place)
    shared = asked(shares.shares, scope)
    for place in list(shared.delivered)[:_MOST] if shared is not None else ():
        seen = asked(shares.shares_seen, scope, shared, place)
        if seen is not None:
            asked(lambda _, seen=seen: shares.again(seen.held))


def _ask_of_trouble(asked: Callable[..., Any], scope: Scope) -> None:
    known = asked(incidents.incidents, scope) or []
    asked(lambda connection: list(trends.trends(connection, known)))
    for row in known[:_MOST]:
        whole = asked(incidents.incident, row["incident_id"])
        if whole is not None:
            asked(incidents.findings_of, whole)
    for row in (asked(findings.findings, scope) or [])[:_MOST]:
        asked(proof.proof, row, row["evidence"])


def _ask_of_traffic(asked: Callable[..., Any], scope: Scope) -> None:
    found = asked(exchange_search.search, scope, exchange_search.Search())
    asked(exchange_search.search, scope, exchange_search.Search(error=exchange_search.ANY_ERROR))
    asked(exchange_search.search, scope, exchange_search.Search(topic="orders", partition=0))
    for row in (found.rows if found is not None else [])[:_MOST]:
        asked(exchanges.one, row["exchange_id"], row["ts"])
        around = asked(sequence.around, row["connection_id"], row["ts"])
        if around is not None:
            asked(lambda _, around=around: steps.sequence(around.exchanges, around.losses))
