"""The screen equals its golden files, fits every terminal, and lets nothing from the wire steer it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rich.style import Style

from pipeline.analysis.live_metrics.groups import GroupNow
from pipeline.analysis.live_metrics.traffic import ApiNow, ClientNow, TrafficNow
from pipeline.analysis.live_metrics.window import Window
from pipeline.commands.top.amounts import amount, history, latency, rate, span, trend, volume
from pipeline.commands.top.screen import KEYS, Shown, shares
from pipeline.commands.top.sort import Order, Sort
from pipeline.embedded.live_monitor import Snapshot
from pipeline.terminal.lines import columns_of
from tests.pipeline.commands.top.golden import FOLDER, NAMES, WIDTHS, coloured, drawn, file_of, standing

QUICK = ("stuck_commit.pcap", "mongodb/troubled_mongodb.pcap")


def incident(number: int = 0, **values: Any) -> dict[str, Any]:
    told = {
        "incident_id": f"i{number}", "severity": "critical", "state": "ongoing", "headline": f"trouble {number}",
        "immediate_action": "Restart it.", "first_us": 40_000_000, "last_us": 60_000_000,
    }  # fmt: skip
    return told | values


def now(**values: Any) -> Snapshot:
    given: dict[str, Any] = {
        "groups": [GroupNow("c", f"group {n}", lag=n, trend=100.0 - n) for n in range(20)],
        "traffic": TrafficNow(
            [ApiNow("kafka", f"api {n}", 10 * n, 5 - n, 0, 100, n, 1000 * n, n, n == 4) for n in range(5)], [],
            [ClientNow("kafka", f"client {n}", "10.0.0.1", n, 0, 100, 1, "Fetch", "java") for n in range(30)],
        ),
        "incidents": [incident(n) for n in range(4)], "news": {"i1": "new"}, "connections": 3, "exchanges": 9,
        "bytes_lost": 0, "pending": 0, "first_us": 0, "last_us": 60_000_000, "since_us": None,
    }  # fmt: skip
    return Snapshot(Window(0, 60_000_000), **given | values)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_as_kept(name: str, columns: int) -> None:
    kept = file_of(name, columns).read_text(encoding="utf-8")
    assert drawn(standing(name), Shown(name), columns) == kept, (
        "python -m tests.pipeline.commands.top.golden writes it again"
    )


def test_no_kept_line_is_wider_than_its_terminal() -> None:
    files = sorted(FOLDER.iterdir())
    assert {file.name for file in files} == {file_of(name, width).name for name in NAMES for width in WIDTHS}
    for file in files:
        width = int(file.suffixes[-2][1:])
        lines = file.read_text(encoding="utf-8").splitlines()
        assert max(map(columns_of, lines)) <= width
        assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("height", [1, 5, 10, 24, 40, 100])
@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_it_fits_any_terminal_and_says_how_much_is_hidden(columns: int, height: int) -> None:
    lines = drawn(now(), Shown("-", has_keys=True), columns, height).splitlines()
    assert max(map(columns_of, lines)) <= columns
    if height >= 24:
        assert len(lines) <= height
        assert lines[-1] == KEYS[:columns] or columns < len(KEYS)
    if (columns, height) == (200, 24):
        assert any(re.match(r"GROUPS \d of 20", line) for line in lines)
        assert any(re.match(r"CLIENTS \d of 30", line) for line in lines)


def test_lines_are_shared_fairly() -> None:
    assert shares([2, 30, 5], 10) == [2, 4, 4]
    assert shares([2, 30, 5], 100) == [2, 30, 5]
    assert shares([9, 9], 3) == [2, 1]
    assert shares([9, 9], -1) == [0, 0]
    assert shares([], 5) == []


def first_of(lines: list[str], head: str) -> str:
    at = next(number for number, line in enumerate(lines) if line.startswith(head))
    return lines[at + 1]


@pytest.mark.parametrize(
    ("sort", "group", "api"),
    [
        (Sort.lag, "group 19", "api 4"), (Sort.trend, "group 0", "api 4"), (Sort.rate, "group 19", "api 4"),
        (Sort.p99, "group 19", "api 3"), (Sort.errors, "group 19", "api 0"),
    ],
)  # fmt: skip
def test_rows_are_ordered_as_asked(sort: Sort, group: str, api: str) -> None:
    lines = drawn(now(), Shown("-", Order().by(sort)), 120).splitlines()
    assert first_of(lines, "GROUPS").startswith(group)
    assert first_of(lines, "APIS").startswith(api)
    marked = re.findall(r"(\w+)▼", "\n".join(lines))
    assert sort.value.upper() in marked
    assert len(marked) == 3


def test_what_is_known_no_more_grows_no_older() -> None:
    rows = [incident(0), incident(1, state="unknown"), incident(2, state="resolved")]
    late = now(incidents=[row | {"last_us": 50_000_000} for row in rows], last_us=60_000_000)
    lines = drawn(late, Shown("-", silent_s=36_000.0), 80).splitlines()
    assert [line[17:25].strip() for line in lines if "trouble" in line] == ["20 s", "10 s", "10 s"]


def test_incidents_are_marked_when_they_begin_and_the_first_says_what_to_do() -> None:
    found = now(incidents=[incident(0), incident(1), incident(2, state="resolved", severity="warning")])
    lines = drawn(found, Shown("-", silent_s=0.0), 80).splitlines()
    assert "NEW" not in drawn(found, Shown("-"), 80)
    assert "CRITICAL            20 s  trouble 0" in lines
    assert "CRITICAL NEW        20 s  trouble 1" in lines
    assert "WARNING  RESOLVED   20 s  trouble 2" in lines
    assert lines[lines.index("CRITICAL            20 s  trouble 0") + 1].split() == ["now", "Restart", "it."]
    assert sum("Restart it." in line for line in lines) == 1
    calm = [GroupNow("c", f"group {n}", lag=n) for n in range(20)]
    assert "No incident in what 20 groups and 30 clients do." in drawn(now(incidents=[], groups=calm), Shown("-"), 80)


COMMAND = "`kafka-console-consumer.sh --bootstrap-server BROKER --topic jobs --partition 0 --max-messages 1`"


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (f"Look at the record ({COMMAND}). Then continue.", "Look at the record … (all of it: wirelake diagnose)"),
        (f"Wait. Do nothing. Else ask {COMMAND}, and wait.", "Wait. Do nothing. … (all of it: wirelake diagnose)"),
        (f"{COMMAND} says more, or {COMMAND}.", "now … (all of it: wirelake diagnose)"),
    ],
)
def test_no_command_is_cut_where_all_of_it_has_no_room(told: str, kept: str) -> None:
    found = now(incidents=[incident(immediate_action=told)])

    def text(height: int | None) -> str:
        return " ".join(drawn(found, Shown("-"), 60, height).split())

    assert told in text(None)
    assert COMMAND not in text(40)
    assert kept in text(40)


def test_what_was_lost_is_told_on_a_narrow_screen() -> None:
    text = drawn(now(bytes_lost=5_000, pending=2, connections=1, exchanges=1), Shown("-"), 40)
    assert " ".join(text.splitlines()[1:]).startswith(
        "1 connection, 1 exchange (2 without an answer yet) since 00:00:00, 5,000 bytes lost last 60 s"
    ), text


def test_silence_loss_and_what_was_dropped_are_told() -> None:
    text = drawn(now(bytes_lost=5_000, since_us=30_000_000, pending=2), Shown("-", silent_s=12.3), 200)
    assert "3 connections, 9 exchanges (2 without an answer yet) since 00:00:00, 5,000 bytes lost" in text
    assert "nothing came for 12 s; kept since 00:00:30, older dropped" in text
    assert "nothing came" not in drawn(now(), Shown("-", silent_s=1.0), 200)
    assert "half of it" in drawn(now(), Shown("-", note="half of it"), 200)
    assert "since 1969-12-31 23:59:50, no packets missing" in drawn(now(first_us=-10_000_000), Shown("-"), 200)
    idle = now(groups=[], traffic=TrafficNow([], [], []), incidents=[])
    assert "No requests in this window." in drawn(idle, Shown("-"), 80)


def test_names_from_the_wire_are_text() -> None:
    hostile = "a\x1b[31m\n[bold]x[/bold]\u202e"
    client = ClientNow("kafka", hostile, hostile, 1, 0, 1, 1, hostile, hostile)
    found = now(
        groups=[GroupNow(hostile, hostile, worst=(hostile, 0, 1))], incidents=[incident(headline=hostile)],
        traffic=TrafficNow([], [], [client]),
    )  # fmt: skip
    lines = drawn(found, Shown(hostile, note=hostile), 200).splitlines()
    assert all(line.isprintable() for line in lines)
    assert "a\\x1b[31m\\n[bold]x[/bold]\\u202e" in lines[0]


def test_what_grows_fails_or_is_wrong_stands_out() -> None:
    pieces = [
        (line.plain[piece.start : piece.end].strip(), piece.style)
        for line in coloured(now(), Shown("-"), 120)
        for piece in line.spans
    ]
    by_colour: dict[str, list[str]] = {}
    for text, style in pieces:
        colour = style.color if isinstance(style, Style) else None
        by_colour.setdefault("" if colour is None else colour.name, []).append(text)
    assert "CRITICAL            20 s" in by_colour["color(1)"]
    assert {"+100/s", "5"} <= set(by_colour["color(3)"])
    assert "0" not in by_colour["color(3)"]


def test_amounts_are_short_and_the_unknown_is_no_zero() -> None:
    assert [amount(n) for n in (0, 9_999, 12_345, 123_456, 4_500_000, 2e9, None)] == [
        "0", "9,999", "12.3k", "123k", "4.5M", "2.0G", "?",
    ]  # fmt: skip
    assert [rate(n) for n in (0, 0.017, 3.44, 120.4, 12_345, None)] == ["0", "0.02/s", "3.4/s", "120/s", "12.3k/s", "?"]
    assert [trend(n) for n in (0.01, 3.44, -12, None)] == ["steady", "+3.4/s", "-12/s", "?"]
    assert [latency(n) for n in (0, 350, 1_900, 120_000, 1_500_000, None)] == [
        "0 µs", "350 µs", "1.9 ms", "120 ms", "1.5 s", "?",
    ]  # fmt: skip
    assert latency(500_000, waits=True) == "(500 ms)"
    assert [span(n) for n in (0, 38.4, 300, 10_000, 345_600, None)] == ["0 s", "38 s", "5 min", "3 h", "4 d", "?"]
    assert [volume(n) for n in (12, 3_456, 5_000_000)] == ["12 B/s", "3.4 KiB/s", "4.8 MiB/s"]
    assert history((None, 0, 4, 8)) == " ▁▅█"
    assert history((0, 0)) == "▁▁"
