"""A lake takes the place of another as a whole, whatever comes between, and what hinders it is told in a sentence."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.embedded import lake as lake_module
from pipeline.embedded.lake import write_lake
from pipeline.errors import UserError
from pipeline.tables import WRITTEN_BY_DIAGNOSE
from tests.paths import CAPTURES, ROOT

HEALTHY = CAPTURES / "healthy.pcap"


@pytest.fixture
def empty_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are written at once: a lake is its marker alone."""
    monkeypatch.setattr(lake_module, "_write", lambda *_: None)


def a_lake(root: Path, content: str) -> Path:
    root.mkdir()
    (root / WRITTEN_BY_DIAGNOSE).write_text(content)
    return root


@pytest.mark.slow
def test_a_lake_is_written_where_standard_error_is_closed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipeline.cli", "diagnose", str(HEALTHY), "--lake", str(tmp_path / "lake")]
    done = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *command], check=False, cwd=ROOT, stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert (tmp_path / "lake" / WRITTEN_BY_DIAGNOSE).exists()


@pytest.mark.usefixtures("empty_tables")
def test_a_lake_is_written_where_only_the_descriptor_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: int) -> int:
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr("pipeline.embedded.lake.os.dup", closed)
    write_lake(tmp_path / "lake", {})
    assert (tmp_path / "lake" / WRITTEN_BY_DIAGNOSE).exists()


@pytest.mark.slow
def test_a_name_that_delta_rs_panics_at_is_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "diagnose", str(HEALTHY), "--lake", str(tmp_path / "la[ke]")],
        check=False, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: cannot write the lake {tmp_path}/la[ke]: ")
    assert line.endswith("name a folder without signs like [ and ]")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("empty_tables")
@pytest.mark.parametrize("moved", [1, 2])
def test_whoever_is_ended_while_lakes_change_places_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    """After the old one was moved away, and after the new one was put there."""
    root = a_lake(tmp_path / "lake", "old")
    rename, count = Path.rename, 0

    def ended(place: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        there = rename(place, target)
        if count == moved:
            raise SystemExit(143)
        return there

    monkeypatch.setattr(Path, "rename", ended)
    with pytest.raises(SystemExit):
        write_lake(root, {})
    assert (root / WRITTEN_BY_DIAGNOSE).read_text() == ("old" if moved == 1 else "")
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


@pytest.mark.usefixtures("empty_tables")
def test_an_old_lake_that_cannot_be_put_back_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = a_lake(tmp_path / "lake", "old")
    rename = Path.rename

    def only_away(place: Path, target: Path) -> Path:
        if target == root:
            raise OSError(30, "Read-only file system")
        return rename(place, target)

    monkeypatch.setattr(Path, "rename", only_away)
    with pytest.raises(UserError, match="Read-only file system"):
        write_lake(root, {})
    (kept,) = tmp_path.glob(".lake.*/lake")
    assert (kept / WRITTEN_BY_DIAGNOSE).read_text() == "old"


@pytest.mark.usefixtures("empty_tables")
def test_a_lock_on_the_folder_around_it_hinders_nobody(tmp_path: Path) -> None:
    """Everybody who may read a folder can lock it, and many may read /tmp."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        write_lake(tmp_path / "lake", {})
    finally:
        os.close(descriptor)
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


@pytest.mark.usefixtures("empty_tables")
def test_nobody_waits_without_end_for_another_who_puts_a_lake_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_module, "_PATIENCE_S", 0.2)
    root = a_lake(tmp_path / "lake", "old")
    with lake_module._alone(root), pytest.raises(UserError, match="another process"):
        write_lake(root, {})
    assert (root / WRITTEN_BY_DIAGNOSE).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]
    write_lake(root, {})
    assert (root / WRITTEN_BY_DIAGNOSE).read_text() == ""


def test_a_file_of_somebody_else_is_not_followed_to_lock_it(tmp_path: Path) -> None:
    (tmp_path / ".lake.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), lake_module._alone(tmp_path / "lake"):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.usefixtures("empty_tables")
def test_what_a_link_leads_to_is_replaced_and_not_the_link(tmp_path: Path) -> None:
    lake = a_lake(tmp_path / "lake", "old")
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to("lake")
    dangling.symlink_to("other")
    write_lake(link, {})
    write_lake(dangling, {})
    assert link.is_symlink()
    assert (lake / WRITTEN_BY_DIAGNOSE).read_text() == ""
    assert (tmp_path / "other" / WRITTEN_BY_DIAGNOSE).exists()


@pytest.mark.usefixtures("empty_tables")
def test_folders_that_cannot_be_replaced_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = a_lake(tmp_path / "lake", "old")
    (lake / "notes.txt").write_text("dear")
    with pytest.raises(UserError, match=r"would be replaced, with notes\.txt"):
        write_lake(lake, {})
    with pytest.raises(UserError, match="is a URL"):
        write_lake(Path("s3://bucket/lake"), {})
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place in (Path(), tmp_path / "here"):
        with pytest.raises(UserError, match="in which you are"):
            write_lake(place, {})
    assert (lake / "notes.txt").read_text() == "dear"


@pytest.mark.slow
def test_whoever_reads_the_first_lines_alone_has_the_lake(tmp_path: Path) -> None:
    command = f"{sys.executable} -m pipeline.cli diagnose {CAPTURES}/stuck_commit.pcap --lake {tmp_path}/lake | head -1"
    done = subprocess.run(["sh", "-c", command], check=True, cwd=ROOT, capture_output=True)
    assert done.stdout.startswith(b"Read ")
    assert (tmp_path / "lake" / WRITTEN_BY_DIAGNOSE).exists()
