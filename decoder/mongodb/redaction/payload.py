"""What a payload policy leaves of a document: each value is overwritten where it is, by as many bytes."""

from __future__ import annotations

import string
import struct
from collections.abc import Iterator
from itertools import islice

from decoder.errors import DecodeError, ErrorCode
from decoder.field_hash import FieldHash
from decoder.model import PayloadPolicy
from decoder.mongodb.codec.documents import (
    ARRAY,
    BINARY,
    BOOLEAN,
    CODE,
    DATE,
    DB_POINTER,
    DECIMAL128,
    DOCUMENT,
    DOUBLE,
    INT32,
    INT64,
    MIN_DOCUMENT_BYTES,
    NULL,
    OBJECT_ID,
    OLD_BINARY,
    REGEX,
    SCOPED_CODE,
    STRING,
    SYMBOL,
    TIMESTAMP,
    Element,
    fields,
    walk,
)
from decoder.mongodb.codec.rules import COMMANDS_ON_A_COLLECTION, EACH, NAME, NUMBER, Rule, Rules, Stated
from decoder.mongodb.secret_text import is_secret_text, may_be_secret, units_of
from decoder.mongodb.secrets import NAMES, SHARED, TOP_OF_REPLY, Name, is_beside
from decoder.plain_text import is_text
from decoder.work import Budget

_INT32 = struct.Struct("<i")
_MOST_SIBLINGS = 1000
"""Keys of a document that are looked at to find what one of them means. A message of SASL has some five."""
_TEXT = (string.ascii_letters + string.digits + "-_").encode()
_AS_TEXT = bytes(_TEXT[byte & 63] for byte in range(256))
"""A hash as text: 6 bits a character."""

_CONTAINERS = (DOCUMENT, ARRAY)
_TEXTS = (STRING, CODE, SYMBOL)
_READ_AS_TEXT = (STRING, BINARY, CODE, SYMBOL, SCOPED_CODE, REGEX)
"""What may hold a secret text."""
_WIDE = (DOUBLE, OBJECT_ID, DATE, INT32, TIMESTAMP, INT64)


