"""Traffic that once cost far more to judge than other traffic of its size: a function for each way to multiply.

Each takes a number and gives traffic whose bytes grow with it; what it multiplies is named by its docstring.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.hostile.amplifiers import found, groups, holders, offsets, refusals, transactions
from tests.hostile.traffic import Landing

Amplifier = Callable[[int], Landing]

AMPLIFIERS: dict[str, Amplifier] = {
    one.__name__: one
    for one in (
        groups.tasks_and_topics, groups.subtopologies, groups.tasks_of_members, groups.partitions_of_a_member,
        groups.departures_and_fetches, groups.owners_of_a_partition,
        groups.writers_and_members, groups.silent_members, groups.deliveries_of_share_groups, groups.poison,
        groups.halts_and_requests,
        transactions.stalled_partitions, transactions.ends_and_groups, transactions.markers_and_transactions,
        transactions.markers_of_a_transaction, transactions.sequences,
        transactions.sequences_of_one, transactions.fenced_producers,
        transactions.open_transactions, transactions.introductions_of_an_id,
        refusals.refused_partitions, refusals.refused_topics, refusals.refused_groups, refusals.coordinators,
        refusals.throttled, refusals.long_names, refusals.unanswered, refusals.unanswered_beside_answers,
        refusals.churn,
        offsets.clusters_of_a_server, offsets.ids_of_a_topic, offsets.recreated_topics, offsets.days_of_a_session,
        offsets.names_and_ids, offsets.names_and_ids_of_two_servers, offsets.lagging_groups, offsets.lagging_partitions,
        offsets.resets, offsets.mongodb_namespaces,
        holders.held_and_fetched, holders.holders_and_writes, holders.refused_and_fetched, holders.held_and_refused,
        holders.committed_beyond, holders.a_partition_named_again,
        found.silences_of_share_groups, found.clients_in_incidents,
    )
}  # fmt: skip


def of_size(make: Amplifier, size: int) -> Landing:
    """Traffic of about this many bytes on the wire."""
    small = make(16)
    number = max(int(16 * size / small.wire_bytes), 4)
    made = make(number)
    return made if 0.7 < made.wire_bytes / size < 1.4 else make(max(int(number * size / made.wire_bytes), 4))
