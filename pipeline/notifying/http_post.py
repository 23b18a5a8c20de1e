"""Sends JSON to an HTTP address, some times again if that fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import orjson

from pipeline.errors import UserError

TRIES = 4
FIRST_PAUSE_S = 1.0
"""Seconds before the second try; they double with each."""
TIMEOUT_S = 10.0
_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which another try may help."""


class NotSentError(Exception):
    """A message was not taken; the text states why, without the address, which may hold a secret.

    Attributes:
        is_refused: whether it would be refused again.
    """

    def __init__(self, why: str, *, is_refused: bool) -> None:
        super().__init__(why)
        self.is_refused = is_refused


class _NoRedirects(HTTPRedirectHandler):
    """A receiver that sends elsewhere is not followed: a POST would become a GET, and the message go to a stranger."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = build_opener(_NoRedirects())


def check_url(url: str) -> str:
    """The address, if messages can be sent there.

    Raises:
        UserError: they cannot.
    """
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_good = False
    if not is_good:
        raise UserError("--to takes the address of a receiver, as https://hooks.example.org/services/…")
    return url


def receiver(url: str) -> str:
    """The address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"


def post(url: str, message: object, pause: Callable[[float], None] = time.sleep) -> None:
    """Send a message.

    Args:
        url: http or https.
        message: JSON.
        pause: waits for some seconds.

    Raises:
        NotSentError: it was not taken after all tries, or refused for good.
    """
    body = orjson.dumps(message)
    why, is_refused = "", False
    for number in range(TRIES):
        if number:
            pause(FIRST_PAUSE_S * 2 ** (number - 1))
        request = Request(url, body, {"Content-Type": "application/json", "User-Agent": "wirelake"})  # noqa: S310
        try:
            with _OPENER.open(request, timeout=TIMEOUT_S):
                return
        except HTTPError as error:
            error.close()
            why = f"it answers {error.code}"
            is_refused = error.code not in _PASSING
            if is_refused:
                break
        except (OSError, HTTPException) as error:
            is_refused, reason = False, getattr(error, "reason", error)
            why = f"it cannot be reached: {getattr(reason, 'strerror', None) or reason}"
    raise NotSentError(why, is_refused=is_refused)
