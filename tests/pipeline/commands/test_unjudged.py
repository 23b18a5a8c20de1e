"""What was not judged is told on standard error and by the exit code, by each command that judges."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.analysis.rules.kafka import groundwork
from pipeline.analysis.safety.guard import InternalError, TooMuchToJudge
from pipeline.cli import app
from pipeline.commands.unjudged import error_sentences
from pipeline.embedded import live_monitor as watching
from pipeline.tables import (
    CLIENTS,
    EXCHANGES,
    FINDINGS,
    FRAMES,
    INTERNAL_ERRORS,
    PENDING_EXCHANGES,
    STREAM_PROGRESS,
    WRITTEN_BY_DIAGNOSE,
)
from tests.paths import CAPTURES
from tests.pipeline.rows import T0, row, write

HEALTHY, STUCK = str(CAPTURES / "healthy.pcap"), str(CAPTURES / "stuck_commit.pcap")


def fails(*_: Any, **__: Any) -> Any:
    raise KeyError("canary")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groundwork, "newest_versions", fails)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    "arguments", [("diagnose", HEALTHY), ("diagnose", HEALTHY, "--json"), ("top", "--once", HEALTHY)]
)
def test_a_failure_is_a_sentence_and_exit_code_2(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 2
    assert "warning: what rules share: offered versions: internal error: KeyError at pipeline." in done.stderr
    assert "everything else was judged" in done.stderr
    assert "canary" not in done.output


@pytest.mark.usefixtures("broken")
def test_what_is_critical_still_ends_with_1() -> None:
    done = CliRunner().invoke(app, ["diagnose", STUCK, "--json"])
    assert done.exit_code == 1
    assert "stuck_commit" in {json.loads(line)["rule"] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("part", ["groups_now", "traffic_now"])
def test_a_part_of_the_screen_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(watching, part, fails)
    done = CliRunner().invoke(app, ["top", "--once", HEALTHY])
    assert done.exit_code == 2
    assert "as it is now" in done.stderr or "as they are now" in done.stderr


def test_many_failures_are_told_in_a_few_lines() -> None:
    sentences = error_sentences([InternalError("statements", str(n), "KeyError", "here:1") for n in range(500)])
    assert len(sentences) == 12
    assert sentences[-2] == "490 more failures of steps"


def test_too_much_to_judge_is_no_fault() -> None:
    error = InternalError.of(TooMuchToJudge("9 million pairs"), "rule stuck_commit")
    assert error_sentences([error])[-1].startswith("the other rules have judged everything")


def test_a_lake_without_gold_is_not_called_healthy(tmp_path: Path) -> None:
    waiting = [row(PENDING_EXCHANGES, exchange_id="a-1")]  # of requests at the end of the data
    for table, given in (
        (FINDINGS, []), (FRAMES, [row(FRAMES)]), (EXCHANGES, [row(EXCHANGES)]), (PENDING_EXCHANGES, waiting),
    ):  # fmt: skip
        write(tmp_path, table, given)
    done = CliRunner().invoke(app, ["findings", "--lake", str(tmp_path)])
    assert "its gold tables were never computed" in str(done.exception)
    write(tmp_path, CLIENTS, [row(CLIENTS)])
    assert CliRunner().invoke(app, ["findings", "--lake", str(tmp_path)]).exit_code == 0


@pytest.mark.parametrize(
    ("frames", "words"),
    [([], "it holds no Kafka or MongoDB message yet"), ([row(FRAMES)], "no request has its response yet")],
)
def test_a_lake_without_exchanges_says_that_nothing_was_judged(
    tmp_path: Path, frames: list[dict[str, Any]], words: str
) -> None:
    for table, given in ((FINDINGS, []), (FRAMES, frames), (EXCHANGES, [])):
        write(tmp_path, table, given)
    done = CliRunner().invoke(app, ["findings", "--lake", str(tmp_path)])
    assert words in str(done.exception)


@pytest.mark.parametrize("by", ["job", "diagnose"])
def test_requests_without_any_response_are_not_called_healthy(tmp_path: Path, by: str) -> None:
    waiting = [row(PENDING_EXCHANGES, exchange_id="a-1"), row(PENDING_EXCHANGES, exchange_id="a-2")]
    progress = [row(STREAM_PROGRESS, query="gold", checkpoint="c", batch_id=1)] if by == "job" else []
    tables = ((FINDINGS, []), (EXCHANGES, []), (PENDING_EXCHANGES, waiting), (STREAM_PROGRESS, progress))
    for table, given in tables:
        write(tmp_path, table, given)
    if by == "diagnose":
        (tmp_path / WRITTEN_BY_DIAGNOSE).touch()
    done = CliRunner().invoke(app, ["findings", "--lake", str(tmp_path)])
    assert "was judged: 2 messages without the other half" in str(done.exception)
    assert "Nothing found" not in done.output


@pytest.mark.parametrize(("batch", "code"), [(7, 2), (6, 0)], ids=["the newest refresh", "an older refresh"])
def test_a_failure_of_the_newest_refresh_is_told_and_ends_with_2(tmp_path: Path, batch: int, code: int) -> None:
    failed = row(INTERNAL_ERRORS, query="gold", checkpoint="c", batch_id=batch, step="rule stopped", error="KeyError")
    progress = [
        row(STREAM_PROGRESS, query="gold", checkpoint="c", batch_id=n, finished_at=T0 + timedelta(seconds=n))
        for n in (6, 7)
    ]
    for table, given in ((FINDINGS, []), (INTERNAL_ERRORS, [failed]), (STREAM_PROGRESS, progress)):
        write(tmp_path, table, given)
    done = CliRunner().invoke(app, ["findings", "--lake", str(tmp_path)])
    assert done.exit_code == code
    assert ("rule stopped: internal error" in done.stderr) == (code == 2)
