"""What do client libraries log while they are ill, beside what is found and what Burrow says? See docs/client-logs.md.

`python -m tests.captures.client_logs [--write] [--kept DIR] [NAME…]` plays recordings of `rhythms` again, judges what
tcpdump recorded of it, and prints of each client that was ill what was found of it, what Burrow says of its group, and
which lines its library itself logged; `--write` puts the table into the page. Those that share a broker are played side
by side, the others one after the other, each for four minutes. `--kept` plays only what is not in a folder yet, and
tells of all that is. It needs what `tests.captures.rhythms` needs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.humanize import pluralize
from tests.captures import rhythms
from tests.captures.matrix import Judged, Row, beside_burrow, judged, write
from tests.paths import ROOT
from tests.pipeline.analysis.rules.incidents import Recording, recordings

PAGE = ROOT / "docs" / "client-logs.md"
BEGIN, END = "<!-- logs: made by python -m tests.captures.client_logs -->", "<!-- end of logs -->"
PLAYED = (
    "sick_progress_1s", "sick_commit_1s", "sick_transaction_1s", "sick_sarama_1s", "sick_native_1s", "sick_jvm_1s",
    "sick_work_1s", "sick_share_1s",
)  # fmt: skip
"""Sick recordings whose clients report what their libraries log."""
READ = {"kafka-clients", "spring-kafka", "sarama", "franz-go", "kafka-go", "kafkajs", "krafka"}
"""Libraries of which all clients do; of others those that say so (`log_begun`)."""
_CALM = frozenset({"", "OK"})
"""States in which Burrow says nothing."""
_AFTER_MS = 15_000
"""What is logged so long after an incident still counts: some libraries report at the next poll."""
_VARIES = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+|\d+")
_MOST_LINES, _MOST_CHARACTERS = 3, 180


@dataclass(frozen=True)
class Ill:
    """A client that was ill.

    Attributes:
        library: with its version.
        found: rules and subjects that were found of it, with what Burrow says of the same.
        lines: what its library logged meanwhile, each with how often; lines that differ in numbers count as one.
    """

    recording: str
    client_id: str
    library: str
    found: tuple[tuple[str, str, str], ...]
    lines: tuple[tuple[str, int], ...]
    is_read: bool


def ill_clients(one: Judged) -> list[Ill]:
    """Clients that were ill in a recording, in the order of their names."""
    log = one.recording.log
    clients = {client["client_id"]: client for client in log["clients"]}
    spans = _spans(log["events"])
    begun = {event["client_id"] for event in log["events"] if event["kind"] == "log_begun"}
    return [
        Ill(
            one.recording.name,
            client_id,
            f"{client['library']} {client['version']}",
            tuple(_found(one, client_id)),
            tuple(_lines(log["events"], client_id, spans[client_id])),
            client["library"] in READ or client_id in begun,
        )
        for client_id, client in sorted(clients.items())
        if client_id in spans
    ]


def _spans(events: Iterable[dict[str, Any]]) -> dict[str, list[tuple[int, int]]]:
    """When each was ill, ms since the epoch."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        if event["kind"] == "incident":
            spans.setdefault(event["client_id"], []).append((event["ts_ms"], sys.maxsize))
        elif event["kind"] == "healed" and spans.get(event["client_id"]):
            begin_ms, _ = spans[event["client_id"]].pop()
            spans[event["client_id"]].append((begin_ms, event["ts_ms"]))
    return spans


def _found(one: Judged, client_id: str) -> Iterable[tuple[str, str, str]]:
    """Findings above info that name a client, or its group where they name none."""
    group = client_id.rpartition("-")[0]
    for row in sorted(one.rows, key=lambda row: (row["rule"], row["subject"])):
        if row["severity"] != "info" and _is_of(row, client_id, group):
            burrow = beside_burrow(one, row)
            yield row["rule"], str(row["subject"]), burrow.state if burrow else ""


def _is_of(row: Row, client_id: str, group: str) -> bool:
    names = set(re.split(r"[/ ]", str(row["subject"])))
    details = json.dumps(row["details"])
    return client_id in names or bool(re.search(rf'"{re.escape(client_id)}(?: at [^"]*)?"', details)) or group in names


