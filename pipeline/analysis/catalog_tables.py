"""The catalog of clusters and topics as tables, and back: ``silver.brokers`` and ``silver.topics``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.fit import table_of, table_of_columns
from pipeline.tables import BROKERS, TOPICS


def brokers(catalog: ClusterCatalog) -> pa.Table:
    """Rows of ``silver.brokers``."""
    rows = (
        {
            "server": server, "cluster": cluster, "first_ts": seen.first_us, "last_ts": seen.last_us,
            "is_inferred": seen.is_inferred,
        }
        for (server, cluster), seen in sorted(catalog.brokers.items())
    )  # fmt: skip
    return table_of(rows, BROKERS)


def topics(catalog: ClusterCatalog) -> pa.Table:
    """Rows of ``silver.topics``: of each topic its ids in order of time, numbered from 0."""
    columns: dict[str, list[Any]] = {column.name: [] for column in TOPICS.columns}
    for (cluster, name), ids in sorted(catalog.lives.items()):
        begins = [first_us for first_us, _, _ in ids]
        columns["cluster"] += [cluster] * len(ids)
        columns["topic"] += [name] * len(ids)
        columns["topic_id"] += [topic_id for _, _, topic_id in ids]
        columns["first_ts"] += begins
        columns["valid_to"] += [*begins[1:], None]
        columns["incarnation"] += range(len(ids))
    seen = [catalog.topics[place] for place in zip(columns["cluster"], columns["topic_id"], strict=True)]
    columns["last_ts"] = [one.last_us for one in seen]
    columns["is_inferred"] = [one.is_inferred for one in seen]
    columns["valid_from"] = columns["first_ts"]
    return table_of_columns(columns, TOPICS)


def known_catalog(broker_rows: pa.Table, topic_rows: pa.Table) -> ClusterCatalog:
    """The catalog that rows of both tables hold."""
    return ClusterCatalog(
        {
            (server, cluster): Seen(cluster, first, last, bool(is_inferred))
            for server, cluster, is_inferred, first, last in _timed(broker_rows, "server", "cluster", "is_inferred")
        },
        {
            (cluster, topic_id): Seen(topic, first, last, bool(is_inferred))
            for cluster, topic_id, topic, is_inferred, first, last in _timed(
                topic_rows, "cluster", "topic_id", "topic", "is_inferred"
            )
        },
    )


def _timed(rows: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    times = (rows.column(name).cast(pa.int64()).to_pylist() for name in ("first_ts", "last_ts"))
    return zip(*(rows.column(name).to_pylist() for name in names), *times, strict=True)
