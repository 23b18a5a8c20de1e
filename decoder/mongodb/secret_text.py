"""Which texts are secrets, whatever their name: messages of SCRAM and PLAIN, addresses with a password, tokens.

Looked for only where values stay as they are (policy ``full``). A look takes little, however long or odd the text:
patterns are tried where a plain search has found something, within a window, and a text with more such places than
_MOST_PLACES counts as a secret.
"""

from __future__ import annotations

import base64
import binascii
import re

BEGINNINGS = frozenset(
    [b"n,", b"y,", b"p=", b"r=", b"c=", b"v=", b"bi", b"eS", b"cD", b"cj", b"Yz", b"dj"]
    + [b"AC", b"AD", b"AE", b"AF", b"AG", b"AH"]
    + [bytes([0, byte]) for byte in range(0x20, 0x7F)]
)
"""The first two bytes of messages of SCRAM, of their base64, and of PLAIN."""

INSIDE = (b",r=", b",s=", b".eyJ", b"mongodb", b"AWS4-HMAC")
"""One of them is in every other secret text."""

_LONGEST = 4096
"""Bytes of a message of SCRAM or PLAIN; and of what is looked at before and behind a place."""
_MOST_PLACES = 8
_BYTES_PER_UNIT = 128
_WHOLE = re.compile(
    rb"[ny],(?:a=[^,]*)?,n=[^,]*,r=.+"  # RFC 5802, section 7: client-first-message
    rb"|p=[^,]*,(?:a=[^,]*)?,n=[^,]*,r=.+"
    rb"|r=[^,]+,s=[^,]+,i=\d+.*"  # server-first-message
    rb"|c=[A-Za-z0-9+/]+=*,r=[^,]+(?:,p=.*)?"  # client-final-message
    rb"|v=[A-Za-z0-9+/]{20,}=*(?:,.*)?"  # server-final-message
    rb"|\0[\x20-\xff]+\0[\x20-\xff]+",  # RFC 4616: PLAIN without an authorization identity
    re.DOTALL,
)
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+=*")
_ADDRESS = re.compile(rb"mongodb(?:\+srv)?://[^:/?#\s@]*:[^/?#\s]*@")
_NONCE = re.compile(rb"[^,\s]{8}")
_SALT = re.compile(rb"[A-Za-z0-9+/]{8,}=*,i=\d")
_URL_SAFE = re.compile(rb"[A-Za-z0-9_-]*")
_CLAIMS = re.compile(rb"[A-Za-z0-9_-]+\.")


def may_be_secret(text: bytes) -> bool:
    """Whether a text deserves a closer look."""
    return text[:2] in BEGINNINGS or any(mark in text for mark in INSIDE)


def units_of(text: bytes) -> int:
    """The work that a closer look takes."""
    return 2 + len(text) // _BYTES_PER_UNIT


def is_secret_text(text: bytes) -> bool:
    """Whether a text, or binary data, is or contains a secret."""
    if len(text) <= _LONGEST and text[:2] in BEGINNINGS and (_is_message(text) or _is_message(_from_base64(text))):
        return True
    return _has_address(text) or b"AWS4-HMAC" in text or _has_message(text) or _has_token(text)


def _is_message(text: bytes) -> bool:
    return _WHOLE.fullmatch(text) is not None


def _from_base64(text: bytes) -> bytes:
    if _BASE64.fullmatch(text) is None:
        return b""
    try:
        return base64.b64decode(text.rstrip(b"=") + b"==", altchars=b"-_" if b"-" in text or b"_" in text else None)
    except binascii.Error:
        return b""


def _has_address(text: bytes) -> bool:
    return b"mongodb" in text and _ADDRESS.search(text) is not None


def _has_message(text: bytes) -> bool:
    """A message of SCRAM in a longer text, such as a line of a log."""
    nonces, salts = _places(text, b",r="), _places(text, b",s=")
    if nonces is None or salts is None:
        return True
    if any(_is_before_nonce(_before(text, at)) and _NONCE.match(text, at + 3) for at in nonces):
        return True
    return any(b"r=" in _before(text, at) and _SALT.match(text, at + 3, at + _LONGEST) for at in salts)


def _is_before_nonce(text: bytes) -> bool:
    part = text[text.rfind(b",") + 1 :]
    binding = part.rfind(b"c=")
    return part.startswith(b"n=") or (binding >= 0 and _BASE64.fullmatch(part, binding + 2) is not None)


def _has_token(text: bytes) -> bool:
    """A JSON web token: two objects in base64, and a signature."""
    places = _places(text, b".eyJ")
    if places is None:
        return True
    return any(_is_token_header(_before(text, at)) and _CLAIMS.match(text, at + 1, at + _LONGEST) for at in places)


def _is_token_header(text: bytes) -> bool:
    start = text.rfind(b"eyJ")
    return start >= 0 and _URL_SAFE.fullmatch(text, start) is not None


def _before(text: bytes, at: int) -> bytes:
    return text[max(0, at - _LONGEST) : at]


def _places(text: bytes, mark: bytes) -> list[int] | None:
    """Where a mark is; None if that is in too many places."""
    found: list[int] = []
    at = text.find(mark)
    while at >= 0:
        if len(found) == _MOST_PLACES:
            return None
        found.append(at)
        at = text.find(mark, at + 1)
    return found
