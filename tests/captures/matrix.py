"""Which rule fires on which recording, how soon, and on which it must not? Told as the tables of docs/findings.md.

`python -m tests.captures.matrix [--write] [--variants] [NAME…]` judges recordings as `wirelake diagnose` does, in this
process, prints the tables, and with `--write` puts them into docs/findings.md. Exit code 1 if a rule fired that was not
declared, or did not fire that was.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.settings import StreamSettings
from tests.captures.variants import VARIANTS, pcap_of
from tests.paths import ROOT
from tests.pipeline.analysis.rules.incidents import ALL, Recording, recordings

PAGE = ROOT / "docs" / "findings.md"
BEGIN, END = "<!-- matrix: made by python -m tests.captures.matrix -->", "<!-- end of matrix -->"
ALWAYS = ("capture_loss",)
"""What a variant with loss may show beside what it is about."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """A recording, and the findings in it (rows of `gold.findings`; `details` as a dict)."""

    recording: Recording
    rows: tuple[Row, ...]
    variant: str = ""

    @property
    def loud(self) -> set[tuple[str, str]]:
        """Rule and subject of what is above info."""
        return {(row["rule"], row["subject"]) for row in self.rows if row["severity"] != "info"}

    @property
    def unexpected(self) -> list[Row]:
        """Above info, and not declared."""
        declared = self.recording.expected
        return [
            row
            for row in self.rows
            if row["severity"] != "info"
            and (row["rule"], row["subject"]) not in declared
            and not (self.variant and row["rule"] in ALWAYS)
        ]

    @property
    def missing(self) -> set[tuple[str, str]]:
        """Declared, and not found."""
        return set(self.recording.expected) - {(row["rule"], row["subject"]) for row in self.rows}


def judged(recording: Recording, variant: str = "") -> Judged:
    """Judge a recording, or a variant of it, as `wirelake diagnose` does."""
    if not variant:
        return Judged(recording, _rows(recording.pcap))
    with tempfile.TemporaryDirectory() as folder:
        cut = Path(folder) / f"{recording.name}.pcap"
        cut.write_bytes(VARIANTS[variant](pcap_of(recording.pcap)))
        return Judged(recording, _rows(cut), variant)


def _rows(pcap: Path) -> tuple[Row, ...]:
    found = diagnose(read_inputs([str(pcap)]), StreamSettings()).findings.to_pylist()
    return tuple({**row, "details": json.loads(row["details"] or "{}")} for row in found)


def begins_us(recording: Recording) -> dict[str, list[int]]:
    """When each client's incidents begin, µs since the epoch."""
    begins: dict[str, list[int]] = defaultdict(list)
    for event in recording.log["events"]:
        if event.get("kind") == "incident":
            begins[event["client_id"]].append(event["ts_ms"] * 1000)
    return begins


def delay_s(recording: Recording, row: Row) -> float | None:
    """Seconds from the incident's begin on the wire until there was enough to tell; None if one is not known.

    Of an incident that comes again and again, the last begin before that.
    """
    begins, enough_us = begins_us(recording), row["details"].get("enough_us")
    group = str(row["subject"]).partition("/")[0]
    own = next((some for client, some in begins.items() if client.rpartition("-")[0] == group), None)
    some = own or [us for each in begins.values() for us in each]
    earlier = [us for us in some if enough_us is not None and us <= int(enough_us)]
    return (int(enough_us) - max(earlier)) / 1e6 if enough_us is not None and earlier else None


def tables(all_judged: list[Judged]) -> str:
    """The tables as Markdown."""
    healthy = [one for one in all_judged if one.recording.is_healthy]
    sick = [one for one in all_judged if not one.recording.is_healthy]
    return "\n\n".join([*_healthy(healthy), *_sick(sick)])


def _healthy(some: list[Judged]) -> Iterable[str]:
    if not some:
        return
    hours = sum(one.recording.seconds for one in some) / 3600
    alarms = sum(len(one.unexpected) for one in some)
    yield (
        f"**Healthy traffic**: {hours:.1f} hours in {len(some)} recordings, {alarms} findings above info: "
        f"{alarms / hours:.1f} false alarms an hour."
    )
    lines = ["| recording | what it is | minutes | above info | info |", "|---|---|---|---|---|"]
    for one in some:
        info = sorted({row["rule"] for row in one.rows if row["severity"] == "info"})
        loud = sorted({f"`{row['rule']}`" for row in one.unexpected}) or ["none"]
        lines.append(
            f"| {one.recording.name}{_variant(one)} | {one.recording.story} | {one.recording.seconds / 60:.0f} "
            f"| {', '.join(loud)} | {', '.join(f'`{rule}`' for rule in info) or 'none'} |"
        )
    yield "\n".join(lines)


def _sick(some: list[Judged]) -> Iterable[str]:
    if not some:
        return
    yield "**Incidents**: what is declared, and how soon it is told; a period is the time between the group's commits."
    lines = ["| rule | recording | subjects | after | in periods | state at the end |", "|---|---|---|---|---|---|"]
    by_rule: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in some:
        by_name: dict[str, list[Row]] = defaultdict(list)
        for row in one.rows:
            if (row["rule"], row["subject"]) in one.recording.expected:
                by_name[row["rule"]].append(row)
        for rule, rows in by_name.items():
            by_rule[rule, one.recording.name + _variant(one)].append(_line(one.recording, rows))
        for rule in sorted({rule for rule, _ in one.missing}):
            by_rule[rule, one.recording.name + _variant(one)].append("**not found** | | | |")
        for rule in sorted({row["rule"] for row in one.unexpected}):
            by_rule[rule, one.recording.name + _variant(one)].append("**false alarm** | | | |")
    for (rule, name), ends in sorted(by_rule.items()):
        lines += [f"| `{rule}` | {name} | {end}" for end in ends]
    yield "\n".join(lines)


def _line(recording: Recording, rows: list[Row]) -> str:
    after = [delay for row in rows if (delay := delay_s(recording, row)) is not None]
    slowest = max(after, default=None)
    states = "/".join(sorted({row["state"] for row in rows}))
    period = recording.period_s
    told = "" if slowest is None else f"{slowest:.0f} s"
    periods = "" if slowest is None or period is None else f"{slowest / period:.1f}"
    return f"{len(rows)} | {told} | {periods} | {states} |"


def _variant(one: Judged) -> str:
    return f", {one.variant}" if one.variant else ""


def write(text: str, page: Path = PAGE, begin: str = BEGIN, end: str = END) -> None:
    """Put the tables between two marks of the page.

    Raises:
        ValueError: the page has no marks.
    """
    before, _, rest = page.read_text().partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise ValueError(f"{page} has no place for the matrix: {begin} … {end}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def main(arguments: list[str], tell: Callable[[str], None] = print) -> int:
    """Judge what is named; return the exit code."""
    parser = argparse.ArgumentParser(description="Which rule fires on which recording?")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/findings.md")
    parser.add_argument("--variants", action="store_true", help="also joined midway, and with loss")
    options = parser.parse_args(arguments)
    done = []
    for recording in recordings(options.names or ALL):
        for variant in ("", *VARIANTS) if options.variants else ("",):
            one = judged(recording, variant)
            done.append(one)
            for row in one.unexpected:
                tell(f"{recording.name}{_variant(one)}: {row['severity']} {row['rule']}: {row['summary']}")
            for rule, subject in sorted(one.missing):
                tell(f"{recording.name}{_variant(one)}: {rule} of {subject} was not found")
    text = tables(done)
    tell(text)
    if options.write:
        write(text)
    return 1 if any(one.unexpected or one.missing for one in done) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
