"""What no message states of clusters and topic names, but several statements show together."""

from __future__ import annotations

import pyarrow as pa

from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.inferred_clusters import inferred_clusters
from pipeline.analysis.inferred_names import inferred_names
from pipeline.analysis.safety.guard import attempt
from pipeline.analysis.statements.exchanges import placed


def with_inferred(catalog: ClusterCatalog, events: pa.Table, subscriptions: pa.Table) -> ClusterCatalog:
    """This catalog, with the clusters of servers and the names of topic ids that statements show.

    Args:
        catalog: what is stated.
        events: rows of ``silver.offset_events``, placed by this catalog.
        subscriptions: what members subscribe to and are given (pipeline.analysis.statements.subscriptions).
    """
    clusters = attempt(
        "inferred clusters", lambda: inferred_clusters(events, subscriptions, catalog), dict[tuple[str, str], Seen]
    )
    if clusters:
        catalog = catalog.with_inferred_clusters(clusters)
        events = placed(events, catalog)
    names = attempt(
        "inferred names of topics", lambda: inferred_names(events, subscriptions, catalog), dict[tuple[str, str], Seen]
    )
    return catalog.with_inferred(names) if names else catalog
