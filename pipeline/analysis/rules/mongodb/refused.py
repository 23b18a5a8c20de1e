"""Words and figures of MongoDB's failures that have causes of their own: logins, and limits of a rate."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pipeline.analysis.rules.counted import clients, names, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.mongodb.commands import LOGIN_OF
from pipeline.analysis.tables import Tables

_WAITS: Final = """
    SELECT max(try_cast(regexp_extract(response_body, 'RetryAfterMs[^0-9]{1,5}([0-9]{1,9})', 1) AS BIGINT)) AS ms
    FROM (SELECT unnest($ids) AS exchange_id) AS own JOIN exchanges USING (exchange_id) WHERE protocol = 'mongodb'
"""


def is_login(episode: Episode) -> bool:
    """Whether it is about logins."""
    return f"/{LOGIN_OF}" in episode.subject


def refused_login(episode: Episode) -> str:
    """Who was refused, where, how often and why, for people."""
    return f"{episode.server} refused the login of {clients(episode)} {when(episode)}: {names(episode)}."


def waits_ms(episodes: Collection[Episode], tables: Tables) -> dict[Episode, int]:
    """How long the server asks to wait before a repeat, at most, ms; of those where it says so."""
    answers = tables.of_each(_WAITS, [{"ids": list(one.evidence)} for one in episodes])
    return {one: int(row.ms) for one, (row,) in zip(episodes, answers, strict=True) if row.ms is not None}
