"""Which rule fires on which recording, how soon, and on which it must not? Told as the tables of docs/findings.md.

`python -m tests.captures.matrix [--write] [--variants] [NAME…]` judges recordings as `wirelake diagnose` does, in this
process, prints the tables, and with `--write` puts them into docs/findings.md; where some incidents are named, the
lines of others stay. Exit code 1 if a rule fired that was not declared, or did not fire that was.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.analysis.rules.run import finding_rows
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import OFFSET_TIMELINE
from tests.captures.beside_burrow import Beside, Watched, beside, groups_watched, told_of_health
from tests.captures.variants import VARIANTS, pcap_of
from tests.paths import ROOT
from tests.pipeline.analysis.rules.incidents import ALL, Recording, recordings

PAGE = ROOT / "docs" / "findings.md"
BEGIN, END = "<!-- matrix: made by python -m tests.captures.matrix -->", "<!-- end of matrix -->"
OF_VARIANT = {"with loss": ("capture_loss",)}
"""Rules that a variant may show beside what it is about."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """A recording, the findings in it (rows of `gold.findings`, `details` a dict), and what Burrow says of groups."""

    recording: Recording
    rows: tuple[Row, ...]
    variant: str = ""
    watched: dict[str, Watched] = field(default_factory=dict)

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
            and row["rule"] not in OF_VARIANT.get(self.variant, ())
        ]

    @property
    def missing(self) -> set[tuple[str, str]]:
        """Declared, and not found."""
        return set(self.recording.expected) - {(row["rule"], row["subject"]) for row in self.rows}


def judged(recording: Recording, variant: str = "") -> Judged:
    """Judge a recording, or a variant of it, as `wirelake diagnose` does."""
    if not variant:
        return _judged(recording, recording.pcap, variant)
    with tempfile.TemporaryDirectory() as folder:
        cut = Path(folder) / f"{recording.name}.pcap"
        cut.write_bytes(VARIANTS[variant](pcap_of(recording.pcap)))
        return _judged(recording, cut, variant)


def _judged(recording: Recording, pcap: Path, variant: str) -> Judged:
    found = diagnose(read_inputs([str(pcap)]), StreamSettings())
    rows = tuple({**row, "details": json.loads(row["details"] or "{}")} for row in finding_rows(found.findings))
    return Judged(recording, rows, variant, groups_watched(found.tables[OFFSET_TIMELINE.full_name]))


def begins_us(recording: Recording) -> dict[str, list[int]]:
    """When each client's incidents begin, µs since the epoch."""
    begins: dict[str, list[int]] = defaultdict(list)
    for event in recording.log["events"]:
        if event.get("kind") == "incident":
            begins[event["client_id"]].append(event["ts_ms"] * 1000)
    return begins


def began_us(recording: Recording, row: Row) -> int | None:
    """When the incident that a finding is of began on the wire, µs since the epoch; None if that is not known.

    Of an incident that comes again and again, the last begin before there was enough to tell.
    """
    begins, enough_us = begins_us(recording), row["details"].get("enough_us")
    group = str(row["subject"]).partition("/")[0]
    own = next((some for client, some in begins.items() if client.rpartition("-")[0] == group), None)
    some = own or [us for each in begins.values() for us in each]
    earlier = [us for us in some if enough_us is not None and us <= int(enough_us)]
    return max(earlier, default=None)


def delay_s(recording: Recording, row: Row) -> float | None:
    """Seconds from the incident's begin on the wire until there was enough to tell; None if one is not known."""
    since_us = began_us(recording, row)
    return None if since_us is None else (int(row["details"]["enough_us"]) - since_us) / 1e6


def period_s(one: Judged, row: Row) -> float | None:
    """Seconds from commit to commit of whom a finding is of; None if it commits less than twice."""
    periods = [
        period for group in _groups(row) if group in one.watched and (period := one.watched[group].period_s) is not None
    ]
    return one.recording.period_s or min(periods, default=None)


def beside_burrow(one: Judged, row: Row) -> Beside | None:
    """A finding beside Burrow; None where it is not about a group that commits, or was not dated."""
    enough_us = row["details"].get("enough_us")
    if enough_us is None:
        return None
    since_us = began_us(one.recording, row)
    return beside(one.watched, _groups(row), min(row["first_us"], int(enough_us)) if since_us is None else since_us)


def _groups(row: Row) -> list[str]:
    """Groups that a finding is of, or that starve of it."""
    starved = [reader.get("group_id") for reader in row["details"].get("starved_consumers") or ()]
    return sorted({group for group in (row.get("group_id"), *starved) if group})


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
    lines = [
        "| recording | what it is | minutes | above info | info | Burrow at its polls |",
        "|---|---|---|---|---|---|",
    ]
    for one in some:
        info = sorted({row["rule"] for row in one.rows if row["severity"] == "info"})
        loud = sorted({f"`{row['rule']}`" for row in one.unexpected}) or ["none"]
        lines.append(
            f"| {one.recording.name}{_variant(one)} | {one.recording.story} | {one.recording.seconds / 60:.0f} "
            f"| {', '.join(loud)} | {', '.join(f'`{rule}`' for rule in info) or 'none'} "
            f"| {told_of_health(one.watched, one.recording.span_us[0]) or 'none'} |"
        )
    yield "\n".join(lines)


