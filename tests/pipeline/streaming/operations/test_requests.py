"""Work on a lake is handed to the stream that runs there; without one the command does it itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.streaming.operations.requests import (
    Backfill,
    Maintenance,
    Progress,
    RefusedError,
    is_asked,
    open_for_requests,
    perform,
    serve,
)
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lock import local_lock

BACKFILL = Backfill(first=date(2026, 1, 1), last=date(2026, 1, 2), recode=True)


def nothing(request: Backfill | Maintenance, progress: Progress) -> None:
    raise AssertionError(f"{request} was done here")


class Stream:
    """Holds a lake's lock in another thread, and does with a request what a test demands, until it has done one."""

    def __init__(self, lake: Lake, do: Callable[[Backfill | Maintenance, Progress], None] | None) -> None:
        self.lake, self.do = lake, do
        self.got: list[Backfill | Maintenance] = []
        self.errors: list[Exception] = []
        self._holds = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Stream:
        self._thread.start()
        assert self._holds.wait(60)
        return self

    def __exit__(self, *exc: object) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        def note(request: Backfill | Maintenance, progress: Progress) -> None:
            self.got.append(request)
            assert self.do is not None
            self.do(request, progress)

        with local_lock(self.lake):
            self._holds.set()
            while not is_asked(self.lake):
                threading.Event().wait(0.01)
            if self.do is not None:
                try:
                    serve(self.lake, note)
                except UserError as error:
                    self.errors.append(error)


def left_over(lake: Lake) -> list[Path]:
    return list(Path(lake.root).glob("_requests/*"))


def talk(request: Backfill | Maintenance, progress: Progress) -> None:
    progress("one")
    progress("two\nlines")


def test_a_free_lake_is_worked_on_here(tmp_path: Path) -> None:
    done: list[Backfill | Maintenance] = []
    perform(Lake.at(tmp_path), BACKFILL, lambda request, _: done.append(request), print)
    assert done == [BACKFILL]
    assert left_over(Lake.at(tmp_path)) == []


@pytest.mark.parametrize("request_", [BACKFILL, Maintenance(erase=(("topic", "a=b"),), dry_run=True)])
def test_the_stream_does_it_and_what_it_reports_is_passed_on(tmp_path: Path, request_: Backfill | Maintenance) -> None:
    lake, reported = Lake.at(tmp_path), list[str]()
    with Stream(lake, talk) as stream:
        perform(lake, request_, nothing, reported.append)
    assert stream.got == [request_]
    assert reported[1:] == ["one", "two lines"]
    assert "works on this lake" in reported[0]
    assert left_over(lake) == []


def refuse(error: type[UserError]) -> Callable[[Backfill | Maintenance, Progress], None]:
    def do(request: Backfill | Maintenance, progress: Progress) -> None:
        raise error("these days have expired")

    return do


def test_what_is_refused_is_reported_to_who_asked_and_the_stream_goes_on(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    with (
        Stream(lake, refuse(RefusedError)) as stream,
        pytest.raises(RefusedError, match="these days have expired"),
    ):
        perform(lake, BACKFILL, nothing, print)
    assert stream.errors == []


def test_what_fails_is_reported_to_both(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    with Stream(lake, refuse(UserError)) as stream, pytest.raises(UserError, match="these days have expired"):
        perform(lake, BACKFILL, nothing, print)
    assert [str(error) for error in stream.errors] == ["these days have expired"]


def test_should_the_stream_end_first_we_do_it(tmp_path: Path) -> None:
    lake, done = Lake.at(tmp_path), list[Backfill | Maintenance]()
    with Stream(lake, None):
        perform(lake, BACKFILL, lambda request, _: done.append(request), print)
    assert done == [BACKFILL]
    assert left_over(lake) == []


def test_a_request_of_another_version_is_answered(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    folder = tmp_path / "_requests"
    open_for_requests(lake)
    asked = folder / "1-new.json"
    asked.write_text('{"kind": "teleport"}')
    asked.chmod(0o600)
    assert is_asked(lake)
    serve(lake, nothing)
    assert "another version" in (folder / "1-new.done").read_text()
    assert not is_asked(lake)
