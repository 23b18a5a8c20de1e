"""What a process that runs on writes to its log: sentences, and a line a minute with what it has done."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterable
from datetime import datetime, timezone
from enum import Enum
from typing import Annotated

import typer
from rich.text import Text

from pipeline.metrics.sample import Sample
from pipeline.terminal.console import Console, json_line

EVERY_S = 60.0
"""Seconds from one heartbeat to the next."""
_PREFIX = "wirelake_"
_STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}


class LogFormat(str, Enum):
    """How lines of a log are written."""

    TEXT = "text"
    JSON = "json"


LogFormatOption = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        help="Format of standard error: text, or json with ts, level and message in each line. If it is no terminal, "
        "a line a minute states what was read, kept and lost.",
    ),
]


class Log:
    """Lines on a console.

    Args:
        console: where they go; of a terminal, which shows progress by itself, there is no heartbeat.
        format: of lines.
    """

    def __init__(self, console: Console, format: LogFormat = LogFormat.TEXT) -> None:  # noqa: A002 - as the option
        self._console = console
        self._is_json = format is LogFormat.JSON
        self._beaten: float | None = None

    def write(self, sentence: str) -> None:
        """Write a sentence; one that begins with ``error:`` or ``warning:`` is of that level."""
        level, _, message = sentence.partition(": ")
        if level not in ("error", "warning"):
            level, message = "info", sentence
        if self._is_json:
            self._write_json(level, message)
        else:
            self._console.print(Text(sentence, _STYLES[level]), soft_wrap=True)

    def beat(self, samples: Iterable[Sample]) -> None:
        """Write a heartbeat if the last one, or the first call, is a minute ago."""
        now = time.monotonic()
        if self._beaten is None:
            self._beaten = now
        if self._console.is_terminal or now - self._beaten < EVERY_S:
            return
        self._beaten = now
        values = {_name(one): one.value for one in samples} | {"memory_mib": _most_memory_mib()}
        if self._is_json:
            self._write_json("info", "heartbeat", **values)
        else:
            shown = " ".join(f"{name}={value:.15g}" for name, value in values.items())
            self._console.print(Text(f"{_now()} heartbeat {shown}"), soft_wrap=True)

    def _write_json(self, level: str, message: str, **values: float) -> None:
        line = json_line({"ts": _now(), "level": level, "message": message, **values})
        self._console.file.write(line.decode())
        self._console.file.flush()


def _name(sample: Sample) -> str:
    """Its metric's name without what all have in common, and the values of its labels."""
    return "_".join((sample.name.removeprefix(_PREFIX), *(one for _, one in sorted(sample.labels.items()))))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _most_memory_mib() -> int:
    """What this process has kept at most."""
    kept = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kept >> (20 if sys.platform == "darwin" else 10)
