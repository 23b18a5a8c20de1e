"""Tokens that a service asks for: made up, or given by a file or the environment."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from pipeline.errors import UserError

_SHORTEST, _LONGEST = 16, 1024
"""Characters of a token: fewer could be guessed, and more are another file."""
_EVERYBODY = 0o007


def new_token() -> str:
    """A token that cannot be guessed, fit for a URL."""
    return secrets.token_urlsafe(32)


def read_token(path: Path) -> str:
    """The token in a file of this user (or root) that not everybody on this machine can read.

    Raises:
        UserError: it cannot be read, or others own or read it.
    """
    try:
        with path.open(encoding="utf-8") as file:
            found = os.fstat(file.fileno())
            text = file.read(_LONGEST + 2)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UserError(f"cannot read the token file {path}: {reason}") from error
    if found.st_uid not in (os.geteuid(), 0):
        raise UserError(f"the token file {path} is owned by another user. Use a token file that you own")
    if stat.S_IMODE(found.st_mode) & _EVERYBODY:
        raise UserError(f"the token file {path} is open to everybody on this machine: chmod 600 {path}")
    return text.strip()


def checked_token(token: str, source: str) -> str:
    """The token itself.

    Args:
        token: as it was given.
        source: where it comes from, for the error.

    Raises:
        UserError: it is too short, too long, or no word.
    """
    if not _SHORTEST <= len(token) <= _LONGEST or not token.isprintable() or " " in token:
        raise UserError(
            f"the token in {source} must have {_SHORTEST} to {_LONGEST} characters without spaces, "
            "e.g. from: openssl rand -hex 32"
        )
    return token
