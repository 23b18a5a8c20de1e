"""Compiled code is loaded only from where nobody else can have put it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from decoder.kernel.cache import is_trusted, writable_folder

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "above" / "kernel"
    made.mkdir(parents=True)
    made.parent.chmod(0o755)
    made.chmod(0o700)
    return made


def test_a_folder_of_our_own_is_trusted(folder: Path) -> None:
    assert is_trusted(folder)
    folder.chmod(0o755)  # others may read it: it is machine code of public sources
    assert is_trusted(folder)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_not_where_others_may_write(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert not is_trusted(folder)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o2770])
def test_not_below_a_folder_in_which_others_may_rename(mode: int, folder: Path) -> None:
    folder.parent.chmod(mode)
    assert not is_trusted(folder)
    folder.parent.chmod(mode | stat.S_ISVTX)  # as /tmp: what is ours stays ours there
    assert is_trusted(folder)


def test_what_is_made_is_trusted_whatever_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache" / "of wirelake"))
    umask = os.umask(0o002)  # as of users who have a group of their own
    try:
        place = writable_folder.__wrapped__("decoder.kafka.kernel")
    finally:
        os.umask(umask)
    assert place.parent == tmp_path / "cache" / "of wirelake"
    assert is_trusted(place)


@is_root
@pytest.mark.parametrize("which", ["folder", "parent"])
def test_not_of_somebody_else(folder: Path, which: str) -> None:
    os.chown(folder if which == "folder" else folder.parent, 12_345, 12_345)
    assert not is_trusted(folder)


@is_root
def test_a_link_is_what_it_leads_to(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert is_trusted(link)
    os.chown(folder, 12_345, 12_345)
    assert not is_trusted(link)


def test_not_what_is_no_folder(folder: Path) -> None:
    file = folder / "file"
    file.touch()
    assert not is_trusted(file)
    assert not is_trusted(folder / "nowhere")


ROOTS = """
import os, stat
from decoder.kernel.cache import _roots
for root in _roots():
    there = root.exists()
    print(root, oct(stat.S_IMODE(root.stat().st_mode)) if there else None, sep="|")
"""


def test_without_a_home_nothing_is_taken_from_a_shared_folder(tmp_path: Path) -> None:
    """Whoever made the folder of the name that was used there before ran code as the agent."""
    planted = tmp_path / f"wirelake-cache-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    given = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "CACHE_DIRECTORY")}
    done = subprocess.run(
        [sys.executable, "-c", ROOTS],
        env={**given, "XDG_CACHE_HOME": "/dev/null/none", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    users, own = (line.split("|") for line in done.stdout.splitlines())
    assert users == ["/dev/null/none/wirelake", "None"]
    assert Path(own[0]).parent == tmp_path
    assert own[0] != str(planted)
    assert own[1] == oct(stat.S_IRWXU)
    assert "set NUMBA_CACHE_DIR" in done.stderr
    assert not Path(own[0]).exists()  # it ended with the process


def test_a_service_has_a_place_of_its_own(tmp_path: Path) -> None:
    given = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", ROOTS],
        env={**given, "CACHE_DIRECTORY": f"{tmp_path}:/other"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[0].startswith(f"{tmp_path}|")
