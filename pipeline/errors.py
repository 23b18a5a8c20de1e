"""Errors that a user can mend: the command line prints their message and exits with code 2."""

from __future__ import annotations


class UserError(Exception):
    """Raised when input or use is wrong; the message states what is wrong and what to do."""
