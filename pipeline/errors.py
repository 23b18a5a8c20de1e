"""Errors that a user can mend: the command line prints their message and exits with code 2."""

from __future__ import annotations

from pipeline.folders import how_to_name_a_lake


class UserError(Exception):
    """Raised when input or use is wrong; the message states what is wrong and what to do."""


def no_lake(place: object) -> UserError:
    """The error for a folder or URL where no lake is."""
    return UserError(f"there is no lake at {place}: {how_to_name_a_lake(place)}")
