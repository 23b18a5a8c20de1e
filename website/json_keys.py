"""The reference of what ``--json`` prints: keys as commands print them, meanings from where they are stated."""

from __future__ import annotations

import inspect
import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from typer.testing import CliRunner

from decoder.model import Status
from pipeline.capture.stats import NOTICES, CaptureStats
from pipeline.cli import app
from pipeline.commands.doctor import Check
from pipeline.embedded.diagnosis import Looked
from pipeline.embedded.streaming_diagnoser import Kind
from pipeline.tables import CONNECTIONS, FINDINGS, FRAMES, OFFSET_EVENTS, RECORD_BATCHES, Table
from website.markdown import cell, code, table

_CAPTURES = Path(__file__).resolve().parents[1] / "tests" / "captures"
_MESSAGE = {
    "header": "The header, in the words of Kafka's or MongoDB's own schema.",
    "body": "The body, likewise; null if nothing of it could be read.",
    "embedded": "What is inside bytes of the body: subscriptions, assignments; null if there is none.",
    "latency_us": "Of a response: µs from the last byte of its request to its first one.",
    "service_us": "Of a response: latency_us without the time that its request waited behind earlier ones of its "
    "connection; null if that is not known.",
    "exchange_id": "What a request and its response share.",
    "frame": "Number of the message, in the order of time, from 1: that of `wirelake explain --frame`.",
    "status": "Whether it was decoded: " + ", ".join(code(one) for one in get_args(Status)) + ".",
    "ts": "When its first byte was captured, ISO 8601, UTC.",
}
_RECORD = {
    "timestamp": "Of the record, ms since the epoch.",
    "key_size": "Bytes of the key; -1: null.",
    "value_size": "Bytes of the value; -1: null.",
    "offset": "Of the record.",
    "headers": "Names of its headers.",
    "header_values": "With `--payload full`: their values, base64.",
    "sequence": "The producer's sequence number; -1: none.",
    "key": "With `--payload full`: the key, base64.",
    "value": "With `--payload full`: the value, base64.",
    "error_code": "Instead of a record: why a batch could not be read.",
    "error_offset": "Byte of the batch at which it went wrong.",
    "error_detail": "The same in words.",
}
_LOOKED = {
    "first_us": "Time of the first frame, µs since the epoch; null without any.",
    "last_us": "Of the last one.",
    "pending": "Requests without an answer at the end.",
    "is_whole": "Whether all that was given could be read: no file cut off, damaged or gone before it was read.",
    "bytes_lost": "Bytes that the capture lacks of these connections.",
}


def json_page() -> str:
    """What each command prints with ``--json``."""
    with tempfile.TemporaryDirectory() as folder:
        summary = _keys(["capture", "read", _capture("version_negotiation"), "--landing", folder, "--json"])
    messages = _keys(["decode", _capture("incidents/refused"), _capture("mongodb/zstd"), "--json"])
    records = _keys(["decode", _capture("healthy"), "--records", "--payload", "full", "--json"])
    problems = ("error_code", "error_offset", "error_detail")
    parts = [
        "# JSON",
        "With `--json` a command prints one object a line; texts are UTF-8, times ISO 8601 in UTC. Keys stay (a "
        "key that goes is named in the [changes](../../CHANGELOG.md) and stays for one more release); new ones may "
        "come at any time.",
        "## wirelake decode --json",
        "A message a line. With `--tcp` also SYN, FIN, RST, zero windows and TLS alerts: `tcp` (SYN, SYN ACK, FIN, "
        "RST, ZERO WINDOW or WINDOW OPEN), `tls_alert`, `ts`, `direction`, and the addresses and ports of both ends.",
        _table(messages, {**_columns(FRAMES), **_MESSAGE}),
        "## wirelake decode --records --json",
        "A record a line; or, with the last three keys, what could not be read.",
        _table([*records, *problems], {**_columns(FRAMES, RECORD_BATCHES, OFFSET_EVENTS), **_MESSAGE, **_RECORD}),
        "## wirelake diagnose --json, wirelake findings --json",
        "A finding a line: a row of [`gold.findings`](tables.md#goldfindings).",
        _table(FINDINGS.column_names, _columns(FINDINGS)),
        "With `diagnose --follow` each line has `change` before these keys: "
        f"{', '.join(code(kind) for kind in get_args(Kind))}. The last line has the change `end`, the number of "
        "`findings`, and how much was looked at:",
        _table(Looked.__dataclass_fields__, {**dict.fromkeys(Looked.__dataclass_fields__, "How many."), **_LOOKED}),
        "## wirelake connections --json",
        "A connection a line: a row of [`silver.connections`](tables.md#silverconnections).",
        _table(CONNECTIONS.column_names, _columns(CONNECTIONS)),
        "## wirelake capture read --json, wirelake capture live --json",
        "One object at the end.",
        _table(summary, _attributes(CaptureStats)),
        "Of `notices`:",
        table(("key", "what"), ((code(name), cell(words)) for name, words in NOTICES.items())),
        "## wirelake doctor --json",
        "A line for each thing that was looked at.",
        _table(Check.__dataclass_fields__, {"name": "What.", "ok": "Whether all is well.", **_attributes(Check)}),
        "## wirelake tables --json, wirelake describe --json",
        "A table or view a line: `name`, `kind` (`table` or `view`), `comment`, `columns` (each with `name`, `type`, "
        "`comment`, empty where a view computes it; `describe` of a view also has `sql`), with `--lake` also `rows`.",
        "## wirelake sql --format json",
        "A row a line, with the query's own names.",
    ]
    return "\n\n".join(parts)


def _capture(name: str) -> str:
    return str(_CAPTURES / f"{name}.pcap")


def _keys(arguments: list[str]) -> list[str]:
    """All keys that a command prints, in their order."""
    found: dict[str, None] = {}
    for line in CliRunner().invoke(app, arguments).stdout.splitlines():
        found |= dict.fromkeys(json.loads(line))
    return list(found)


def _columns(*tables: Table) -> dict[str, str]:
    return {column.name: column.comment for one in reversed(tables) for column in one.columns}


def _attributes(kind: type[Any]) -> dict[str, str]:
    """What a class says of its attributes."""
    text = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2]
    found = re.findall(r"^    ([\w, ]+): ((?:.|\n(?!    \w[\w, ]*: ))*)", text, re.MULTILINE)
    return {name.strip(): words for names, words in found for name in names.split(",")}


def _table(keys: Iterable[str], meanings: Mapping[str, str]) -> str:
    """A table of keys.

    Raises:
        KeyError: one of them has no description.
    """
    return table(("key", "what"), ((code(key), cell(meanings[key])) for key in keys))
