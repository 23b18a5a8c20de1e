"""The exit code of a drain tells what was left out."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.analysis.safety.guard import contain, noting
from pipeline.capture.landing.manifests import Manifest
from pipeline.streaming import job
from pipeline.streaming.landing.checked_files import SetAside
from pipeline.streaming.queries import StreamSummary
from pipeline.streaming.storage.new_files import NewFile


def set_aside(name: str, rows: int | None) -> SetAside:
    manifest = None if rows is None else Manifest(rows, 10, "", 0, 100)
    return SetAside(NewFile(f"file:/zone/date=2026-03-01/{name}", 10, 0, 0), "damaged", "is damaged", manifest)


def left_out(*files: SetAside) -> StreamSummary:
    summary = StreamSummary()
    for file in files:
        summary.left_out.add(file)
    return summary


def test_files_count_once_and_their_rows_where_a_manifest_states_them() -> None:
    one, other = set_aside("a.parquet", 1), set_aside("b.parquet", None)
    assert (
        str(left_out(one).left_out) == "1 landing file was set aside, and 1 row with them (ops.landing_files says why)"
    )
    assert str(left_out(other).left_out) == "1 landing file was set aside (ops.landing_files says why)"
    assert str(left_out(one, other, one).left_out).startswith("2 landing files were set aside, and 1 row with them")


def test_a_step_that_failed_weighs_more() -> None:
    summary = left_out(set_aside("a.parquet", 1))
    assert [summary.exit_code(may_leave_out=may) for may in (False, True)] == [3, 0]
    with noting(summary.errors):
        contain(KeyError("canary"), "rule 1")
    assert [summary.exit_code(may_leave_out=may) for may in (False, True)] == [2, 2]


@pytest.mark.parametrize(
    ("more", "code"),
    [(["--once"], 3), (["--once", "--allow-set-aside"], 0), ([], 0)],
    ids=["once", "allowed", "endless"],
)
def test_the_script_for_spark_submit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str], code: int
) -> None:
    def run(*_: Any, **__: Any) -> StreamSummary:
        return left_out(set_aside("a.parquet", 7))

    monkeypatch.setattr(job, "run_stream", run)
    monkeypatch.setattr(job, "build_session", lambda *_, **__: None)
    monkeypatch.setattr(job, "restrict_files", lambda _: None)
    assert job.main(["--landing", "zone", "--lake", "lake", *more]) == code
    assert "1 landing file was set aside, and 7 rows with them" in capsys.readouterr().err
