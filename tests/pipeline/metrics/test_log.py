"""A log has sentences with their level, and a heartbeat a minute where no terminal shows progress."""

from __future__ import annotations

import io
import json
from datetime import datetime

import pytest

from pipeline.metrics import log as module
from pipeline.metrics.log import Log, LogFormat
from pipeline.metrics.sample import Sample
from pipeline.terminal.console import Console

SAMPLES = [
    Sample("wirelake_agent_frames", "counter", "", 12, {"protocol": "kafka"}),
    Sample("wirelake_agent_lost_bytes", "counter", "", 2**40),
]


def written(log_format: LogFormat, *, is_terminal: bool = False) -> tuple[Log, io.StringIO]:
    text = io.StringIO()
    return Log(Console(file=text, force_terminal=is_terminal, width=80), log_format), text


def test_sentences_stay_as_they_are_in_text() -> None:
    log, text = written(LogFormat.TEXT)
    log.write("error: it is [bold]full[/bold]: mend it " + "x" * 100)
    assert text.getvalue() == "error: it is [bold]full[/bold]: mend it " + "x" * 100 + "\n"


@pytest.mark.parametrize(
    ("sentence", "level", "message"),
    [
        ("error: it is full: mend it", "error", "it is full: mend it"),
        ("warning: slow", "warning", "slow"),
        ("frames: batch 3", "info", "frames: batch 3"),
    ],
)
def test_each_line_of_json_has_time_level_and_message(sentence: str, level: str, message: str) -> None:
    log, text = written(LogFormat.JSON)
    log.write(sentence + "\x1b[31m\n")
    (line,) = text.getvalue().splitlines()
    found = json.loads(line)
    assert datetime.fromisoformat(found.pop("ts")).utcoffset() is not None
    assert found == {"level": level, "message": message + "\x1b[31m\n"}
    assert "\x1b" not in line


@pytest.mark.parametrize("log_format", LogFormat)
def test_a_heartbeat_comes_each_minute(log_format: LogFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    log, text = written(log_format)
    for second in range(0, 181):
        now = 1000.0 + second
        log.beat(SAMPLES)
    lines = text.getvalue().splitlines()
    assert len(lines) == 3
    if log_format is LogFormat.JSON:
        found = json.loads(lines[0])
        assert (found["message"], found["agent_frames_kafka"], found["agent_lost_bytes"]) == ("heartbeat", 12, 2**40)
        assert found["memory_mib"] > 1
    else:
        assert "heartbeat agent_frames_kafka=12 agent_lost_bytes=1099511627776 memory_mib=" in lines[0]


def test_a_terminal_shows_progress_and_no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    log, text = written(LogFormat.TEXT, is_terminal=True)
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    log.beat(SAMPLES)
    now = 100.0
    log.beat(SAMPLES)
    assert not text.getvalue()
