"""The facts of clusters and topics as tables: ``silver.brokers`` and ``silver.topics``."""

from __future__ import annotations

import pyarrow as pa

from pipeline.analysis.facts import Facts
from pipeline.analysis.fit import table_of
from pipeline.tables import BROKERS, TOPICS


def brokers(facts: Facts) -> pa.Table:
    """Rows of ``silver.brokers``."""
    rows = (
        {"server": server, "cluster": cluster, "first_ts": seen.first_us, "last_ts": seen.last_us}
        for (server, cluster), seen in sorted(facts.brokers.items())
    )
    return table_of(rows, BROKERS)


def topics(facts: Facts) -> pa.Table:
    """Rows of ``silver.topics``."""
    rows = (
        {
            "cluster": cluster, "topic_id": topic_id, "topic": name, "first_ts": first,
            "last_ts": facts.topics[cluster, topic_id].last_us, "valid_from": first, "valid_to": until,
            "incarnation": number,
        }
        for cluster, name, topic_id, number, first, until in facts.incarnations()
    )  # fmt: skip
    return table_of(rows, TOPICS)
