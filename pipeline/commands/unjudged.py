"""Sentences for what was not judged: steps that failed, and captures that nothing can be concluded from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from rich.text import Text

from pipeline.capture.sessions.mismatch_text import misunderstandings
from pipeline.errors import UserError
from pipeline.humanize import pluralize
from pipeline.tables import (
    CLIENTS,
    EXCHANGES,
    FRAMES,
    INTERNAL_ERRORS,
    OFFSET_TIMELINE,
    PENDING_EXCHANGES,
    STREAM_PROGRESS,
    WRITTEN_BY_DIAGNOSE,
    Table,
)
from pipeline.terminal.console import Console

if TYPE_CHECKING:
    from pipeline.analysis.safety.guard import InternalError
    from pipeline.capture.stats import CaptureStats
    from pipeline.embedded.diagnosis import Looked

_SHOWN = 10


def error_sentences(errors: Sequence[InternalError]) -> list[str]:
    """Failures of steps for a person; the last sentence says what to do."""
    if not errors:
        return []
    shown = [str(error) for error in errors[:_SHOWN]]
    if len(errors) > _SHOWN:
        shown.append(f"{pluralize(len(errors) - _SHOWN, 'more failure')} of steps")
    if all(error.is_excess for error in errors):
        return [*shown, "the other rules have judged everything; judge a shorter time to get these, too"]
    return [*shown, "everything else was judged. Please report this: it is a fault of Wirelake"]


def why_nothing_was_judged(
    looked: Looked, stats: CaptureStats | None = None, *, has_findings: bool = False
) -> str | None:
    """Why silence about a capture means nothing; None: exchanges were judged, or connections without any.

    Args:
        looked: what there was.
        stats: what the capture held.
        has_findings: whether anything was found.
    """
    if looked.judged or (has_findings and not looked.exchanges + looked.pending):
        return None
    if stats is not None and (sentences := misunderstandings(stats)):
        return f"Nothing was judged: {sentences[0]}."
    if looked.exchanges and looked.cut == looked.exchanges:
        return "Nothing was judged: every message is cut off before its content. Capture whole packets (tcpdump -s 0)."
    if looked.pending and not looked.exchanges:
        return (
            f"Nothing was judged: the capture holds {pluralize(looked.pending, 'request')} and no response to any. "
            "Capture "
            "both directions, and for longer than a request takes."
        )
    return (
        f"Nothing was judged: of {pluralize(looked.exchanges + looked.pending, 'message')} none is a request with its "
        "response. Capture both directions (tcpdump without `src` or `dst`), from the connections' beginning."
    )


def warn_of_errors(errors: Sequence[InternalError], console: Console) -> bool:
    """Print failures on standard error; True if there were any."""
    for sentence in error_sentences(errors):
        console.print(Text(f"warning: {sentence}", "yellow"), soft_wrap=True)
    return bool(errors)


def errors_of_lake(lake: Path | str) -> list[InternalError]:
    """Failures that still leave a hole in a lake's tables.

    Those of the newest refresh of gold, which looks at the same rows as the ones before it; and all of the queries that
    take each frame once.

    Raises:
        UserError: a table cannot be read.
    """
    from pipeline.analysis.safety.guard import InternalError  # noqa: PLC0415 - loads DuckDB and Arrow

    rows = _rows(lake, INTERNAL_ERRORS)
    newest = _newest_gold_batch(lake) if any(row["query"] == _GOLD for row in rows) else None
    still = (row for row in rows if row["query"] != _GOLD or (row["checkpoint"], row["batch_id"]) == newest)
    found = (InternalError(row["step"], row["subject"], row["error"], row["place"]) for row in still)
    return list(dict.fromkeys(found))


def demand_judged(lake: Path | str, *, has_findings: bool) -> None:
    """Refuse a lake whose frames no rule has looked at.

    Raises:
        UserError: gold was never computed, there is no traffic in the lake, or no request with its response.
    """
    if has_findings:
        return
    from pipeline.lake.delta_reader import count_rows  # noqa: PLC0415 - by delta-rs

    has_gold = (Path(lake) / WRITTEN_BY_DIAGNOSE).exists() or _newest_gold_batch(lake) is not None
    if count_rows(str(lake), EXCHANGES):
        # Of a job that ran so long ago that its progress has expired, these tables show that it computed gold.
        if has_gold or any(count_rows(str(lake), table) for table in (CLIENTS, OFFSET_TIMELINE)):
            return
        raise UserError(
            f"nothing in {lake} was judged: its gold tables were never computed. Run "
            f"`wirelake stream --landing DIR --lake {quote(str(lake))} --once`, and look at why it ended"
        )
    if waiting := count_rows(str(lake), PENDING_EXCHANGES):
        raise UserError(
            f"nothing in {lake} was judged: {pluralize(waiting, 'message')} without the other half of the exchange, "
            "and no "
            "request with its response"
        )
    if count_rows(str(lake), FRAMES):
        raise UserError(f"nothing in {lake} was judged: no request has its response yet")
    if not has_gold:
        raise UserError(f"nothing in {lake} was judged: it holds no Kafka or MongoDB message yet")


_GOLD = "gold"
"""Name of the query that computes gold."""


def _newest_gold_batch(lake: Path | str) -> tuple[str, int] | None:
    done = [row for row in _rows(lake, STREAM_PROGRESS) if row["query"] == _GOLD]
    newest = max(done, key=lambda row: row["finished_at"], default=None)
    return None if newest is None else (newest["checkpoint"], newest["batch_id"])


def _rows(lake: Path | str, table: Table) -> list[dict[str, Any]]:
    from pipeline.lake.delta_reader import read_table  # noqa: PLC0415 - by delta-rs

    found = read_table(str(lake), table)
    rows: list[dict[str, Any]] = [] if found is None else found.to_pylist()
    return rows
