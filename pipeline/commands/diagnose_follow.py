"""``wirelake diagnose --follow``: incidents as they come and go, or findings one by one."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import typer
from rich.padding import Padding
from rich.text import Text

from pipeline.analysis.rules.run import findings_table
from pipeline.capture.packets.pipe import Stop, stop_on_signals
from pipeline.capture.runs.summary import nothing_found, warnings
from pipeline.capture.stats import CaptureStats
from pipeline.commands.findings import (
    finding_text,
    in_order,
    show_findings,
    what_was_looked_at,
    what_was_read,
)
from pipeline.commands.incidents import print_incident, show_incidents
from pipeline.commands.unjudged import error_sentences, why_nothing_was_judged
from pipeline.config.settings import Settings
from pipeline.embedded.diagnosis import Diagnosis
from pipeline.embedded.feed import Feed, open_feed, reading_s
from pipeline.embedded.incident_changes import IncidentChange
from pipeline.embedded.streaming_diagnoser import Change, StreamingDiagnoser
from pipeline.errors import UserError
from pipeline.humanize import moment
from pipeline.terminal.console import Console, json_line, printable

LOOK_EVERY_S = 0.2
"""How often it is looked for something new."""

MOST_JUDGING_S = 1.0
"""What is kept is what can be judged in so long: a finding is to be there within three seconds."""

_MOST_NOTED = 100
"""Notes that are remembered, so that they are not repeated."""

_LABELS = {"new": "NEW", "again": "AGAIN", "worse": "WORSE", "root": "CAUSE", "resolved": "RESOLVED"}


def follow_and_report(
    files: Sequence[str], settings: Settings, options: Sequence[str], *, as_json: bool, flat: bool = False
) -> None:
    """Report what changes until there is nothing more, or somebody asks to stop; then all of it once more.

    Args:
        files: one of: ``-``, a directory of rotated files, a landing zone, a capture.
        settings: thresholds, and what reading may cost the agent.
        options: of ``capture read``, for the agent.
        as_json: an object a change of a finding instead of lines for a person.
        flat: changes of findings instead of incidents.

    Raises:
        UserError: nothing can be read.
        typer.Exit: with 1 if there was a critical finding, with 2 if not all could be read or judged.
    """
    if len(files) != 1:
        raise UserError("--follow takes one of: '-' for standard input, a directory, a landing zone")
    (source,) = files
    show: _Show = _ShowJson() if as_json else _ShowFindings() if flat else _ShowIncidents()
    following = StreamingDiagnoser(settings.stream)
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        feed = stack.enter_context(open_feed(source, options, settings))
        _follow(following, feed, stop, show)
        is_whole, reason = feed.outcome()
    found, stats = following.diagnosis("report"), feed.stats
    has_failed = bool(following.errors)
    for note in warnings(stats) if stats is not None else ():
        show.note(note)
    if found is None or not (following.frames or found.findings.num_rows):
        raise UserError(reason or nothing_found(stats))
    if reason:
        show.note(reason)
    show.end(found, stats, is_whole=is_whole and (stats is None or stats.is_whole))
    if any(severity == "critical" for severity in found.findings.column("severity").to_pylist()):
        raise typer.Exit(1)
    has_findings = bool(found.findings.num_rows)
    if has_failed or not is_whole or why_nothing_was_judged(found.looked, stats, has_findings=has_findings) is not None:
        raise typer.Exit(2)


def _follow(following: StreamingDiagnoser, feed: Feed, stop: Stop, show: _Show) -> None:
    is_unjudged = False
    took_s, judged = 0.0, 0.0
    while True:
        is_last = feed.has_ended if feed.can_end else stop.asked()
        rows = feed.take()
        for note in feed.notes():
            show.note(note)
        if rows is not None:
            following.add(*rows)
            is_unjudged = True
        pause_s = max(reading_s(took_s, is_behind=feed.is_behind), LOOK_EVERY_S)
        is_time = time.monotonic() - judged >= pause_s
        if is_unjudged and (is_time or (is_last and rows is None)):
            begin = time.monotonic()
            changes = following.judge()
            took_s = time.monotonic() - begin  # not to print: whoever reads it may let us wait
            show.changes(changes, following.incident_changes(), following)
            judged, is_unjudged = time.monotonic(), False
            if took_s > MOST_JUDGING_S:
                following.keep_less()
        for note in (*following.limits(), *error_sentences(following.errors)):
            show.note(note)
        if stop.asked():  # also while more and more comes
            feed.stop()
        if rows is None:
            if is_last:
                return
            time.sleep(LOOK_EVERY_S)


class _Notes:
    """Notes about the reading, on standard error, each once."""

    def __init__(self) -> None:
        self._errors = Console(stderr=True)
        self._noted: deque[str] = deque(maxlen=_MOST_NOTED)

    def note(self, text: str) -> None:
        """Something about the reading."""
        note = text.removeprefix("warning: ")
        if note not in self._noted:
            self._noted.append(note)
            self._errors.print(Text(f"warning: {note}", "yellow"), soft_wrap=True)


class _ShowText(_Notes):
    """For a person."""

    def __init__(self) -> None:
        super().__init__()
        self._console = Console()

    def end(self, found: Diagnosis, stats: CaptureStats | None, *, is_whole: bool) -> None:
        """All of it."""
        read = what_was_read(found, stats, is_whole=is_whole)
        self._console.print(Text(f"\nThe end. {read}", "bold"), soft_wrap=True)
        unjudged = why_nothing_was_judged(found.looked, stats, has_findings=bool(found.findings.num_rows))
        if unjudged is not None:
            self._console.print(Text(unjudged, "bold yellow"), soft_wrap=True)
            if not found.findings.num_rows:
                return
        self._all(found)
        if not found.findings.num_rows:
            self._console.print(Text(what_was_looked_at(found)), soft_wrap=True)

    def _all(self, found: Diagnosis) -> None:
        raise NotImplementedError


class _ShowIncidents(_ShowText):
    """An incident when it begins, when it turns out to follow from something else, when it ends."""

    def changes(
        self, _changes: Sequence[Change], changes: Sequence[IncidentChange], following: StreamingDiagnoser
    ) -> None:
        """What is new."""
        findings = {row["finding_id"]: row for row in following.findings}
        for change in changes:
            row = change.row
            line = f"{moment(row['last_us'])[11:]} {_LABELS[change.kind]} "
            self._console.print()
            if change.kind == "resolved":
                self._console.print(Text(f"{line}{row['severity']} {printable(row['headline'])}", "dim"))
            else:
                print_incident(row, findings, (), self._console, line, was=change.before)

    def _all(self, found: Diagnosis) -> None:
        show_incidents(found.incidents.to_pylist(), found.findings.to_pylist(), lambda _row: (), self._console)


class _ShowFindings(_ShowText):
    """Findings one by one."""

    def changes(
        self, changes: Sequence[Change], _incidents: Sequence[IncidentChange], _following: StreamingDiagnoser
    ) -> None:
        """A finding that is new, worse, or over."""
        for change in changes:
            row = change.row
            line = f"{moment(row['last_us'])[11:]} {_LABELS[change.kind]} "
            if change.kind == "resolved":
                subject = printable(f"{row['rule']} {row['subject']}")
                self._console.print(Padding(Text(f"{line}{row['severity']} {subject}", "dim"), (1, 0, 0, 0)))
            else:
                self._console.print(Padding(finding_text(_finding(change), line), (1, 0, 0, 0)))

    def _all(self, found: Diagnosis) -> None:
        show_findings(in_order(found.findings.to_pylist()), self._console)


class _ShowJson(_Notes):
    """For a program."""

    def changes(
        self, changes: Sequence[Change], _incidents: Sequence[IncidentChange], _following: StreamingDiagnoser
    ) -> None:
        """See _ShowFindings."""
        for change in changes:
            self._line({"change": change.kind, **_finding(change)})

    def end(self, found: Diagnosis, _stats: CaptureStats | None, *, is_whole: bool) -> None:
        """See _ShowText."""
        self._line({"change": "end", "findings": found.findings.num_rows, "is_whole": is_whole, **asdict(found.looked)})

    @staticmethod
    def _line(value: Mapping[str, Any]) -> None:
        sys.stdout.buffer.write(json_line(dict(value)))
        sys.stdout.flush()


_Show = _ShowIncidents | _ShowFindings | _ShowJson


def _finding(change: Change) -> dict[str, Any]:
    """The row of ``gold.findings``, as `findings --json` prints it."""
    (row,) = findings_table([change.row]).to_pylist()
    return dict(row)
