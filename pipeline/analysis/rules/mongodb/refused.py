"""Words and figures of MongoDB's failures that have causes of their own: logins, and limits of a rate."""

from __future__ import annotations

from typing import Final

from pipeline.analysis.rules.counted import clients, names, when
from pipeline.analysis.rules.episodes import Episode
from pipeline.analysis.rules.mongodb.commands import LOGIN_OF
from pipeline.analysis.tables import Tables

_WAITS: Final = """
    SELECT max(try_cast(regexp_extract(response_body, 'RetryAfterMs[^0-9]{1,5}([0-9]{1,9})', 1) AS BIGINT)) AS ms
    FROM exchanges WHERE protocol = 'mongodb' AND list_contains($ids, exchange_id)
"""


def is_login(episode: Episode) -> bool:
    """Whether it is about logins."""
    return f"/{LOGIN_OF}" in episode.subject


def refused_login(episode: Episode) -> str:
    """Who was refused, where, how often and why, for people."""
    return f"{episode.server} refused the login of {clients(episode)} {when(episode)}: {names(episode)}."


def wait_ms(episode: Episode, tables: Tables) -> int | None:
    """How long the server asks to wait before a repeat, at most, ms; None: it does not say."""
    (row,) = tables.rows(_WAITS, ids=list(episode.evidence))
    return None if row.ms is None else int(row.ms)
