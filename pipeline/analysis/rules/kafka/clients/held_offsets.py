"""The transaction that holds the offsets that a group cannot read (UNSTABLE_OFFSET_COMMIT).

A consumer that asks for stable offsets (KIP-447) waits until each transaction that commits offsets of its group has
ended. Which these are is stated by AddOffsetsToTxn and TxnOffsetCommit, if they were captured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.errors import error_name
from decoder.kafka.schema.table import api_names
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.format import host_of, who
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock, first_of, seconds

HELD_ADVICE = (
    "Now: end the transaction: restart {who}, which aborts what its transactional.id left open, or "
    "`kafka-transactions.sh --bootstrap-server BROKER find-hanging --broker-id ID` and `abort`. Do not restart the "
    "group: it waits for that transaction. Fix: commit or abort in every path of the producer's code, and set "
    "transaction.timeout.ms to what a transaction takes at most."
)
_ANSWER = (api_names()[ApiKey.OFFSET_FETCH], error_name(KafkaError.UNSTABLE_OFFSET_COMMIT))
_HOLDERS = """
    WITH added AS (
        SELECT transactional_id, client_id, client, epoch_us(ts) AS us FROM states
        WHERE kind = 'txn_add_group' AND coalesce(error_code, 0) = 0 AND group_id = $group AND cluster = $cluster
        UNION ALL
        SELECT transactional_id, client_id, client, epoch_us(ts) FROM events
        WHERE kind = 'txn_committed' AND group_id = $group AND cluster = $cluster
    ), ended AS (
        SELECT transactional_id, epoch_us(ts) AS us FROM states
        WHERE kind = 'txn_end' AND coalesce(error_code, 0) = 0 AND cluster = $cluster
    ), last AS (
        SELECT transactional_id, arg_max(client_id, us) AS client_id, arg_max(client, us) AS client, max(us) AS us
        FROM added WHERE us <= $last_us AND transactional_id IS NOT NULL GROUP BY transactional_id
    )
    SELECT us, transactional_id, client_id, client FROM last WHERE NOT EXISTS (
        FROM ended WHERE ended.transactional_id = last.transactional_id AND ended.us BETWEEN last.us AND $last_us
    )
"""
"""Transactions that had taken offsets of a group and had not ended by the last refusal."""


@dataclass(frozen=True, slots=True)
class Held:
    """A group that waits for a transaction.

    Attributes:
        words: a sentence.
        advice: what to do; empty: as the table of codes says.
        details: transactional ids and their producers.
    """

    words: str
    advice: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


def held(episodes: Sequence[Episode], tables: Tables) -> list[Held | None]:
    """What holds the offsets of the group of each; None where the refusals are of another kind."""
    waiting = [n for n, one in enumerate(episodes) if one.answers == (_ANSWER,) and one.group_id is not None]
    asked = [
        {"group": one.group_id, "cluster": one.cluster, "last_us": one.last_us}
        for one in (episodes[n] for n in waiting)
    ]
    found: list[Held | None] = [None] * len(episodes)
    for n, rows in zip(waiting, tables.of_each(_HOLDERS, asked), strict=True):
        found[n] = _held(episodes[n], rows)
    return found


def _held(episode: Episode, rows: Sequence[Row]) -> Held:
    is_over = episode.healed_us is not None
    lasted = seconds(max((episode.healed_us or episode.last_us) - episode.first_us, 0))
    group = f"Group {episode.group_id} {f'could not begin for {lasted}' if is_over else 'cannot begin'}"
    holds = "held" if is_over else "holds"
    if not rows:
        return Held(f"{group}: an open transaction {holds} its offsets; whose it is was not captured.")
    names = [
        f"{row.transactional_id} of {who(row.client_id, host_of(row.client))} (offsets sent at {clock(row.us)} UTC)"
        for row in rows
    ]
    producers = first_of(list(dict.fromkeys(who(row.client_id, host_of(row.client)) for row in rows)))
    details = {
        "transactional_ids": [row.transactional_id for row in rows],
        "producers": [{"client_id": row.client_id, "address": row.client, "since_us": row.us} for row in rows],
    }
    which = "transaction" if len(rows) == 1 else "transactions"
    holds = holds if len(rows) == 1 or is_over else "hold"
    words = f"{group}: open {which} {first_of(names)} {holds} its offsets."
    return Held(words, HELD_ADVICE.format(who=producers), details)
