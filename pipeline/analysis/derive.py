"""All tables of silver and gold at once, from decoded frames, for data that one process holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.catalog_tables import brokers, topics
from pipeline.analysis.clients import clients
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.connections import connections
from pipeline.analysis.duplicates.duplicate_flows import all_copies, counted, waiting
from pipeline.analysis.duplicates.translated import Statements
from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.inferred import with_inferred
from pipeline.analysis.minutes import api_latency, mongo_minutes
from pipeline.analysis.ownership.assignments import assignments
from pipeline.analysis.ownership.fetch_sessions import fetch_sessions
from pipeline.analysis.ownership.transactions import transactions
from pipeline.analysis.pairing import completed, exchanges, halves_of, pending
from pipeline.analysis.rules.run import Found, find_all
from pipeline.analysis.rules.thresholds import RuleThresholds
from pipeline.analysis.safety.guard import attempt
from pipeline.analysis.statements.exchanges import TABLES, KafkaStatements, mongodb_statements, placed, with_handshakes
from pipeline.analysis.tables import Tables
from pipeline.analysis.timeline.rows import timeline
from pipeline.config.settings import StreamSettings
from pipeline.tables import (
    API_LATENCY,
    ASSIGNMENTS,
    BROKERS,
    CLIENTS,
    CONNECTIONS,
    DUPLICATE_FLOWS,
    EXCHANGES,
    EXCHANGES_WITH_BODIES,
    FETCH_SESSIONS,
    FRAMES,
    GAPS,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    MONGO_MINUTES,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    PENDING_EXCHANGES,
    RECORD_BATCHES,
    STATE_EVENTS,
    TOPICS,
    TRANSACTIONS,
    Table,
)


@dataclass(frozen=True, slots=True)
class Derived:
    """What was derived.

    Attributes:
        tables: by their full name in the lake; beside ``silver.exchanges`` are the same exchanges with their bodies.
        pending: exchanges with their bodies whose other half may still come; none is a copy.
        catalog: clusters and topic names.
    """

    tables: Mapping[str, pa.Table]
    pending: pa.Table
    catalog: ClusterCatalog

    def of(self, table: Table) -> pa.Table:
        """The rows of a table."""
        return self.tables[table.full_name]

    def once(self, table: Table) -> pa.Table:
        """The same without copies."""
        return counted(self.of(table), self.of(DUPLICATE_FLOWS))


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was taken from frames, without what follows from all of it.

    Attributes:
        exchanges: completed ones, with their bodies.
        pending: those whose other half may still come.
        events, batches, states: what the completed ones of Kafka state: rows of ``silver.offset_events``,
            ``record_batches`` and ``state_events``.
        commands: rows of ``silver.mongo_commands``, without what handshakes state.
        handshakes: rows of ``silver.mongo_handshakes``.
        gaps: rows of ``bronze.gaps``.
        catalog: clusters and topic names.
    """

    exchanges: pa.Table
    pending: pa.Table
    events: pa.Table
    batches: pa.Table
    states: pa.Table
    commands: pa.Table
    handshakes: pa.Table
    gaps: pa.Table
    catalog: ClusterCatalog


def gathered(paired: pa.Table, gaps: pa.Table, known: ClusterCatalog | None = None) -> Gathered:
    """What exchanges (as :func:`pipeline.analysis.pairing.exchanges` gives them) hold.

    Args:
        paired: exchanges.
        gaps: rows of ``bronze.gaps``.
        known: clusters and topic names that others have shown.
    """
    complete = completed(paired)
    kafka = KafkaStatements.of(complete)
    catalog = attempt(
        "clusters and topic names",
        lambda: (known or ClusterCatalog()).merged(kafka.facts()),
        lambda: known or ClusterCatalog(),
    )
    events, batches, states = (_made(TABLES[part], partial(kafka.table, part, catalog)) for part in TABLES)
    shown = with_inferred(catalog, events, kafka.subscriptions())
    if shown is not catalog:
        catalog = shown
        events, batches, states = (placed(rows, catalog) for rows in (events, batches, states))
    commands, handshakes = mongodb_statements(complete)
    return Gathered(complete, pending(paired), events, batches, states, commands, handshakes, gaps, catalog)


Wanted = Literal["all", "report", "rules"]
"""Tables that are wanted: all; what rules read, and what a report counts; or what rules read."""


def derive(frames: pa.Table, gaps: pa.Table, settings: StreamSettings, wanted: Wanted = "all") -> Derived:
    """Everything that follows from frames.

    Args:
        frames: rows of ``bronze.frames``, each frame once.
        gaps: rows of ``bronze.gaps``.
        settings: how long halves wait, how far lag looks back.
        wanted: which tables.
    """
    taken = gathered(exchanges(frames, settings.response_timeout, settings.abandon_timeout), gaps)
    found = derive_from(taken, settings, wanted)
    if wanted == "all":
        found = _with(found, (PENDING_EXCHANGES, lambda: fit(halves_of(taken.pending, frames), PENDING_EXCHANGES)))
    return Derived({FRAMES.full_name: frames, **found.tables}, found.pending, found.catalog)


def derive_from(gathered: Gathered, settings: StreamSettings, wanted: Wanted = "all") -> Derived:
    """Everything that follows from what was gathered, the frames themselves left out.

    Args:
        gathered: exchanges, and what they state.
        settings: how far lag looks back.
        wanted: which tables.
    """
    judged = _read_by_rules(gathered, settings, only_looked_at=wanted != "all")
    if wanted == "rules":
        return judged
    reported = with_report(judged)
    return reported if wanted == "report" else _with_the_rest(reported, gathered.handshakes)


