"""The api that a user means, by its key or by its name, in whatever case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from decoder.kafka.schema.table import api_names
from decoder.mongodb.codec.rules import COMMANDS_ON_A_COLLECTION
from decoder.mongodb.codec.wire import OPCODES
from pipeline.commands.messages.messages import Decoded
from pipeline.errors import UserError

_KEY = re.compile(r"-?[0-9]{1,5}")
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$-]*")
_SIMILAR = 0.7


def kafka_api_key(text: str) -> int | None:
    """The key of a Kafka api; None if there is no api of this name."""
    if _KEY.fullmatch(text):
        return int(text)
    return next((key for key, name in api_names().items() if name.casefold() == text.casefold()), None)


class WantedApi:
    """One api of Kafka, one command or opcode of MongoDB.

    A number that is a Kafka api means that, else a MongoDB opcode. Any name may be a command of MongoDB's.

    Attributes:
        found: messages of it so far.

    Raises:
        UserError: ``text`` can be neither a key nor a name.
    """

    def __init__(self, text: str) -> None:
        self._key = int(text) if _KEY.fullmatch(text) else None
        if self._key is None and not _NAME.fullmatch(text):
            raise UserError(f"--api {text!r}: give a name or a key, e.g. OffsetCommit or 8")
        self._text = text
        self.found = 0

    def accepts(self, item: Decoded) -> bool:
        """Whether a message is of this api."""
        key, name = item.message.api_key, item.message.api_name
        if self._key is None:
            is_it = name is not None and name.casefold() == self._text.casefold()
        else:
            is_it = key == self._key and (item.frame.protocol == "kafka" or key not in api_names())
        self.found += is_it
        return is_it

    def check(self) -> None:
        """Raise UserError if no message is of this api, and nothing that is known has its name."""
        known = {name.casefold(): name for name in _known_names()}
        if self.found or self._key is not None or self._text.casefold() in known:
            return
        similar = get_close_matches(self._text.casefold(), known, 1, _SIMILAR)
        hint = f"did you mean {known[similar[0]]}?" if similar else "give a name or a key as `wirelake decode` shows it"
        raise UserError(f"no message of --api {self._text} found, and no Kafka api is called so: {hint}")


def _known_names() -> Iterator[str]:
    yield from api_names().values()
    yield from OPCODES.values()
    yield from (name.decode() for name in COMMANDS_ON_A_COLLECTION)
