"""What came of a group's rebalances: whether it had read all, and whether its member was given an assignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import error_name
from pipeline.analysis.rules.episodes import Episode
from pipeline.analysis.tables import Tables

SYNC_ADVICE: Final = (
    "Now: look in the log of the group's coordinator for why it refuses SyncGroup, and whether a member that was not "
    "captured begins each rebalance (`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group} "
    "--members`); until it is accepted the group reads nothing. Fix: set session.timeout.ms above the time from "
    "JoinGroup to SyncGroup, and update a client library that does not send FindCoordinator after NOT_COORDINATOR."
)


def _questions(episodes: Sequence[Episode]) -> list[dict[str, object]]:
    """The group and the time of each episode."""
    return [
        {"cluster": one.cluster, "group": one.subject, "first_us": one.first_us, "last_us": one.last_us}
        for one in episodes
    ]


def have_read_all(tables: Tables, episodes: Sequence[Episode]) -> dict[tuple[str, str], bool]:
    """Whether groups (cluster, name) had no lag at their last commits within an episode, where their lag is known."""
    answers = tables.of_each(_LAST_LAG, _questions(episodes))
    return {
        (one.cluster, one.subject): row.lag == 0
        for one, (row,) in zip(episodes, answers, strict=True)
        if row.lag is not None
    }


_LAST_LAG = """
    WITH last AS (
        SELECT arg_max(lag, (ts, ordinal)) AS lag FROM timeline
        WHERE cluster = $cluster AND group_id = $group AND lag IS NOT NULL
            AND epoch_us(ts) BETWEEN $first_us AND $last_us
        GROUP BY topic, partition
    )
    SELECT sum(lag) AS lag FROM last
"""

_SYNCS = f"""
    WITH joined AS (
        SELECT DISTINCT exchanges.connection_id FROM states JOIN exchanges USING (exchange_id)
        WHERE states.cluster = $cluster AND states.group_id = $group AND states.kind = 'join'
            AND epoch_us(states.ts) BETWEEN $first_us AND $last_us
    )
    SELECT count(*) AS answers, count(*) FILTER (len(error_codes) > 0) AS refusals,
        list_sort(list_distinct(flatten(list(error_codes)))) AS codes
    FROM joined JOIN exchanges USING (connection_id)
    WHERE api_key = {int(ApiKey.SYNC_GROUP)} AND response_ts IS NOT NULL
        AND epoch_us(response_ts) BETWEEN $first_us AND $last_us
"""


def refused_each_time(tables: Tables, episodes: Sequence[Episode]) -> dict[Episode, str]:
    """Episodes within which each SyncGroup on the group's connections was refused, and with which errors."""
    answers = tables.of_each(_SYNCS, _questions(episodes))
    return {
        one: ", ".join(error_name(code) for code in row.codes)
        for one, (row,) in zip(episodes, answers, strict=True)
        if row.answers >= 2 and row.refusals == row.answers
    }
