"""How the rows of MongoDB's table are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from decoder.mongodb.error_names import ERROR_NAMES
from pipeline.analysis.codes.model import NOTHING, Actor, CodeFacts, Kind

MESSAGE: Final = "read the reply's errmsg (`wirelake explain`)"
DRIVER_RETRIES: Final = "nothing while it passes: the driver looks for the new primary and repeats the operation once."
SERVER_LOG: Final = "read the log of the server that answered at this time."


def row(
    code: int,
    kind: Kind,
    actor: Actor,
    meaning: str,
    now: str = NOTHING,
    fix: str = NOTHING,
    *,
    area: str = "",
    is_retried: bool = False,
    api: str | None = None,
) -> CodeFacts:
    """A row; see CodeFacts for its parts."""
    return CodeFacts(code, ERROR_NAMES[code], kind, actor, meaning, now, fix, area, is_retried, api)


def family(
    kind: Kind,
    actor: Actor,
    now: str,
    fix: str,
    meanings: Mapping[int, str],
    *,
    area: str = "",
    is_retried: bool = False,
) -> tuple[CodeFacts, ...]:
    """Rows of codes that ask for the same."""
    return tuple(
        row(code, kind, actor, meaning, now, fix, area=area, is_retried=is_retried)
        for code, meaning in meanings.items()
    )
