"""Values of MongoDB messages that are secrets: known by their names, at any depth; no policy stores them.

Names are compared without regard to case, to ``_`` and to ``-``, and each part of a dotted path for itself
(``$set: {"credentials.SCRAM-SHA-256.salt": …}``).
"""

from __future__ import annotations

import enum
import re
import struct
from collections.abc import Iterable

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
commands nor their replies are logged."""

SECRET_NAMES = {
    "speculativeauthenticate": "the first message of SASL, in hello and in its reply",
    "pwd": "createUser and updateUser; users of MongoDB 2.4 and before",
    "passwd": "a password",
    "passphrase": "a password",
    "credentials": "what a user document and usersInfo hold: keys of SCRAM",
    "scredentials": "the same in an oplog entry, which puts an s before documents that were changed",
    "mongodbcr": "the credential of MongoDB 2.6 and before",
    "storedkey": "a key of SCRAM",
    "serverkey": "a key of SCRAM",
    "clientkey": "a key of SCRAM",
    "saltedpassword": "a key of SCRAM",
    "salt": "with it a password can be tried against a key",
    "clientproof": "a message of SCRAM",
    "serversignature": "a message of SCRAM",
    "securitytoken": "stands for a user: of a proxy that has authenticated it",
    "jwt": "stands for a user: MONGODB-OIDC",
    "idtoken": "stands for a user: OpenID Connect",
    "accesstoken": "stands for a user: OAuth",
    "refreshtoken": "stands for a user: OAuth",
    "sessiontoken": "stands for a user: MONGODB-AWS",
    "secretaccesskey": "MONGODB-AWS; a master key's service",
    "clientsecret": "a master key's service: Azure",
    "privatekey": "a master key's service: Google",
    "kmsproviders": "how a client reaches its master keys, and a local one itself",
    "masterkey": "of field level encryption",
    "keymaterial": "of field level encryption: the collection of data keys, which has any name",
}
"""Names, and why their values are secrets; without ``_`` and ``-``. Names that end with ``password`` are, too
(``certificateKeyFilePassword``), and those that contain ``SCRAM-SHA-``.

Not on the list, for they are in honest messages and hold nothing that helps: ``iterationCount`` (a server gives it to
whoever asks), ``mechanism``, ``saslSupportedMechs`` (a user's name), and ``$clusterTime.signature``, which signs a time
and is in each message of a replica set.
"""

_ENDING, _PART = b"password", b"scramsha"

_COMMAND_GUARDS = (b"sasl", b"teuser\0", b"authenticate\0", b"nonce\0", b"copydb")
"""One of them is in the name of each sensitive command: found quicker than all names."""
_COMMAND_KEY = re.compile(rb"[\x01-\x13\x7f\xff](?:" + "|".join(sorted(SENSITIVE_COMMANDS)).encode() + rb")\0")
_SPECULATIVE_KEY = b"\3speculativeauthenticate\0"
_COLLECTION = re.compile(rb"system\.(?:users|keys|new_users|backup_users)\0")
_COLLECTION_GUARD = b"system."
_BEFORE_A_NAME = b"\0." + bytes(range(0x01, 0x14)) + b"\x7f\xff"
"""A length's last byte, a database's dot, or the type of the value whose key it is."""
_INT32 = struct.Struct("<i")
_MOST_REMEMBERED = 4096
_LONGEST_REMEMBERED = 64
"""Bytes of a key, so that strangers fill no memory with them."""
_LONGEST_INDEX = 3
"""Digits of an index of an array that is remembered."""


class Name(enum.IntEnum):
    """What the name of a value indicates."""

    OPEN = 0
    SECRET = 1
    COMMAND = 2
    """The document that holds it is a sensitive command."""
    PAYLOAD = 3
    """A secret beside SIBLINGS, and at the top of a reply: saslStart and saslContinue answer so."""
    KEY = 4
    """A secret beside SIBLINGS."""
    NONCE = 5
    """A secret at the top of a reply: getnonce answers so."""


SHARED = (Name.PAYLOAD, Name.KEY)
TOP_OF_REPLY = (Name.PAYLOAD, Name.NONCE)
"""Whatever was asked: the request may not have been seen."""


SIBLINGS = {
    Name.PAYLOAD: frozenset({b"conversationid", b"mechanism", b"saslstart", b"saslcontinue", b"autoauthorize"}),
    Name.KEY: frozenset({b"purpose", b"nonce"}),
}
"""Names that others use as well. Their values are secrets beside one of these in the same document: messages of SASL;
the cluster's signing keys (``system.keys``), and the answer of MONGODB-CR."""
_OTHERS = {b"payload": Name.PAYLOAD, b"key": Name.KEY, b"nonce": Name.NONCE}


class _Judged(dict[bytes, Name]):
    """Keys of documents that were judged: the same few come again and again."""

    def __missing__(self, key: bytes) -> Name:
        name = _judge(key)
        if len(key) <= _LONGEST_REMEMBERED and not (len(key) > _LONGEST_INDEX and key.isdigit()):
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[key] = name
        return name


NAMES = _Judged()
"""What any key of a document indicates of its value."""


def _judge(key: bytes) -> Name:
    if key.isdigit():
        return Name.OPEN
    if key.lower() in _COMMANDS:
        return Name.COMMAND
    name = _plain(key)
    if _PART in name or any(map(_is_secret, name.split(b"."))):
        return Name.SECRET
    return _OTHERS.get(name, Name.OPEN)


def is_beside(name: Name, others: Iterable[bytes]) -> bool:
    """Whether one of SHARED is a secret's in a document with these keys."""
    marks = SIBLINGS[name]
    return any(_plain(other) in marks for other in others)


def _plain(key: bytes) -> bytes:
    return key.lower().translate(None, b"_-")


def _is_secret(part: bytes) -> bool:
    return part.endswith(_ENDING) or part in _SECRET_NAMES


_COMMANDS = frozenset(name.encode() for name in SENSITIVE_COMMANDS)
_SECRET_NAMES = frozenset(name.encode() for name in SECRET_NAMES)


def is_sensitive_command(name: str) -> bool:
    """Whether a command's body and reply are credentials."""
    return name.lower() in SENSITIVE_COMMANDS


def has_sensitive_command(data: bytes, start: int, end: int) -> bool:
    """Whether a command's document has a sensitive command's name as a key, however deep, but in a hello's.

    By the bytes alone: what looks like such a key inside a value counts, too.
    """
    document = data[start:end].lower()
    if not any(guard in document for guard in _COMMAND_GUARDS):
        return False
    speculative = document.find(_SPECULATIVE_KEY)
    hello = range(0)
    if speculative >= 0 and len(document) >= speculative + len(_SPECULATIVE_KEY) + 4:
        inner = speculative + len(_SPECULATIVE_KEY)
        hello = range(inner, inner + _INT32.unpack_from(data, start + inner)[0])
    return any(found.start() not in hello for found in _COMMAND_KEY.finditer(document))


def names_secret_collection(data: bytes) -> bool:
    """Whether a message names a collection that holds credentials, of any database, wherever the name is.

    ``system.users`` has SCRAM keys of the users, ``system.keys`` the cluster's signing keys. The name is a whole text
    in the message (a value, a key, or a field of a legacy opcode), with its database in front or without.
    """
    if _COLLECTION_GUARD not in data:
        return False
    return any(data[found.start() - 1] in _BEFORE_A_NAME for found in _COLLECTION.finditer(data))
