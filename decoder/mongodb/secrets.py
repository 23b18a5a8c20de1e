"""Which MongoDB messages hold secrets? Their values are stored under no payload policy."""

from __future__ import annotations

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

SECRET_FIELDS = frozenset(
    {b"speculativeAuthenticate", b"speculativeauthenticate", b"credentials", b"pwd", b"passwordDigest", b"password"}
)
"""Fields that hold credentials wherever a command or its reply has them: in the handshake (hello), in usersInfo's
reply, in commands that come under another name than the list knows."""

REPLY_SECRET_FIELDS = frozenset({b"payload", b"nonce"})
"""The same in a reply's own document: what saslStart, saslContinue and getnonce answer, should their request not have
been seen."""

SECRET_COLLECTIONS = frozenset({"system.users", "system.keys"})
"""Of any database: SCRAM keys of the users, and the cluster's signing keys."""


def is_sensitive_command(name: str) -> bool:
    """Whether a command's body and reply are credentials."""
    return name.lower() in SENSITIVE_COMMANDS


def is_secret_collection(name: str | None) -> bool:
    """Whether a collection, with or without its database in front, holds credentials."""
    return name is not None and (name in SECRET_COLLECTIONS or name.partition(".")[2] in SECRET_COLLECTIONS)
