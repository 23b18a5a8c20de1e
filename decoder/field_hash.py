"""Makes payload unreadable, yet comparable: a keyed hash takes the place of each field.

Of the same key, equal fields have equal hashes: one can follow a record from Produce to Fetch, or count the distinct
keys of a partition, and without the key values cannot be tried until one fits (HMAC, RFC 2104, with SHA-256).
"""

from __future__ import annotations

import hmac

MIN_KEY_BYTES = 16
"""A shorter key can be guessed, and with it every short or common value."""


class FieldHash:
    """Hashes fields by one key. Never shows the key.

    The hash of a field of ``n`` bytes has ``n`` bytes, so that sizes and offsets stay: the first ``n`` of its HMAC, or
    all 32 of it with zeros behind. Of a field of less than 8 bytes too little of the HMAC is left to distinguish
    all values: with 1 byte one of 256 other values looks the same, with 4 bytes one of 4 billion.

    >>> FieldHash(b"a key of this deployment")(b"alice") == FieldHash(b"a key of this deployment")(b"alice")
    True
    >>> len(FieldHash(b"a key of this deployment")(b"alice"))
    5

    Args:
        key: at least MIN_KEY_BYTES.

    Raises:
        ValueError: the key is too short.
    """

    __slots__ = ("_keyed",)

    def __init__(self, key: bytes) -> None:
        if len(key) < MIN_KEY_BYTES:
            raise ValueError(f"the key has {len(key)} bytes; at least {MIN_KEY_BYTES} are needed")
        self._keyed = hmac.new(key, digestmod="sha256")

    def __call__(self, field: bytes) -> bytes:
        """The hash of a field, as long as the field."""
        keyed = self._keyed.copy()
        keyed.update(field)
        return keyed.digest()[: len(field)].ljust(len(field), b"\0")