class Masker:
    """Applies a policy to documents of one message, in place.

    ``lengths`` leaves keys and types, zeros for numbers, dates and ids, and asterisks for text; ``hash`` puts hashes in
    their place (booleans become false); ``none`` leaves of a document or array nothing but its size.

    Attributes:
        data: the message to change.
        has_changed: whether a policy changed anything.
        has_secrets: whether a credential was overwritten.
    """

    def __init__(
        self,
        data: bytearray,
        original: bytes,
        policy: PayloadPolicy,
        budget: Budget,
        field_hash: FieldHash | None = None,
    ) -> None:
        self.data = data
        self.has_changed = False
        self.has_secrets = False
        self._original = original
        self._budget = budget
        self._policy: PayloadPolicy = policy
        self._siblings: dict[int, tuple[tuple[int, int], frozenset[bytes]]] = {}
        """Keys of the documents looked at last, by depth."""
        self._hash = field_hash if policy == "hash" else None

    def document(
        self,
        start: int,
        end: int,
        rules: Rules,
        *,
        is_command: bool = False,
        is_reply: bool = False,
    ) -> None:
        """Overwrite what is payload or secret in a document.

        Args:
            start, end: the document.
            rules: what stays, whatever the policy.
            is_command: whether its first value may name a collection.
            is_reply: whether it may be the reply to a command with credentials.

        Raises:
            DecodeError: as decoder.mongodb.codec.documents.walk; some of it was overwritten then.
        """
        known: list[Rule | None] = [rules]
        places = {0: (start, end)}
        done_until = start
        for number, element in enumerate(walk(self._original, start, end, self._budget)):
            if element.start < done_until:
                continue
            del known[element.depth :]
            key = self._key(element)
            rule = _rule(known[-1], key)
            if is_command and number == 0:
                rule = NAME if key in COMMANDS_ON_A_COLLECTION else NUMBER
            name = NAMES[key]
            if name and self._is_secret(name, element, places[element.depth - 1], is_reply=is_reply):
                done_until = self._secret(name, element, places[element.depth - 1])
            elif element.kind in _CONTAINERS and (isinstance(rule, dict) or self._policy != "none"):
                known.append(rule)
                places[element.depth] = (element.start, element.end)
            elif self._policy == "full":
                if element.kind in _READ_AS_TEXT and self._has_secret_text(element):
                    done_until = self._secret(Name.SECRET, element, None)
                elif element.kind == SCOPED_CODE:
                    known.append(None)
                    places[element.depth] = (self._scope(element), element.end)
            elif element.kind == SCOPED_CODE and self._policy != "none":
                self._scoped_code(element)
                known.append(None)
                places[element.depth] = (self._scope(element), element.end)
            elif not self._stays(rule, element):
                self._payload(element)
                done_until = element.end

    def erase(self, start: int, end: int) -> None:
        """Leave nothing of whole documents but their size: one document is in the place of all."""
        self.has_changed = self.has_changed or end > start
        self._fill(start, end)

    def erase_secret(self, start: int, end: int) -> None:
        """The same with documents that are credentials."""
        self.has_secrets = self.has_secrets or end - start > MIN_DOCUMENT_BYTES
        self._fill(start, end)

    def erase_command(self, start: int, end: int, keep: frozenset[bytes]) -> None:
        """Overwrite all values of a document that is a credential, but the text of those to be kept."""
        self.has_secrets = True
        for element in walk(self._original, start, end, self._budget):
            key = self._key(element)
            if element.depth == 1 and not (key in keep and element.kind == STRING and self._is_meant(element)):
                self._erase_value(element)

    def erase_reply(self, start: int, end: int, rules: Rules) -> None:
        """Overwrite all values of a reply that is a credential, but those that state how the command ended."""
        masker = Masker(self.data, self._original, "none", self._budget)
        try:
            masker.document(start, end, rules)
        finally:
            self.has_secrets = True

    def _key(self, element: Element) -> bytes:
        """The name of an element. One that is no text is none: it may be a value that a wrong length made a name."""
        key = self._original[element.key_start : element.key_end]
        if not key.isascii() and not is_text(key):
            raise DecodeError(ErrorCode.INVALID_UTF8, element.key_start, "a name that is not UTF-8")
        return key

    def _is_secret(self, name: Name, element: Element, within: tuple[int, int], *, is_reply: bool) -> bool:
        """Whether a value is one by its name and by what is beside it in its document (at ``within``)."""
        if is_reply and element.depth == 1 and name in TOP_OF_REPLY:
            return True
        if name not in SHARED:
            return name is not Name.NONCE
        return element.kind in (STRING, BINARY) and self._is_beside(name, element.depth, within)

    def _is_beside(self, name: Name, depth: int, within: tuple[int, int]) -> bool:
        seen_at, keys = self._siblings.get(depth, ((0, 0), frozenset()))
        if seen_at != within:
            found = islice(fields(self._original, *within), _MOST_SIBLINGS)
            keys = frozenset(self._original[one.key_start : one.key_end] for one in found)
            self._siblings[depth] = within, keys
        return len(keys) == _MOST_SIBLINGS or is_beside(name, keys)

    def _secret(self, name: Name, element: Element, within: tuple[int, int] | None) -> int:
        """Overwrite a secret; returns where it ends. A sensitive command is the whole document that its name is in."""
        self.has_secrets = True
        if name is Name.COMMAND and within is not None:
            self._fill(*within)
            return within[1]
        self._erase_value(element)
        return element.end

    def _stays(self, rule: Rule | None, element: Element) -> bool:
        if isinstance(rule, Stated):
            return rule.is_one(element.kind, self._original[element.start : element.end])
        return isinstance(rule, frozenset) and element.kind in rule and self._is_meant(element)

    def _is_meant(self, element: Element) -> bool:
        """Whether a value that may stay as a name can be one: a wrong length gives it the values behind it."""
        return element.kind != STRING or is_text(self._original[element.start + 4 : element.end - 1])

    def _has_secret_text(self, element: Element) -> bool:
        start, end = element.start + 4, element.end - 1
        if element.kind == BINARY:
            start, end = start + 1 + 4 * (self._original[start] == OLD_BINARY), element.end
        elif element.kind == SCOPED_CODE:
            start, end = start + 4, self._scope(element) - 1
        elif element.kind == REGEX:
            start, end = element.start, self._original.index(0, element.start)
        text = self._original[start:end]
        if not may_be_secret(text):
            return False
        self._budget.take(start, units_of(text))
        return is_secret_text(text)

    def _payload(self, element: Element) -> None:
        before = self.data[element.start : element.end]
        if self._policy == "none" and element.kind in (*_CONTAINERS, SCOPED_CODE):
            self._erase_value(element)
        else:
            self._neutralise(element)
        self.has_changed = self.has_changed or before != self.data[element.start : element.end]

    def _erase_value(self, element: Element) -> None:
        """Nothing but its size and type."""
        if element.kind in _CONTAINERS:
            self._fill(element.start, element.end)
        elif element.kind == SCOPED_CODE:
            scope = self._scope(element)
            self._put_text(element.start + 8, scope - 1, hashed=False)
            self._fill(scope, element.end)
        else:
            self._neutralise(element, hashed=False)

    def _scope(self, element: Element) -> int:
        return element.start + 8 + int(_INT32.unpack_from(self._original, element.start + 4)[0])

    def _scoped_code(self, element: Element) -> None:
        """Its text; the values of its scope follow as elements of their own."""
        if self._policy != "full":
            self._put_text(element.start + 8, self._scope(element) - 1)
            self.has_changed = True

    def _neutralise(self, element: Element, *, hashed: bool = True) -> None:
        kind, start, end = element.kind, element.start, element.end
        if kind in _TEXTS:
            self._put_text(start + 4, end - 1, hashed=hashed)
        elif kind == BINARY:
            self._put_bytes(start + 5 + 4 * (self._original[start + 4] == OLD_BINARY), end, hashed=hashed)
        elif kind == REGEX:
            middle = self._original.index(0, start)
            self._put_text(start, middle, hashed=hashed)
            self.data[middle + 1 : end - 1] = b"x" * (end - middle - 2)
        elif kind == DB_POINTER:
            self._put_text(start + 4, end - 13, hashed=hashed)
            self._put_bytes(end - 12, end, hashed=hashed)
        elif kind == DECIMAL128:
            self.data[start:end] = bytes(end - start)
            self._put_bytes(start, start + 8, hashed=hashed)
        elif kind in _WIDE:
            self._put_bytes(start, end, hashed=hashed)
            if kind == DOUBLE:
                self.data[end - 1] &= 0xBF  # so that no hash is an infinity, or no number
        elif kind == BOOLEAN:
            self.data[start] = 0

    def _put_text(self, start: int, end: int, *, hashed: bool = True) -> None:
        if hashed and self._hash is not None:
            self.data[start:end] = self._hash(self._original[start:end]).translate(_AS_TEXT)
        else:
            self.data[start:end] = b"*" * (end - start)

    def _put_bytes(self, start: int, end: int, *, hashed: bool = True) -> None:
        if hashed and self._hash is not None:
            self.data[start:end] = self._hash(self._original[start:end])
        else:
            self.data[start:end] = bytes(end - start)

    def _fill(self, start: int, end: int) -> None:
        self.data[start:end] = b"".join(_filler(end - start))


def _rule(within: Rule | None, key: bytes) -> Rule | None:
    if not isinstance(within, dict):
        return None
    return within.get(key, within.get(EACH))


def _filler(size: int) -> Iterator[bytes]:
    """A document of this size (5, or 7 and more): empty, or with one value without a name."""
    yield _INT32.pack(size)
    inner = size - MIN_DOCUMENT_BYTES
    if inner >= 7:
        yield bytes([BINARY, 0]) + _INT32.pack(inner - 7) + bytes(inner - 6)
    elif inner:
        yield bytes([NULL]) + b"x" * (inner - 2) + b"\0"
    yield b"\0"
