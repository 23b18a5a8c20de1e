"""A simulated day tells of the sick and of nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.config.settings import StreamSettings
from tests.captures import day
from tests.captures.day import Part, Told
from tests.captures.simulation.conversation import Conversation
from tests.captures.test_rhythms import a_recording


def a_part(copy: int, name: str, *expected: tuple[str, str]) -> Part:
    made = Conversation(a_recording(name, *expected), {}, {}, {}, {}, None)  # type: ignore[arg-type]
    return Part(copy, made, [])


def a_row(subject: str, severity: str = "critical", **values: Any) -> dict[str, Any]:
    named = {"group_id": None, "topic": None, "cluster": "simulated", "details": "{}", "summary": ""}
    return {"rule": "stopped", "subject": subject, "severity": severity, **named, **values}


def test_what_the_sick_must_give_is_no_alarm_and_what_the_healthy_give_is_one() -> None:
    parts = [a_part(0, "sick_made", ("stopped", "g/t"), ("stalled", "g/t")), a_part(1, "healthy_made")]
    told = Told(2, 1, parts, {(0, "stopped", "g/t"): a_row("team00.g/team00.t")})
    assert (told.unexpected, told.missing) == ([], {(0, "stalled", "g/t")})
    told.findings[1, "stopped", "g/t"] = a_row("team01.g/team01.t", "info")
    assert told.unexpected == []
    told.findings[1, "stopped", "g/t"] = a_row("team01.g/team01.t")
    assert [row["subject"] for row in told.unexpected] == ["team01.g/team01.t"]
    text = day.table(told)
    assert "| findings above info of who is healthy | 1 |" in text
    assert "| findings that the sick must give | 1 of 2 |" in text
    assert "| `stopped` | critical | 2 |" in text


@pytest.mark.parametrize(
    ("row", "copy"),
    [
        (a_row("team12.g/team12.t"), 12),
        (a_row("10.3.9.2:9092"), 9),
        (a_row("app/10.2.4.1", cluster="10.3.4.211:27017"), 4),
        (a_row("nobody"), -1),
    ],
)
def test_a_finding_is_of_the_copy_that_it_names(row: dict[str, Any], copy: int) -> None:
    assert day.copy_of(row) == copy


@pytest.mark.proof
def test_an_hour_of_twenty_groups(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{day.BEGIN}\n{day.END}\n")
    lines: list[str] = []
    assert day.main(["--groups", "20", "--hours", "1", "--write"], lines.append, page) == 0, lines
    assert "| findings above info of who is healthy | 0 |" in page.read_text()


def test_few_groups_are_cast_with_some_that_fall_ill(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def of(recording: Any, _settings: StreamSettings) -> Any:
        read.append(recording.name)
        return _Made(recording)

    monkeypatch.setattr(day.Conversation, "of", of)
    parts = day.cast(20, 1, StreamSettings(), seed=3)
    assert [part.copy for part in parts] == list(range(len(parts)))
    assert sum(len(part.conversation.groups) for part in parts) <= 20
    assert {part.conversation.recording.name for part in parts if part.expected} == set(day.SICK[::3])
    hour_us = 3_600_000_000
    for part in parts:
        assert all(day.MIDNIGHT_US <= pace.start_us < day.MIDNIGHT_US + hour_us for pace in part.paces)
        assert all(one.end_us < other.start_us for one, other in zip(part.paces, part.paces[1:], strict=False))
        assert not part.expected or part.paces[0].end_us <= day.MIDNIGHT_US + hour_us


class _Made:
    def __init__(self, recording: Any) -> None:
        self.recording, self.groups = recording, ["a", "b"]
        self.span_us = (0, 600_000_000)
