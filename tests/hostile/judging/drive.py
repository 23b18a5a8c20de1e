"""All that reads bodies, over the rows of one case: derivations, rules, incidents, `top`, words, the page's queries."""

from __future__ import annotations

import io
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa

from decoder import Codec, Frame
from decoder.protocol import Context, Pasted
from decoder.protocols import protocol_of, protocols
from pipeline.analysis.derive import Derived, derive, derive_from, findings_of, gathered
from pipeline.analysis.descriptions import ProtocolDescribers, halves
from pipeline.analysis.fit import schema_of
from pipeline.analysis.incidents.incidents import incidents_table, judged
from pipeline.analysis.pairing import exchanges
from pipeline.analysis.rules.run import findings_table
from pipeline.commands.findings import show_findings, what_was_looked_at, what_was_read
from pipeline.commands.incidents import show_incidents
from pipeline.commands.messages.descriptions import Describers
from pipeline.commands.messages.message_filter import MessageFilter, Wanted
from pipeline.commands.messages.message_lines import MessageLines
from pipeline.commands.messages.messages import Decoded, MessageReader, as_object
from pipeline.commands.messages.record_lines import record_line, record_object, records_of
from pipeline.commands.messages.tree import show_head, show_message
from pipeline.commands.top.screen import Shown, screen
from pipeline.commands.unjudged import why_nothing_was_judged
from pipeline.config.settings import StreamSettings
from pipeline.embedded import streaming_diagnoser as following
from pipeline.embedded.diagnosis import Diagnosis, looked_at
from pipeline.embedded.lake import write_lake
from pipeline.embedded.live_monitor import LiveMonitor
from pipeline.lake.arrow import int_values
from pipeline.tables import EXCHANGES_WITH_BODIES, FINDINGS, FRAMES, INCIDENTS, LANDING_COLUMNS
from pipeline.terminal.console import Console, json_line
from pipeline.terminal.lines import Lines
from tests.hostile.judging.tally import Tally
from tests.hostile.page_questions import ask_everything

SETTINGS = StreamSettings()
_WIDTHS = (60, 200)
_WINDOW_US = 60_000_000


def drive(frames: pa.Table, gaps: pa.Table, what: str, tally: Tally, *, lake: bool, top: bool = True) -> None:
    """All that reads rows of ``bronze.frames``; ``lake``, ``top``: with the page's queries, with `top` as well."""
    derived: Derived | None = None
    with tally.guarded(f"{what}, derive"):
        derived = derive(frames, gaps, SETTINGS)
    if derived is not None:
        drive_derived(derived, what, tally, lake=lake)
    if top:
        _watch(frames, gaps, what, tally)


def drive_exchanges(paired: pa.Table, gaps: pa.Table, what: str, tally: Tally, *, lake: bool) -> None:
    """All that reads rows of ``silver.exchanges``."""
    derived: Derived | None = None
    with tally.guarded(f"{what}, derive"):
        found = derive_from(gathered(paired, gaps), SETTINGS)
        derived = Derived(
            {FRAMES.full_name: schema_of(FRAMES).empty_table(), **found.tables}, found.pending, found.catalog
        )
    if derived is not None:
        drive_derived(derived, what, tally, lake=lake)


def paired_rows(frames: pa.Table) -> pa.Table:
    """Rows of ``silver.exchanges``, those of which a half is pending included."""
    return exchanges(frames, SETTINGS.response_timeout, SETTINGS.abandon_timeout)


def drive_derived(derived: Derived, what: str, tally: Tally, *, lake: bool) -> None:
    """All that reads derived tables."""
    _describe(derived, what, tally)
    with tally.guarded(f"{what}, judge"):
        found = findings_of(derived, SETTINGS.findings)
        judgement = judged(found, (), None, SETTINGS.findings)
        rows, incidents = findings_table(judgement.findings), incidents_table(judgement.incidents)
        _print(Diagnosis(derived, rows, incidents, looked_at(derived), None))
        if lake:
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder, "lake")
                tables = {**derived.tables, FINDINGS.full_name: rows, INCIDENTS.full_name: incidents}
                write_lake(root, tables)
                ask_everything(root, lambda: tally.guarded(f"{what}, page"))


