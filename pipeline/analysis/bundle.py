"""What some halves hold, whatever other halves there are elsewhere: found for each part of a batch where it is.

Of two halves that are together nothing else can change what they are. A half that is alone may have its other one
elsewhere, unless the agent has marked it: it is given back, for whoever has all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from decoder.model import FrameFlags
from pipeline.analysis.cluster_catalog import ClusterCatalog, Fact
from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.pairing import exchanges, halves_of
from pipeline.analysis.safety.guard import attempt
from pipeline.analysis.statements.exchanges import TABLES, KafkaStatements, mongodb_statements
from pipeline.config.settings import StreamSettings
from pipeline.tables import (
    EXCHANGES,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    OFFSET_EVENTS,
    RECORD_BATCHES,
    STATE_EVENTS,
)

_ALONE = {
    "no_response_expected": ("request", FrameFlags.NO_RESPONSE_EXPECTED),
    "unanswered": ("request", FrameFlags.UNANSWERED),
    "following_response": ("response", FrameFlags.FOLLOWING_RESPONSE),
    "orphan_response": ("response", FrameFlags.ORPHAN_RESPONSE),
}
"""Status of a half that is alone for good if its frame has this flag. Without it, it was only given up."""
DERIVED = (EXCHANGES, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, MONGO_COMMANDS, MONGO_HANDSHAKES)
"""Tables that exchanges and their statements are rows of."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What some exchanges hold.

    Attributes:
        rows: by the full names of :data:`DERIVED`. Commands lack what handshakes state.
        facts: what is stated of clusters and topic ids.
        subscriptions: what members subscribe to and are given (pipeline.analysis.statements.subscriptions); columns of
            statements may be missing where there is none.
    """

    rows: dict[str, pa.Table]
    facts: list[Fact]
    subscriptions: pa.Table


def bundle_of(complete: pa.Table, known: ClusterCatalog) -> Bundle:
    """What completed exchanges hold, named by the clusters and topic names that are known."""
    kafka = KafkaStatements.of(complete)
    rows = {EXCHANGES.full_name: fit(complete, EXCHANGES)}
    for part, table in TABLES.items():
        work = partial(kafka.table, part, known)
        rows[table.full_name] = attempt(f"table {table.full_name}", work, schema_of(table).empty_table)
    commands, handshakes = mongodb_statements(complete)
    rows |= {MONGO_COMMANDS.full_name: commands, MONGO_HANDSHAKES.full_name: handshakes}
    return Bundle(rows, attempt("clusters and topic names", kafka.facts, list), kafka.subscriptions())


def paired_certainly(halves: pa.Table, settings: StreamSettings) -> tuple[pa.Table, pa.Table]:
    """Exchanges that no other half can change, and the halves that are left: their other half may be elsewhere.

    Args:
        halves: rows of ``bronze.frames``, each frame once.
        settings: how long halves wait.
    """
    paired = exchanges(halves, settings.response_timeout, settings.abandon_timeout, copies_texts=False)
    is_certain = _is_certain(paired)
    return paired.filter(is_certain), halves_of(paired.filter(pc.invert(is_certain)), halves)


def _is_certain(paired: pa.Table) -> pa.ChunkedArray:
    status = paired.column("status")
    found = pc.equal(status, "paired")
    for name, (half, flag) in _ALONE.items():
        flags = pc.fill_null(paired.column(f"{half}_flags"), 0)
        is_marked = pc.not_equal(pc.bit_wise_and(flags, pa.scalar(int(flag), flags.type)), 0)
        found = pc.or_(found, pc.and_(pc.equal(status, name), is_marked))
    return found
