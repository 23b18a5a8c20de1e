"""The words of incidents, by the rule of the root; rules that are not named here keep the words of their findings."""

from __future__ import annotations

from pipeline.analysis.incidents.words.batches import BATCHES
from pipeline.analysis.incidents.words.commits import COMMITS
from pipeline.analysis.incidents.words.members import MEMBERS
from pipeline.analysis.incidents.words.model import LOSES, REFUSED, SLOW, STANDS, WASTES, Words
from pipeline.analysis.incidents.words.mongodb import MONGODB
from pipeline.analysis.incidents.words.others import OTHERS
from pipeline.analysis.incidents.words.processes import PROCESSES
from pipeline.analysis.incidents.words.producers import PRODUCERS
from pipeline.analysis.incidents.words.refusals import REFUSALS
from pipeline.analysis.incidents.words.transactions import TRANSACTIONS

WORDS: dict[str, Words] = {
    **COMMITS, **TRANSACTIONS, **MEMBERS, **BATCHES, **PROCESSES, **PRODUCERS, **REFUSALS, **MONGODB, **OTHERS,
}  # fmt: skip
"""By rule."""

URGENCIES: dict[str, int] = {
    **dict.fromkeys(("poison_record", "partition_unavailable", "coordinator_unavailable"), STANDS),
    **dict.fromkeys(
        ("offset_reset", "records_gone", "produce_refused", "duplicate_write", "change_stream_lost"), LOSES
    ),
    **dict.fromkeys(("poll_interval_exceeded", "join_refused", "request_refused"), REFUSED),
    "slow_rebalance": SLOW,
    "connection_churn": WASTES,
}
"""Of rules whose findings have ``Now:`` and ``Fix:`` in their own advice."""
UNITS = {"rebalance_storm": "joins"}
"""By rule what ``times`` counts, where that is not what the headline says."""
LASTING = frozenset({"offset_reset", "records_gone", "duplicate_write", "change_stream_lost"})
"""Those of which something is left to be done when they are over: records are skipped, or twice in the log."""
OF_BROKERS = frozenset({"partition_unavailable", "coordinator_unavailable"})
"""Those of which the clients that they name are not the cause."""