def _sick(some: list[Judged]) -> Iterable[str]:
    if not some:
        return
    yield (
        "**Incidents**: what is declared, and how soon it is reported after it began on the wire; a period is the time "
        "between the group's commits. Beside it what Burrow says of the same groups, how long after the begin its poll "
        "of the logs' ends (each 10 s) and its notifier (each 60 s) give that, and which reports first; nothing where "
        "no group that commits is affected."
    )
    lines = [
        "| rule | recording | subjects | after | in periods | state at the end | Burrow | at a poll | at a look "
        "| reported first by |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    by_rule: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in some:
        by_name: dict[str, list[Row]] = defaultdict(list)
        for row in one.rows:
            if (row["rule"], row["subject"]) in one.recording.expected:
                by_name[row["rule"]].append(row)
        for rule, rows in by_name.items():
            by_rule[rule, one.recording.name + _variant(one)].append(_line(one, rows))
        for rule in sorted({rule for rule, _ in one.missing}):
            by_rule[rule, one.recording.name + _variant(one)].append("**not found** | | | | | | | |")
        for rule in sorted({row["rule"] for row in one.unexpected}):
            by_rule[rule, one.recording.name + _variant(one)].append("**false alarm** | | | | | | | |")
    for (rule, name), ends in sorted(by_rule.items()):
        lines += [f"| `{rule}` | {name} | {end}" for end in ends]
    yield "\n".join(lines)


def _line(one: Judged, rows: list[Row]) -> str:
    after = [delay for row in rows if (delay := delay_s(one.recording, row)) is not None]
    periods = [
        delay / period
        for row in rows
        if (delay := delay_s(one.recording, row)) is not None and (period := period_s(one, row)) is not None
    ]
    states = "/".join(sorted({row["state"] for row in rows}))
    others = [(row, other) for row in rows if (other := beside_burrow(one, row)) is not None]
    dated = [(since_us, other) for row, other in others if (since_us := began_us(one.recording, row)) is not None]
    return (
        f"{len(rows)} | {_slowest(after, ' s', 0)} | {_slowest(periods, '', 1)} | {states} "
        f"| {'/'.join(sorted({other.state for _, other in others}))} "
        f"| {_of_burrow([(since_us, other.polled_us) for since_us, other in dated])} "
        f"| {_of_burrow([(since_us, other.looked_us) for since_us, other in dated])} | {_first(others)} |"
    )


def _slowest(values: list[float], unit: str, digits: int) -> str:
    return f"{max(values):.{digits}f}{unit}" if values else ""


def _of_burrow(times: list[tuple[int, int | None]]) -> str:
    known = [(us - since_us) / 1e6 for since_us, us in times if us is not None]
    never = "" if len(known) == len(times) else "never"
    return " or ".join(part for part in (_slowest(known, " s", 0), never) if part)


def _first(others: list[tuple[Row, Beside]]) -> str:
    """Who tells of how many subjects first."""
    us = sum(other.polled_us is None or int(row["details"]["enough_us"]) <= other.polled_us for row, other in others)
    if not others:
        return ""
    return "us" if us == len(others) else "Burrow" if not us else f"us {us}, Burrow {len(others) - us}"


def _variant(one: Judged) -> str:
    return f", {one.variant}" if one.variant else ""


def with_lines_of(some: list[Judged], page: str) -> str:
    """The tables of a page with the lines about some incidents in place of those that it has of them.

    Raises:
        ValueError: one of them is healthy: the figures of all of these are above their table.
    """
    if any(one.recording.is_healthy for one in some):
        raise ValueError("healthy recordings are judged all together, or not written")
    text = page.partition(BEGIN)[2].partition(END)[0].strip()
    before, mark, lines = text.rpartition("\n|---|")
    names = {one.recording.name for one in some}
    head, *kept = lines.split("\n")
    kept = [line for line in kept if _cells(line)[1].partition(",")[0] not in names]
    new = tables(some).rpartition("\n|---|")[2].split("\n")[1:]
    return "\n".join([f"{before}{mark}{head}", *sorted([*kept, *new], key=_cells)])


def _cells(line: str) -> tuple[str, str]:
    """Rule and recording of a line of the table of incidents."""
    _, rule, recording, *_ = line.split("|")
    return rule.strip(" `"), recording.strip()


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
        write(with_lines_of(done, PAGE.read_text()) if options.names else text)
    return 1 if any(one.unexpected or one.missing for one in done) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
