"""What of the payload may land, and the key by which it is hashed."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path

from decoder.field_hash import MIN_KEY_BYTES, FieldHash
from decoder.model import PayloadPolicy
from pipeline.config.settings import Settings
from pipeline.errors import UserError

KEY_VARIABLE = "WIRELAKE_PAYLOAD_KEY"

_HOW_TO_MAKE_ONE = "make one with `openssl rand -hex 32 > payload.key` and keep it: another key gives other hashes"


class Payload(str, Enum):
    """What of record keys, values and headers may land; see decoder.model.PayloadPolicy."""

    lengths = "lengths"
    full = "full"
    hash = "hash"
    none = "none"


def chosen_payload(settings: Settings) -> tuple[PayloadPolicy, FieldHash | None]:
    """The policy in force, and what ``hash`` hashes with.

    Raises:
        UserError: the policy is ``hash`` and there is no key, or it cannot be used.
    """
    policy = settings.payload_policy
    return policy, _field_hash(settings) if policy == "hash" else None


def _field_hash(settings: Settings) -> FieldHash:
    key, where = _key(settings)
    try:
        return FieldHash(key)
    except ValueError as error:
        raise UserError(f"the payload key in {where} cannot be used: {error}; {_HOW_TO_MAKE_ONE}") from error


def _key(settings: Settings) -> tuple[bytes, str]:
    """The key, and where it comes from."""
    if settings.payload_key_file is not None:
        path = Path(settings.payload_key_file)
        try:
            return path.read_bytes().strip(), str(path)
        except OSError as error:
            raise UserError(f"the payload key file {_shown(path)} cannot be read: {error.strerror}") from None
    if settings.payload_key is not None:
        return settings.payload_key.get_secret_value().strip().encode(), _key_place()
    raise UserError(
        f"--payload hash needs a key of at least {MIN_KEY_BYTES} bytes, in a file (--payload-key-file FILE, or "
        f"payload_key_file in the settings) or in the environment ({KEY_VARIABLE}); {_HOW_TO_MAKE_ONE}"
    )


def _key_place() -> str:
    is_set = any(name.upper() == KEY_VARIABLE for name in os.environ)  # as settings read it: in any case
    return KEY_VARIABLE if is_set else "payload_key of the settings file"


def _shown(path: Path) -> str:
    """A path for an error: what looks like none may be the key itself, in the place of its file."""
    return str(path) if path.is_absolute() or path.suffix else "(a name is wanted here, not the key itself)"
