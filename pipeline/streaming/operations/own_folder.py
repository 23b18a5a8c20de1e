"""Files of a folder that may be believed: those that this user made, where no other user may write.

Whoever may make folders beside it could have made it first, or put links into it. So it is judged as it was opened, its
files are named relative to that, and no link is followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UserError

_PRIVATE = 0o600
_MADE_AS = 0o755
"""Less the umask: whatever that is, no other user may write there."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_SAFELY = os.O_NOFOLLOW | os.O_CLOEXEC


class NotOwnError(UserError):
    """Raised when a folder may be somebody else's; the message explains what to do."""


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """The files of an open folder.

    Attributes:
        folder: its file descriptor.
    """

    folder: int

    def names(self) -> list[str]:
        """Of all that is there, in order."""
        return sorted(os.listdir(self.folder))  # noqa: PTH208 - pathlib knows no open folders

    def fault(self, name: str) -> str | None:
        """Why a file is not to be believed: a sentence without a subject; None: it is this user's.

        Raises:
            FileNotFoundError: there is none.
        """
        return _fault(os.stat(name, dir_fd=self.folder, follow_symlinks=False))

    def holds(self, name: str) -> bool:
        """Whether there is such a file, of this user."""
        try:
            return self.fault(name) is None
        except FileNotFoundError:
            return False

    def changed_s(self, name: str) -> float:
        """When a file was changed last: seconds since the epoch. Of a link: when that was made."""
        return os.stat(name, dir_fd=self.folder, follow_symlinks=False).st_mtime

    def read(self, name: str) -> bytes | None:
        """The content of a file; None: there is none, or not one of this user."""
        if not self.holds(name):
            return None
        try:
            with os.fdopen(self._open(name, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotOwnError):  # it has changed since
            return None

    def write(self, name: str, text: str) -> None:
        """Write a file at once: no half of it is ever seen.

        Raises:
            OSError: it cannot be written.
        """
        part = f".{name}.part"
        self.remove(part)  # of a process that was killed
        with os.fdopen(self._open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, name, src_dir_fd=self.folder, dst_dir_fd=self.folder)

    def append(self, name: str, text: str) -> None:
        """Add to a file, which is made if there is none.

        Raises:
            OSError: it cannot be written, or a link is there.
            NotOwnError: what is there is not this user's.
        """
        adding = os.O_WRONLY | os.O_APPEND
        try:
            file = self._open(name, adding | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            file = self._open(name, adding | os.O_NONBLOCK)
        with os.fdopen(file, "a", encoding="utf-8") as opened:
            opened.write(text)

    def remove(self, *names: str) -> None:
        """Remove files; what does not exist is no error."""
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self.folder)

    def _open(self, name: str, flags: int) -> int:
        file = os.open(name, flags | _SAFELY, _PRIVATE, dir_fd=self.folder)
        if (fault := _fault(os.fstat(file))) is not None:
            os.close(file)
            raise NotOwnError(f"{name} {fault}")
        return file


@contextmanager
def own_folder(path: Path) -> Iterator[OwnFiles]:
    """Open a folder of this user.

    Args:
        path: of the folder; a link is refused.

    Raises:
        NotOwnError: it is a link, belongs to another user, or others may write to it.
        OSError: there is none, or it cannot be opened.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _SAFELY)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise NotOwnError(f"{path} is a link, or no folder: take it away, it is recreated") from error
        if isinstance(error, PermissionError):
            raise NotOwnError(f"{path} cannot be opened ({error.strerror}): run as its user") from error
        raise
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid():
            raise NotOwnError(
                f"{path} belongs to user {found.st_uid}, and this is user {os.geteuid()}: run as its user, or take the "
                "folder away"
            )
        if found.st_mode & _OTHERS_WRITE:
            raise NotOwnError(
                f"others may write to {path} (mode {stat.S_IMODE(found.st_mode):o}), and so ask for work on the lake "
                f"that deletes rows: type chmod go-w {path}"
            )
        yield OwnFiles(folder)
    finally:
        os.close(folder)


def make_own_folder(path: Path) -> None:
    """Make a folder in which this user alone may write, unless there is such a one.

    Raises:
        NotOwnError: there is another one.
        OSError: it cannot be made, or opened.
    """
    with suppress(FileExistsError):
        path.mkdir(mode=_MADE_AS)
    with own_folder(path):
        pass


def _fault(found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "is a link, or no file"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}, and this is user {os.geteuid()}"
    if found.st_nlink > 1:
        return "has a second name elsewhere (a hard link)"
    return "may be written to by others" if found.st_mode & _OTHERS_WRITE else None
