"""Errors that a user can fix: the command line prints their message and exits with code 2."""

from __future__ import annotations

from pipeline.lake.path_checks import how_to_name_a_lake, why_unreadable


class UserError(Exception):
    """Raised when input or use is wrong; the message states what is wrong and what to do."""


def no_lake(place: object) -> UserError:
    """The error for a folder or URL where no lake is, or none that this user may look at."""
    return UserError(why_unreadable(place) or f"there is no lake at {place}: {how_to_name_a_lake(place)}")
