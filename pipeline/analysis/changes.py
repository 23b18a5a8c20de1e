"""What is new about which subject since when; by that, what follows from silver is brought up to date."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from decoder.kafka.extractors.exchanges import FACT_APIS
from decoder.kafka.extractors.state import GROUP_KINDS, TRANSACTION_KINDS
from decoder.protocols import names_of
from pipeline.analysis.ownership.assignments import KINDS as ASSIGNMENT_KINDS
from pipeline.analysis.tables import Tables
from pipeline.tables import EXCHANGES, MONGO_COMMANDS, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, Table

ABOUTS = (
    "offsets", "fetched", "groups", "assigned", "transactions", "sessions", "names", "exchanged", "commands",
    "connected",
)  # fmt: skip
"""What news can be about."""
OFFSETS, FETCHED, GROUPS, ASSIGNED, TRANSACTIONS, SESSIONS, NAMES, EXCHANGED, COMMANDS, CONNECTED = ABOUTS

_BY_API = names_of(lambda protocol: protocol.has_api_latencies)
_ABOUT = {
    OFFSET_EVENTS.full_name: f"""CASE WHEN transactional_id IS NOT NULL THEN '{TRANSACTIONS}'
        WHEN session_id IS NOT NULL THEN '{FETCHED}' ELSE '{OFFSETS}' END""",
    STATE_EVENTS.full_name: f"""CASE WHEN list_contains({list(ASSIGNMENT_KINDS)}, kind) THEN '{ASSIGNED}'
        WHEN list_contains({sorted(GROUP_KINDS)}, kind) THEN '{GROUPS}'
        WHEN list_contains({sorted(TRANSACTION_KINDS)}, kind) THEN '{TRANSACTIONS}'
        WHEN kind = 'fetch_session' THEN '{SESSIONS}' ELSE '{EXCHANGED}' END""",
    RECORD_BATCHES.full_name: f"CASE WHEN is_control THEN '{TRANSACTIONS}' END",
    EXCHANGES.full_name: f"""CASE WHEN NOT list_contains({_BY_API}, protocol) THEN NULL
        WHEN list_contains({sorted(FACT_APIS)}, api_key) THEN '{NAMES}' ELSE '{EXCHANGED}' END""",
    MONGO_COMMANDS.full_name: f"'{COMMANDS}'",
}
"""What a row of a table is news of; null: of nothing that follows from silver."""

News = Mapping[str, tuple[int, int]]
"""By what it is about how many rows are new, and the time of the first, µs since the epoch."""


def news_of(table: Table, rows: pa.Table) -> News:
    """What new rows of a table of silver are news of."""
    tables = Tables({"rows": rows})
    try:
        found = tables.rows(f"""
            SELECT {_ABOUT[table.full_name]} AS about, count(*) AS rows, min(epoch_us(ts)) AS us FROM rows
            GROUP BY about HAVING about IS NOT NULL
        """)
    finally:
        tables.close()
    return {row.about: (row.rows, row.us) for row in found}


def of_all(rows: int, first_us: int) -> News:
    """News known only by its first time."""
    return dict.fromkeys(ABOUTS, (rows, first_us))


def together(*some: News) -> News:
    """All of it."""
    found: dict[str, tuple[int, int]] = {}
    for news in some:
        for about, (rows, us) in news.items():
            known = found.get(about)
            found[about] = (rows, us) if known is None else (known[0] + rows, min(known[1], us))
    return found
