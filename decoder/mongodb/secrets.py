"""Which MongoDB messages hold secrets? Their values are stored under no payload policy."""

from __future__ import annotations

from collections.abc import Mapping

SENSITIVE_COMMANDS = frozenset(
    {
        "authenticate",
        "saslstart",
        "saslcontinue",
        "getnonce",
        "createuser",
        "updateuser",
        "copydbgetnonce",
        "copydbsaslstart",
        "copydb",
    }
)
"""In lower case. The list of the drivers' command logging and monitoring specification ("Security"): neither the
commands nor their replies are told."""

SECRET_FIELDS: Mapping[int, frozenset[bytes]] = {
    1: frozenset({b"speculativeAuthenticate", b"pwd"}),
    3: frozenset({b"credentials"}),
}
"""Fields of commands and their replies that hold credentials, by depth: of hello; of usersInfo's reply
(``users.0.credentials``)."""

REPLY_SECRET_FIELDS: Mapping[int, frozenset[bytes]] = {
    **SECRET_FIELDS,
    1: SECRET_FIELDS[1] | {b"payload", b"nonce"},
}
"""The same in replies, with what saslStart, saslContinue and getnonce answer: their request may not have been seen."""

SECRET_COLLECTIONS = frozenset({"system.users", "system.keys"})
"""Of any database: SCRAM keys of the users, and the cluster's signing keys."""


def is_sensitive_command(name: str) -> bool:
    """Whether a command's body and reply are credentials."""
    return name.lower() in SENSITIVE_COMMANDS


def is_secret_collection(name: str | None) -> bool:
    """Whether a collection, with or without its database in front, holds credentials."""
    return name is not None and (name in SECRET_COLLECTIONS or name.partition(".")[2] in SECRET_COLLECTIONS)