def _print(found: Diagnosis) -> None:
    """As `diagnose`, `findings` and `incidents` print it."""
    rows, incidents = found.findings.to_pylist(), found.incidents.to_pylist()
    for width in _WIDTHS:
        console = Console(file=io.StringIO(), width=width)
        show_findings(rows, console)
        show_incidents(incidents, rows, lambda _: ["wirelake sql"], console)
    for row in (*rows, *incidents):
        json_line(row)
    what_was_read(found, None)
    what_was_looked_at(found)
    why_nothing_was_judged(found.looked, None)


def _watch(frames: pa.Table, gaps: pa.Table, what: str, tally: Tally) -> None:
    """As `top` and `diagnose --follow` take it, in two pieces."""
    watch = LiveMonitor(SETTINGS, _WINDOW_US)
    middle = frames.num_rows // 2
    with tally.guarded(f"{what}, top"), patch.object(following, "decoded", lambda rows, **_: rows):
        for some in (frames.slice(0, middle), frames.slice(middle)):
            watch.add(some, gaps)
            watch.judge()
            now = watch.now()
            if now is None:
                continue
            for width in _WIDTHS:
                Console(file=io.StringIO(), width=width).print(screen(now, Shown("-", silent_s=0.0), width, 40))
    for error in watch.errors:
        if not error.is_excess:
            tally.note(error, f"{what}, top")


def _describe(derived: Derived, what: str, tally: Tally) -> None:
    describers = ProtocolDescribers()
    for row in derived.of(EXCHANGES_WITH_BODIES).to_pylist():
        if row["protocol"] not in protocols():
            continue
        describer, (request, response) = describers.of(row["protocol"]), halves(row)
        with tally.guarded(f"{what}, words"):
            describer.note(request, response)
        with tally.guarded(f"{what}, words"):
            describer.describe(request, response)
        with tally.guarded(f"{what}, words"):
            describer.about(request, response)
        with tally.guarded(f"{what}, words"):
            describer.of_offset(request, response, "orders", 0, 5)
        if response is not None:
            with tally.guarded(f"{what}, words"):
                describer.errors(response)


def explain_frames(landed: pa.Table, what: str, tally: Tally) -> None:
    """As `decode`, `decode --records` and `explain` print each frame."""
    reader, describers, codec = MessageReader(keeps_requests=True), Describers(), Codec()
    lines = MessageLines(Lines(160, colour=False), describers)
    chosen = MessageFilter(Wanted("no group", "no topic", 1, "no client"), describers)
    for row in frames_in(landed):
        with tally.guarded(f"{what}, decode"), redirect_stdout(io.StringIO()):
            item = reader.read(row)
            describers.note(item)
            lines.write(item)
            chosen.accepts(item)
            json_line(as_object(item))
            _show_records(item, codec, describers)
        with tally.guarded(f"{what}, explain"):
            spoken, console = protocol_of(row.protocol), Console(file=io.StringIO(), width=120)
            subject = Pasted(row.frame, Context(row.direction, row.api_key, row.api_version, row.flags))
            explanation = spoken.explain(subject.frame, subject.context, codec)
            show_head(explanation, spoken, subject, console)
            show_message(explanation, subject.frame, 0, console, 300)
            list(spoken.advise(explanation, subject, codec))


def _show_records(item: Decoded, codec: Codec, describers: Describers) -> None:
    for number, one in enumerate(records_of(item, codec, describers, payload=True)):
        record_line(item, one, payload=True)
        json_line(record_object(item, one, payload=True))
        if number > 20:
            break


def frames_in(landed: pa.Table) -> list[Frame]:
    """Frames of landed rows."""
    columns = {name: landed.column(name) for name in (column.name for column in LANDING_COLUMNS)}
    values = [
        int_values(column.combine_chunks().cast(pa.int64())).tolist()
        if name in ("ts", "ts_end")
        else column.to_pylist()
        for name, column in columns.items()
    ]
    return [Frame(**dict(zip(columns, row, strict=True))) for row in zip(*values, strict=True)]
