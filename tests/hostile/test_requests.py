"""A stream does only what its own user asks for, and writes nothing through what another has put in its way."""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path

import pytest

from pipeline.streaming.operations import requests
from pipeline.streaming.operations.own_folder import NotOwnError, own_folder
from pipeline.streaming.operations.requests import (
    Backfill,
    Maintenance,
    Progress,
    is_asked,
    open_for_requests,
    perform,
    serve,
)
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lock import local_lock

NOBODY = 65_534
ERASURE = json.dumps({"kind": "maintenance", "erase": [["topic", "orders"]]})
PRECIOUS = "not to be touched\n"
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_for_requests(Lake.at(tmp_path))
    requests._report.cache_clear()
    return tmp_path / "_requests"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_text(PRECIOUS, encoding="utf-8")
    return file


def put(folder: Path, text: str = ERASURE) -> Path:
    file = folder / "1-x.json"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    return file


def served(folder: Path) -> list[Backfill | Maintenance]:
    """What is done of that which is there, reporting a line."""
    done: list[Backfill | Maintenance] = []

    def do(request: Backfill | Maintenance, progress: Progress) -> None:
        done.append(request)
        progress("a line of the stream")

    serve(Lake.at(folder.parent), do)
    return done


def test_what_this_user_asks_is_done_and_answered_for_this_user_alone(folder: Path) -> None:
    umask = os.umask(0)
    try:
        file = put(folder)
        assert is_asked(Lake.at(folder.parent))
        assert [request.kind for request in served(folder)] == ["maintenance"]
    finally:
        os.umask(umask)
    answers = [file.with_suffix(suffix) for suffix in (".log", ".done")]
    assert [one.read_text(encoding="utf-8") for one in answers] == ["a line of the stream\n", '{"error": null}']
    assert [stat.S_IMODE(one.stat().st_mode) for one in answers] == [0o600, 0o600]
    assert not is_asked(Lake.at(folder.parent))


def test_the_place_is_nobody_elses_to_write_to_whatever_the_umask(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        open_for_requests(Lake.at(tmp_path))
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "_requests").stat().st_mode) & 0o022 == 0


def _linked_request(file: Path) -> None:
    file.rename(file.parents[1] / "request")
    file.symlink_to(file.parents[1] / "request")


FAULTS = {
    "of another user": (lambda file: os.chown(file, NOBODY, NOBODY), f"belongs to user {NOBODY}"),
    "link": (_linked_request, "is a link"),
    "hard link": (lambda file: os.link(file, file.parents[1] / "second"), "second name"),
    "writable by all": (lambda file: file.chmod(0o606), "written to by others"),
    "writable by the group": (lambda file: file.chmod(0o660), "written to by others"),
    "pipe": (lambda file: (file.unlink(), os.mkfifo(file, 0o600)), "no file"),
}


@pytest.mark.parametrize("which", [pytest.param("of another user", marks=is_root), *list(FAULTS)[1:]])
def test_a_request_that_may_be_anothers_is_reported_once_and_never_done(
    which: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    change, reason = FAULTS[which]
    change(put(folder))
    with caplog.at_level(logging.WARNING):
        assert not is_asked(Lake.at(folder.parent))
        assert served(folder) == []
        assert not is_asked(Lake.at(folder.parent))
    [line] = caplog.messages
    assert line.startswith(f"no request is taken from {folder / '1-x.json'}: it ")
    assert reason in line
    assert [path.name for path in folder.iterdir()] == ["1-x.json"]


def test_a_request_changed_into_anothers_after_the_look_is_not_read(folder: Path, victim: Path) -> None:
    with own_folder(folder) as files:
        (folder / "1-x.json").symlink_to(victim)
        with pytest.raises(OSError, match="symbolic links"):
            files._open("1-x.json", os.O_RDONLY)


def _by_a_link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


FOLDERS = {
    "writable by all": (lambda folder: folder.chmod(0o777), "others may write to"),
    "writable by all, sticky": (lambda folder: folder.chmod(0o1777), "others may write to"),
    "writable by the group": (lambda folder: folder.chmod(0o770), "others may write to"),
    "link": (_by_a_link, "is a link"),
    "of another user": (lambda folder: os.chown(folder, NOBODY, NOBODY), f"belongs to user {NOBODY}"),
}


@pytest.mark.parametrize("which", [*list(FOLDERS)[:-1], pytest.param("of another user", marks=is_root)])
def test_a_folder_that_others_may_write_to_is_refused_on_both_sides(
    which: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake.at(folder.parent)
    put(folder)
    change, reason = FOLDERS[which]
    change(folder)
    with pytest.raises(NotOwnError, match=reason):  # a stream does not start
        open_for_requests(lake)
    with local_lock(lake), pytest.raises(NotOwnError, match=reason):  # who asks is not left waiting
        perform(lake, Maintenance(), lambda *_: None, print)
    with caplog.at_level(logging.WARNING):  # it became so while the stream ran
        assert not is_asked(lake)
        assert served(folder) == []
    [line] = caplog.messages
    assert line.startswith("no request is taken: ")
    assert reason in line
    assert [path.name for path in folder.iterdir()] == ["1-x.json"]


def test_who_takes_nothing_from_there_does_not_mind_whose_it_is(folder: Path) -> None:
    folder.chmod(0o777)
    open_for_requests(Lake.at(folder.parent), is_served=False)


@pytest.mark.parametrize("name", ["1-x.log", ".1-x.done.part", "1-x.done"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_nothing_is_written_through_a_link_in_the_way(name: str, link: object, folder: Path, victim: Path) -> None:
    file = put(folder)
    assert callable(link)
    link(victim, folder / name)
    assert len(served(folder)) == 1, "the request is this user's"
    assert victim.read_text(encoding="utf-8") == PRECIOUS
    assert json.loads(file.with_suffix(".done").read_text(encoding="utf-8")) == {"error": None}
    assert not file.with_suffix(".done").is_symlink()


@is_root
def test_an_answer_of_another_user_is_none(folder: Path) -> None:
    file = put(folder)
    done = file.with_suffix(".done")
    done.write_text('{"error": null}', encoding="utf-8")
    os.chown(done, NOBODY, NOBODY)
    assert len(served(folder)) == 1
    assert done.stat().st_uid == os.geteuid()
