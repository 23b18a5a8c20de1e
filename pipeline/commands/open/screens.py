"""Asks the tables for what a screen shows, and makes it a view."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import singledispatchmethod
from typing import Any

from pipeline.analysis.descriptions import ProtocolDescribers, described
from pipeline.analysis.safety.guard import InternalError, Noted, noting
from pipeline.commands.messages.tree import explained_row
from pipeline.commands.open.incident_views import finding_view, incident_view, start_view
from pipeline.commands.open.message_views import (
    bytes_view,
    connection_view,
    connections_view,
    exchange_view,
    messages_view,
)
from pipeline.commands.open.progress_views import absent_view, group_view, partition_view
from pipeline.commands.open.source import Source
from pipeline.commands.open.view import (
    Bytes,
    Connections,
    Messages,
    OneConnection,
    OneExchange,
    OneFinding,
    OneIncident,
    Start,
    Target,
    View,
    sentence,
)
from pipeline.dashboard.queries.overview import findings, incidents
from pipeline.dashboard.queries.progress import groups, offsets, partitions
from pipeline.dashboard.queries.progress.groups import Group
from pipeline.dashboard.queries.progress.partitions import Place
from pipeline.dashboard.queries.scope import NotThereYetError
from pipeline.dashboard.queries.traffic import connections, exchange_search, exchanges, sequence
from pipeline.dashboard.queries.traffic.steps import sequence as steps_of
from pipeline.errors import UserError

_PATIENCE_S = 5.0
"""How long a search looks further back before it shows what it found."""


class Rooms:
    """The screens of a capture or a lake."""

    def __init__(self, source: Source) -> None:
        self._noted = Noted()
        self._noted.add(source.errors)
        self._source, self._connection, self._scope = source, source.connection, source.scope

    def replace(self, source: Source) -> None:
        """Show what is there now."""
        self._connection.close()
        self._noted.add(source.errors)
        self._source, self._connection, self._scope = source, source.connection, source.scope

    def close(self) -> None:
        """Ask nothing more."""
        self._connection.close()

    @property
    def errors(self) -> tuple[InternalError, ...]:
        """Steps and screens that failed, because of a fault of ours."""
        return self._noted.errors

    def view(self, target: Target) -> View:
        """The view of a target; of one that cannot be read or made a sentence that says why."""
        try:
            with noting(self._noted):
                return self._of(target)
        except NotThereYetError:
            return View("not there", (sentence("This lake has no table of that yet.", "yellow"),))
        except UserError as error:
            return View("not readable", (sentence(str(error), "yellow"),))
        except Exception as error:  # one screen must not end the walk
            failed = InternalError.of(error, f"screen {type(target).__name__}")
            self._noted.add([failed])
            return View("not shown", (sentence(str(failed), "yellow"),))

    @singledispatchmethod
    def _of(self, target: Any) -> View:
        raise TypeError(type(target).__name__)

    @_of.register
    def _(self, _: Start) -> View:
        source, scope = self._source, self._scope
        counts = incidents.incident_counts(self._connection, scope)
        seen, lag = [], []
        with suppress(NotThereYetError):
            seen = groups.groups(self._connection, scope)
        with suppress(NotThereYetError):
            lag = partitions.lag(self._connection, scope)
        rows = incidents.incidents(self._connection, scope)
        return start_view(source.name, scope, source.notes, rows, sum(counts.values()), seen, lag)

    @_of.register
    def _(self, target: OneIncident) -> View:
        row = incidents.incident(self._connection, target.incident_id)
        if row is None:
            return View("incident", (sentence("There is no such incident any more.", "yellow"),))
        return incident_view(row, incidents.findings_of(self._connection, row))

    @_of.register
    def _(self, target: OneFinding) -> View:
        row = findings.finding(self._connection, target.finding_id)
        if row is None:
            return View("finding", (sentence("There is no such finding any more.", "yellow"),))
        ids = list(row["evidence"] or ())
        shown = exchanges.by_ids(self._connection, ids, row["first_ts"], row["last_ts"]) if ids else []
        return finding_view(row, shown)

    @_of.register
    def _(self, target: Group) -> View:
        shown = groups.group_seen(self._connection, self._scope, target)
        if shown is None:
            return absent_view(f"group {target.group_id}")
        return group_view(shown, partitions.lag(self._connection, self._scope))

    @_of.register
    def _(self, target: Place) -> View:
        shown = offsets.offsets(self._connection, self._scope, target)
        if shown is None:
            return absent_view(f"partition {target.topic}-{target.partition}")
        where = target.parameters()
        lag = partitions.lag(self._connection, self._scope)
        standing = next((row for row in lag if all(row[name] == where[name] for name in where)), None)
        who = partitions.committers(self._connection, self._scope, target) if target.group_id else []
        return partition_view(shown, standing, who)

    @_of.register
    def _(self, _: Connections) -> View:
        rows = connections.connections(self._connection, self._scope, None, failed=False)
        return connections_view(rows, connections.MOST)

    @_of.register
    def _(self, target: OneConnection) -> View:
        part = sequence.around(self._connection, target.connection_id, target.at)
        life = connections.life_of(self._connection, target.connection_id, self._scope)
        is_first, is_last = part.earlier is None, part.later is None
        steps = steps_of(part.exchanges, part.losses, life, is_first=is_first, is_last=is_last)
        return connection_view(target, part, life, steps)

    @_of.register
    def _(self, target: Messages) -> View:
        found = exchange_search.search(self._connection, self._scope, target.wanted, target.before, _PATIENCE_S)
        return messages_view(target, found)

    @_of.register
    def _(self, target: OneExchange) -> View:
        row = exchanges.one(self._connection, target.exchange_id, target.ts)
        if row is None:
            text = "This exchange is not in the tables: it still waits for its answer, or has expired."
            return View("message", (sentence(text, "yellow"),))
        frames = [(frame, explained_row(frame)) for frame in exchanges.frames(self._connection, row)]
        before = sequence.exchange_before(self._connection, row)
        return exchange_view(row, self._words(row), frames, before)

    @_of.register
    def _(self, target: Bytes) -> View:
        return bytes_view(target)

    def _words(self, row: Mapping[str, Any]) -> str:
        found = exchanges.by_ids(self._connection, [row["exchange_id"]], row["ts"], row["ts"])
        return found[0]["words"] if found else described(dict(row), ProtocolDescribers())