def _read_by_rules(gathered: Gathered, settings: StreamSettings, *, only_looked_at: bool) -> Derived:
    """What rules read; of connections, if ``only_looked_at``, no more than they look at."""
    complete, catalog, gaps = gathered.exchanges, gathered.catalog, gathered.gaps
    commands = attempt(
        f"table {MONGO_COMMANDS.full_name}",
        lambda: with_handshakes(gathered.commands, gathered.handshakes),
        lambda: gathered.commands,
    )
    others = _made(
        DUPLICATE_FLOWS, lambda: all_copies(complete, Statements(gathered.events, gathered.states, commands), gaps)
    )
    events, batches, states = (counted(rows, others) for rows in (gathered.events, gathered.batches, gathered.states))
    found = (
        (GAPS, gaps),
        (EXCHANGES, fit(complete, EXCHANGES)),
        (EXCHANGES_WITH_BODIES, complete),
        (OFFSET_EVENTS, gathered.events),
        (RECORD_BATCHES, gathered.batches),
        (STATE_EVENTS, gathered.states),
        (MONGO_COMMANDS, commands),
        (DUPLICATE_FLOWS, others),
    )
    judged = Derived({table.full_name: rows for table, rows in found}, waiting(gathered.pending, others), catalog)
    return _with(
        judged,
        (CONNECTIONS, lambda: connections(gaps, others, only_looked_at=only_looked_at)),
        (TRANSACTIONS, lambda: transactions(events, states, batches, gaps, settings.lag_lookback)),
        (OFFSET_TIMELINE, lambda: timeline(events, states, batches, catalog, settings.lag_lookback)),
    )


def with_report(judged: Derived) -> Derived:
    """What rules have read, with what a report counts besides."""
    exchanges, states, commands = (judged.once(table) for table in (EXCHANGES, STATE_EVENTS, MONGO_COMMANDS))
    return _with(judged, (CLIENTS, lambda: clients(exchanges, states, commands, judged.catalog)))


def _with_the_rest(reported: Derived, handshakes: pa.Table) -> Derived:
    """All tables: of what a report counts, and of these."""
    exchanges, events, states, commands = (
        reported.once(table) for table in (EXCHANGES, OFFSET_EVENTS, STATE_EVENTS, MONGO_COMMANDS)
    )
    return _with(
        reported,
        (MONGO_HANDSHAKES, lambda: handshakes),
        (BROKERS, lambda: brokers(reported.catalog)),
        (TOPICS, lambda: topics(reported.catalog)),
        (ASSIGNMENTS, lambda: assignments(states)),
        (FETCH_SESSIONS, lambda: fetch_sessions(events, states)),
        (API_LATENCY, lambda: api_latency(exchanges)),
        (MONGO_MINUTES, lambda: mongo_minutes(commands)),
    )


def _with(derived: Derived, *more: tuple[Table, Callable[[], pa.Table]]) -> Derived:
    made = {table.full_name: _made(table, work) for table, work in more}
    return replace(derived, tables={**derived.tables, **made})


def _made(table: Table, work: Callable[[], pa.Table]) -> pa.Table:
    """The rows of a table; none where deriving them fails, which is noted."""
    return attempt(f"table {table.full_name}", work, schema_of(table).empty_table)


def with_topics(rows: pa.Table) -> pa.Table:
    """Rows with a topic's id in place of its name where that is not known, as rules read them."""
    named = pc.coalesce(rows.column("topic"), rows.column("topic_id"))
    return rows.set_column(rows.schema.get_field_index("topic"), "topic", named)


_OF_WAITING = {
    "request_ts": "ts", "request_size": "size", "request_status": "decode_status", "request_body": "body",
    "request_embedded": "embedded", "request_flags": "flags", "request_header": "header", "request_seq": "seq",
}  # fmt: skip
WAITING = tuple(
    name for name in EXCHANGES_WITH_BODIES.column_names if _OF_WAITING.get(name, name) in PENDING_EXCHANGES.column_names
    and name not in _OF_WAITING.values()
)  # fmt: skip
"""What rules may read of requests without an answer yet: what ``silver.pending_exchanges`` states of them, too."""
WAITING_SQL = ", ".join(f"{_OF_WAITING[name]} AS {name}" if name in _OF_WAITING else name for name in WAITING)
"""The same columns out of ``silver.pending_exchanges``."""


def findings_of(derived: Derived, settings: RuleThresholds) -> Found:
    """Apply all rules to what was derived."""
    others = derived.of(DUPLICATE_FLOWS)
    tables = Tables(
        {
            "exchanges": counted(derived.of(EXCHANGES_WITH_BODIES), others),
            "events": with_topics(counted(derived.of(OFFSET_EVENTS), others)),
            "batches": with_topics(counted(derived.of(RECORD_BATCHES), others)),
            "states": counted(derived.of(STATE_EVENTS), others),
            "timeline": derived.of(OFFSET_TIMELINE),
            "transactions": derived.of(TRANSACTIONS),
            "gaps": derived.of(GAPS),
            "connections": derived.of(CONNECTIONS),
            "commands": counted(derived.of(MONGO_COMMANDS), others),
            "waiting": derived.pending.select(WAITING),
            "all_copies": others,
        },
        asked_often=True,
    )
    try:
        return find_all(tables, derived.catalog, settings)
    finally:
        tables.close()