def _lines(
    events: Iterable[dict[str, Any]], client_id: str, spans: Sequence[tuple[int, int]]
) -> Iterable[tuple[str, int]]:
    """The first of each kind of line, and how many there are of it; the most frequent first."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for event in events:
        if event["kind"] != "log" or event["client_id"] != client_id:
            continue
        if not any(begin_ms <= event["ts_ms"] <= end_ms + _AFTER_MS for begin_ms, end_ms in spans):
            continue
        kind = _VARIES.sub("#", event["text"])
        first.setdefault(kind, event["text"])
        counts[kind] += 1
    return [(first[kind], number) for kind, number in counts.most_common()]


def table(some: Iterable[Ill]) -> str:
    """The table as Markdown."""
    lines = ["| library | client | found | Burrow | what the library logs meanwhile |", "|---|---|---|---|---|"]
    for one in sorted(some, key=lambda each: (each.library, each.recording, each.client_id)):
        found = "<br>".join(f"`{rule}` {subject}" for rule, subject, _ in one.found) or "nothing"
        burrow = "<br>".join(state or "no group" for _, _, state in one.found)
        lines.append(f"| {one.library} | {one.client_id} ({one.recording}) | {found} | {burrow} | {_said(one)} |")
    return "\n".join(lines)


def in_short(some: Sequence[Ill]) -> str:
    """How many clients of these there are of which something is found, said and logged."""
    read = [one for one in some if one.is_read]
    found = sum(bool(one.found) for one in read)
    warned = sum(any(state not in _CALM for _, _, state in one.found) for one in read)
    logged = sum(bool(one.lines) for one in read)
    return (
        f"Of {pluralize(len(read), 'client')} whose log is read, Wirelake finds something of {found}, Burrow says "
        f"something of {warned}, and the library logs something of {logged}."
    )


def _said(one: Ill) -> str:
    if not one.is_read:
        return "not read"
    shown = [f"{pluralize(number, 'time')} `{_plain(text)}`" for text, number in one.lines[:_MOST_LINES]]
    more = len(one.lines) - _MOST_LINES
    return "<br>".join([*shown, *([f"and {more} other lines"] if more > 0 else [])]) or "nothing"


def _plain(text: str) -> str:
    short = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
    return short.replace("`", "'").replace("|", "¦")


def replayed(names: Sequence[str], into: Path) -> list[Judged]:
    """Play recordings again, but for those that are there, and judge what came."""
    missing = [name for name in names if not _truth(into, name).exists()]
    shared = [name for name in missing if not rhythms.has_own_servers(name)]
    for some in (shared, *([name] for name in missing if name not in shared)):
        if some:
            rhythms.record_all(some, 1.0, into, with_logs=True)
    return [judged(_again(one, into)) for one in recordings(names) if _truth(into, one.name).exists()]


def _truth(folder: Path, name: str) -> Path:
    return folder / f"{name}.truth.json"


def _again(recording: Recording, into: Path) -> Recording:
    log = json.loads(_truth(into, recording.name).read_text())
    return replace(recording, pcap=into / f"{recording.name}.pcap.zst", log=log)


def main(arguments: list[str]) -> int:
    """Play what is named; return the exit code."""
    parser = argparse.ArgumentParser(description="What do client libraries log while they are ill?")
    parser.add_argument("names", nargs="*", choices=[*PLAYED, []], metavar="NAME")
    parser.add_argument("--write", action="store_true", help="put the table into docs/client-logs.md")
    parser.add_argument("--kept", type=Path, metavar="DIR", help="where recordings are, and stay")
    options = parser.parse_args(arguments)
    names = options.names or PLAYED
    with tempfile.TemporaryDirectory() as folder:
        done = replayed(names, options.kept or Path(folder))
    some = [ill for one in done for ill in ill_clients(one)]
    text = f"{in_short(some)}\n\n{table(some)}"
    print(text)
    if options.write:
        write(text, PAGE, BEGIN, END)
    return 0 if len(done) == len(names) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
