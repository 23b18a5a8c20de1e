"""Connections, exchanges and their bytes as views: rows of tables in, rows of a screen out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from decoder.explain.explanation import Explanation, Line
from pipeline.commands.messages.tree import MOST_FIELDS, cells_of, error_of, fields_of
from pipeline.commands.open.view import (
    Block,
    Bytes,
    Column,
    Messages,
    OneConnection,
    OneExchange,
    Row,
    View,
    prose,
    sentence,
)
from pipeline.dashboard.queries.traffic.exchange_search import Found, Search
from pipeline.dashboard.queries.traffic.exchanges import latency_in_words
from pipeline.dashboard.queries.traffic.sequence import Around
from pipeline.dashboard.queries.traffic.steps import Connection, Step
from pipeline.dashboard.web.format import clock, moment
from pipeline.dashboard.web.parts.tcp_text import tcp_in_words
from pipeline.humanize import duration, number, pluralize, size

_EXCHANGES = (
    Column("time (UTC)", style="dim"), Column("client"), Column("api"), Column("took", is_right=True, from_width=100),
    Column("what"),
)  # fmt: skip
_CONNECTIONS = (
    Column("began (UTC)", style="dim"), Column("client"), Column("server"), Column("lasted", is_right=True),
    Column("requests", is_right=True, from_width=100), Column("ended"),
)  # fmt: skip
_STEPS = (Column("time (UTC)", style="dim"), Column("after", is_right=True, style="dim"), Column("what"))
_FIELDS = (
    Column("bytes", style="dim"), Column("hex", style="dim"), Column("field", most=44),
    Column("type", style="dim", from_width=100), Column("value"),
)  # fmt: skip
_ARROWS = {"request": "→", "response": "←"}
_KINDS = {"lost": "lost", "joined": "not seen"}
_HEX_BYTES = 4
_ROW_BYTES = 16
_MOST_BYTES = 16 * 1024
"""Bytes of a field that are shown."""


def clock_of(times: Iterable[datetime]) -> Callable[[datetime], str]:
    """How the times of a list are written, UTC: to the millisecond, with month and day if they are of several days."""
    form = "%H:%M:%S" if len({ts.date() for ts in times}) < 2 else "%m-%d %H:%M:%S"
    return lambda ts: f"{ts:{form}}.{ts.microsecond // 1000:03d}"


def exchange_block(title: str, rows: Sequence[Mapping[str, Any]]) -> Block:
    """Exchanges, one a line, as :func:`pipeline.dashboard.queries.traffic.exchanges.spoken` gives them."""
    clock_text = clock_of(row["ts"] for row in rows)
    return Block(title, _EXCHANGES, [_exchange_row(row, clock_text(row["ts"])) for row in rows], is_cut=True)


def _exchange_row(row: Mapping[str, Any], when: str) -> Row:
    client = row["client_id"] or row["client"]
    words = row["words"] or ", ".join(row["error_names"] or ()) or row["status"]
    took = "" if row["latency_us"] is None else duration(row["latency_us"] / 1e6)
    cells = (when, client, _api(row), took, words)
    return Row(cells, OneExchange(row["exchange_id"], row["ts"]), "yellow" if row["error_names"] else "")


def _api(row: Mapping[str, Any]) -> str:
    version = "" if row["api_version"] is None else f" v{row['api_version']}"
    return f"{row['api_name'] or 'not known'}{version}"


def messages_view(wanted: Messages, found: Found) -> View:
    """Exchanges that match, the newest first, with the way to older ones."""
    rows = found.rows
    counted = pluralize(found.counted, "exchange")
    since = "" if found.is_all else f" since {moment(found.counted_from)}"
    before = "" if wanted.before is None else f", before {moment(wanted.before)}"
    if not rows:
        text = f"No message matches{before}." if found.is_all else f"No message matches{since}{before}."
        listed = sentence(text)
    else:
        listed = exchange_block(f"{counted}{since}{before}, the newest first", rows)
    more: list[Block] = []
    if found.older is not None:
        older = Messages(wanted.wanted, wanted.name, found.older)
        more.append(Block("", (Column(),), [Row(("Older messages",), older)]))
    return View(wanted.name, (listed, *more))


def connections_view(rows: Sequence[Mapping[str, Any]], most: int) -> View:
    """Connections, those that ended last first.

    Args:
        rows: of :func:`pipeline.dashboard.queries.traffic.connections.connections`.
        most: how many are listed at most.
    """
    if not rows:
        return View("connections", (sentence("No connection is recorded: read the capture again.", "yellow"),))
    more = f", the last {most:,} of more" if len(rows) >= most else ""
    clock_text = clock_of(row["first_ts"] for row in rows)
    listed = [_connection_row(row, clock_text(row["first_ts"])) for row in rows]
    block = Block(f"{pluralize(len(rows), 'row')}{more}", _CONNECTIONS, listed)
    return View("connections", (block,))


def _connection_row(row: Mapping[str, Any], when: str) -> Row:
    is_one = row["connections"] == 1
    client = row["client"] if is_one else pluralize(row["connections"], "connection")
    cells = (
        when, client, row["server"], duration(row["lasted_s"]), number(row["requests"]),
        row["ended"],
    )  # fmt: skip
    opens = OneConnection(row["connection_id"], row["first_ts"]) if is_one else None
    return Row(tuple(cell or "" for cell in cells), opens, "yellow" if row["is_failed"] else "")


def connection_view(target: OneConnection, part: Around, life: Mapping[str, Any] | None, shown: Connection) -> View:
    """A connection around a moment, step by step.

    Args:
        target: what was asked for.
        part: its exchanges.
        life: what TCP shows of it; None: nothing.
        shown: its steps.
    """
    tcp = [sentence(tcp_in_words(dict(life)))] if life is not None else []
    if not part.exchanges:
        text = "No exchange is known of this connection within two hours of this time."
        return View("connection", (*tcp, sentence(text, "yellow")))
    client, server = part.ends
    times = {row["exchange_id"]: row["ts"] for row in part.exchanges}
    clock_text = clock_of(step.ts for step in shown.steps)
    rows = [_step_row(step, clock_text(step.ts), target.exchange_id, times) for step in shown.steps]
    around = [
        Row((text,), OneConnection(target.connection_id, at, target.exchange_id))
        for text, at in (("Earlier on this connection", part.earlier), ("Later on this connection", part.later))
        if at is not None
    ]
    every = Messages(Search(connection_id=target.connection_id), "messages of the connection")
    blocks = (
        prose([("client", client), ("server", server)]), *tcp, Block("In order of time", _STEPS, rows, is_cut=True),
        Block("Look at", (Column(),), [*around, Row(("All its messages",), every)]),
    )  # fmt: skip
    return View(f"connection {part.exchanges[-1]['client']}", blocks)


def _step_row(step: Step, when: str, looked_at: str | None, times: Mapping[str, datetime]) -> Row:
    after = "" if step.after is None else f"+{duration(step.after.total_seconds())}"
    arrow = _ARROWS.get(step.kind) or _ARROWS.get(step.direction, " ")
    kind = f"{_KINDS[step.kind]}: " if step.kind in _KINDS else ""
    words = f" {step.words}" if step.words else ""
    opens = None if step.exchange_id is None else OneExchange(step.exchange_id, times.get(step.exchange_id))
    is_here = step.exchange_id is not None and step.exchange_id == looked_at
    style = "yellow" if step.is_wrong or step.kind == "lost" else "bold" if is_here else ""
    return Row((when, after, f"{arrow} {kind}{step.label}{words}"), opens, style)


def exchange_view(
    row: Mapping[str, Any],
    words: str,
    frames: Sequence[tuple[Mapping[str, Any], Explanation | None]],
    before: str | None,
) -> View:
    """A request with its response: what they say, and each field with its bytes.

    Args:
        row: of ``silver.exchanges``.
        words: the same in a sentence.
        frames: its raw frames, each explained; None: it is too long for that.
        before: the exchange of the same api before it on its connection; None: there is none.
    """
    client, server = (f"{row[f'{side}_ip']}:{row[f'{side}_port']}" for side in ("client", "server"))
    facts = [
        ("says", words),
        ("time", f"{clock(row['ts'])}.{row['ts']:%f} UTC"),
        ("latency", latency_in_words(dict(row))),
        ("status", row["status"]),
        ("errors", ", ".join(row["error_names"] or [])),
        ("client", f"{row['client_id'] or ''} at {client}".strip()),
        ("server", server),
        ("exchange", row["exchange_id"]),
    ]
    around = OneConnection(row["connection_id"], row["ts"], row["exchange_id"])
    ways = [Row(("Its connection around this time",), around)]
    if before is not None:
        ways.append(Row((f"The {_api(row)} before it on this connection",), OneExchange(before, row["ts"])))
    blocks = [prose(facts, _api(row)), Block("", (Column(),), ways)]
    if not frames:
        text = (
            "Its raw frames are not in the lake any more: they are kept for a shorter time than what follows from them."
        )
        blocks.append(sentence(text, "yellow"))
    for frame, explanation in frames:
        blocks += _frame_blocks(frame, explanation)
    return View(_api(row), tuple(blocks))


def _frame_blocks(frame: Mapping[str, Any], explanation: Explanation | None) -> Iterator[Block]:
    title = f"{frame['direction'].capitalize()}, {size(frame['size'])}"
    if explanation is None:
        yield Block(title, (Column(),), [Row(("Too long to explain here: use `wirelake explain`.",), style="yellow")])
        return
    yield from _field_blocks(f"{title}: {explanation.message.status}", explanation, frame["frame"])
    inside = explanation.inside
    if inside is not None:
        title = f"Uncompressed, as if sent by itself, {inside.size} bytes: {inside.message.status}"
        yield from _field_blocks(title, inside, inside.frame)


def _field_blocks(title: str, explanation: Explanation, data: bytes) -> Iterator[Block]:
    lines = fields_of(explanation)
    kept = MOST_FIELDS // 2
    rows = [_field_row(line, data) for line in lines[: kept if len(lines) > MOST_FIELDS else None]]
    if len(lines) > MOST_FIELDS:
        rows.append(Row(("", "", f"… {len(lines) - 2 * kept:,} more fields …", "", ""), style="dim"))
        rows += [_field_row(line, data) for line in lines[-kept:]]
    yield Block(title, _FIELDS, rows, is_cut=True)
    if error := error_of(explanation.message):
        yield sentence(error, "bold red")


def _field_row(line: Line, data: bytes) -> Row:
    where, digits, name, kind, value = cells_of(line, _HEX_BYTES)
    typed = " ".join(part for part in (kind, value) if part)
    opens = Bytes(name.strip(), typed, data[line.start : line.end], line.start) if line.end > line.start else None
    return Row((where, digits, name, kind, value), opens, "bold red" if line.is_error else "")


def bytes_view(target: Bytes) -> View:
    """The bytes of a field: where they are in the message, hex and ASCII."""
    data = target.data[:_MOST_BYTES]
    blocks = [
        prose([("field", target.name), ("value", target.value), ("bytes", _range(target))]),
        Block(
            "", (Column(),), [_dump_row(data, at, target.start) for at in range(0, len(data), _ROW_BYTES)], is_cut=True
        ),
    ]
    if len(data) < len(target.data):
        blocks.append(sentence(f"… and {pluralize(len(target.data) - len(data), 'more byte')}", "dim"))
    return View(f"bytes of {target.name}", tuple(blocks))


def _range(target: Bytes) -> str:
    last = target.start + len(target.data) - 1
    where = str(target.start) if last == target.start else f"{target.start} to {last}"
    return f"{where} of the message ({pluralize(len(target.data), 'byte')})"


def _dump_row(data: bytes, at: int, start: int) -> Row:
    some = data[at : at + _ROW_BYTES]
    letters = "".join(chr(one) if 0x20 <= one < 0x7F else "." for one in some)
    return Row((f"{start + at:06x}  {some.hex(' ').ljust(3 * _ROW_BYTES - 1)}  {letters}",))
