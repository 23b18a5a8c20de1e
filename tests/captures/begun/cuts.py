"""Recordings cut into the middle of their incidents, and what is still found: the tables of docs/findings.md.

`python -m tests.captures.begun.cuts [--write] [NAME…]` cuts each incident at 25, 50 and 75 % of its time, judges what
is left as `wirelake diagnose` does, and prints a line for each rule and recording: the severity, or the reason why it
cannot be known. Of several subjects of a rule in one recording the one that lasts longest is judged. Healthy recordings
are cut at the same shares of their time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.analysis.rules.run import finding_rows
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import read_inputs
from tests.captures.begun.reasons import REASONS, Row, Silent, Whole, reason_of
from tests.captures.matrix import PAGE, write
from tests.captures.variants import joined_at, pcap_of
from tests.pipeline.analysis.rules.incidents import ALL, Recording, recordings

BEGIN, END = "<!-- begun: made by python -m tests.captures.begun.cuts -->", "<!-- end of begun -->"
SHARES = (0.25, 0.5, 0.75)
NOT_FOUND = "**not found**"
_ALL_EVIDENCE = 100_000


@dataclass(frozen=True)
class Cut:
    """A rule judged from the middle of an incident on.

    Attributes:
        share: of the incident's time that precedes the cut.
        severity: of what is found; None if nothing is.
        reason: why nothing can be; None if nothing excuses it.
    """

    rule: str
    subject: str
    recording: str
    share: float
    severity: str | None
    reason: str | None = None

    @property
    def word(self) -> str:
        """What the table has of it."""
        return self.severity or self.reason or NOT_FOUND


def cuts_of(recording: Recording) -> list[Cut]:
    """The incidents that a recording declares, each judged from three moments of its time on."""
    pcap = pcap_of(recording.pcap)
    whole = _whole(recording)
    wanted: defaultdict[int, list[tuple[Row, float]]] = defaultdict(list)
    for row in _longest(whole.rows, recording):
        for share in SHARES:
            at_us = row["first_us"] + share * (row["last_us"] - row["first_us"])
            wanted[round(at_us / 100_000) * 100_000].append((row, share))
    found: list[Cut] = []
    for at_us, some in sorted(wanted.items()):
        rest = {(row["rule"], row["subject"]): row for row in rows_from(pcap, at_us)}
        for row, share in some:
            key = row["rule"], row["subject"]
            one = rest.get(key) or _under_other_name(row, rest.values())
            reason = None if one else reason_of(Silent(row, at_us, whole, rest))
            found.append(Cut(*key, recording.name, share, one["severity"] if one else None, reason))
    return sorted(found, key=lambda one: (one.rule, one.recording, one.share))


def _under_other_name(row: Row, rest: Iterable[Row]) -> Row | None:
    """The same rule's finding about the same group, or the same collection, whose name is not known in full.

    Who connected before the capture began goes by its address, and a topic may go by its id.
    """
    whose = row["group_id"] or row["details"].get("namespace")
    return next(
        (
            one
            for one in rest
            if whose and one["rule"] == row["rule"] and whose == (one["group_id"] or one["details"].get("namespace"))
        ),
        None,
    )


def alarms_of(recording: Recording) -> list[tuple[float, Row]]:
    """What is found above info in a healthy recording, from three moments of its time on."""
    pcap = pcap_of(recording.pcap)
    begin_us, end_us = recording.span_us
    return [
        (share, row)
        for share in SHARES
        for row in rows_from(pcap, int(begin_us + share * (end_us - begin_us)))
        if row["severity"] != "info"
    ]


def _longest(rows: Iterable[Row], recording: Recording) -> list[Row]:
    """Of each rule the declared finding that lasts longest."""
    best: dict[str, Row] = {}
    for row in sorted(rows, key=lambda one: (one["first_us"] - one["last_us"], str(one["subject"]))):
        if (row["rule"], row["subject"]) in recording.expected:
            best.setdefault(row["rule"], row)
    return list(best.values())


def rows_from(pcap: bytes, at_us: int) -> list[Row]:
    """Findings in what is left of a recording from a time on, µs since the epoch."""
    return rows_of(joined_at(pcap, at_us / 1_000_000))


def rows_of(pcap: bytes) -> list[Row]:
    """Findings in a capture."""
    with tempfile.TemporaryDirectory() as folder:
        rest = Path(folder) / "rest.pcap"
        rest.write_bytes(pcap)
        return _rows(diagnose(read_inputs([str(rest)]), StreamSettings()))


def _whole(recording: Recording) -> Whole:
    settings = StreamSettings()
    findings = settings.findings.model_copy(update={"max_evidence": _ALL_EVIDENCE})
    found = diagnose(read_inputs([str(recording.pcap)]), settings.model_copy(update={"findings": findings}))
    return Whole(tuple(_rows(found)), found.tables)


def _rows(found: Diagnosis) -> list[Row]:
    return [{**row, "details": json.loads(row["details"] or "{}")} for row in finding_rows(found.findings)]


def table(cuts: Sequence[Cut]) -> str:
    """The table as Markdown, with the sums above it."""
    sums: defaultdict[str, int] = defaultdict(int)
    for one in cuts:
        sums["found" if one.severity else one.reason or "not found"] += 1
    legend = "\n".join(f"- **{name}** ({sums[name]}): {says}." for name, (_, says) in REASONS.items())
    lines = ["| rule | recording | subject | 25 % | 50 % | 75 % |", "|---|---|---|---|---|---|"]
    by_line: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for one in sorted(cuts, key=lambda each: (each.rule, each.recording, each.share)):
        by_line[one.rule, one.recording, one.subject].append(one.word)
    lines += [
        f"| `{rule}` | {name} | {subject} | {' | '.join(words)} |" for (rule, name, subject), words in by_line.items()
    ]
    names = {one.recording for one in cuts}
    silent = len(cuts) - sums["found"]
    head = (
        f"{len(cuts)} cuts of {len(names)} recordings: {sums['found']} found, {silent} not; of these "
        f"{sums['not found']} without a reason, the others for one of these:"
    )
    return f"{head}\n\n{legend}\n\n" + "\n".join(lines)


def cuts_in(text: str) -> list[Cut]:
    """The cuts that a table shows."""
    found: list[Cut] = []
    for line in text.splitlines():
        if not line.startswith("| `"):
            continue
        rule, name, subject, *words = (cell.strip() for cell in line.strip("|").split(" | "))
        for share, word in zip(SHARES, words, strict=True):
            is_found = word not in REASONS and word != NOT_FOUND
            reason = word if word in REASONS else None
            found.append(Cut(rule.strip("`"), subject, name, share, word if is_found else None, reason))
    return found


def main(arguments: list[str]) -> int:
    """Judge what is named; return the exit code."""
    parser = argparse.ArgumentParser(description="What is still found of an incident that the capture begins within?")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/findings.md; lines of what is not named stay"
    )
    options = parser.parse_args(arguments)
    done: list[Cut] = []
    alarms = 0
    for recording in recordings(options.names or ALL):
        if recording.is_healthy:
            for share, row in alarms_of(recording):
                alarms += 1
                print(f"{recording.name} from {share:.0%} on: {row['severity']} {row['rule']}: {row['summary']}")
            continue
        some = cuts_of(recording)
        done += some
        for one in some:
            if not one.severity:
                print(f"{one.rule} of {one.subject} in {one.recording} from {one.share:.0%} on: {one.word}", flush=True)
    print(table(done))
    if options.write:
        kept = [one for one in cuts_in(PAGE.read_text().partition(BEGIN)[2].partition(END)[0]) if options.names]
        write(table([*(one for one in kept if one.recording not in options.names), *done]), PAGE, BEGIN, END)
    return 1 if alarms or any(not one.severity and not one.reason for one in done) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
