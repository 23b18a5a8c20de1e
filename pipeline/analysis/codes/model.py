"""The row of the table of error codes, and how a table is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

Kind = Literal["health", "transient", "refusal", "configuration", "loss"]
Actor = Literal["client", "application", "operator", "no one"]
Api = int | str
"""An api key of Kafka, or the name of a command of MongoDB."""

HEALTH: Final = "health"
TRANSIENT: Final = "transient"
REFUSAL: Final = "refusal"
CONFIGURATION: Final = "configuration"
LOSS: Final = "loss"
CLIENT: Final = "client"
APPLICATION: Final = "application"
OPERATOR: Final = "operator"
NO_ONE: Final = "no one"

KINDS: Mapping[Kind, str] = {
    "health": "part of normal operation",
    "transient": "passes; the client retries or asks another server",
    "refusal": "the same request is refused again until somebody changes it",
    "configuration": "a setting of the client, the topic or the server must change",
    "loss": "records or events are gone, or were not written",
}
"""Every kind with its meaning."""
ACTORS: Mapping[Actor, str] = {
    "client": "the client library handles it, or has a fault",
    "application": "whoever writes or deploys the application",
    "operator": "whoever runs the servers",
    "no one": "no one has to act",
}
"""Everybody who can act."""

NOTHING: Final = "nothing has to be done."
_NUMBERED = re.compile(r"(?:error |UNKNOWN\(|Location)(-?[0-9]{1,10})\)?")
"""``error 7``, ``UNKNOWN(7)``, ``Location7``."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """One error code, as the answer of one api or of any.

    Attributes:
        code: its number.
        name: its name as the server spells it.
        kind: see KINDS.
        actor: who can act; see ACTORS.
        meaning: one sentence.
        now: what to do at once, with ``{group}``, ``{topic}``, ``{transactional_id}`` and ``{client}`` as placeholders.
        fix: what prevents it, likewise.
        area: what the code is about; rules select codes by it.
        is_retried: whether clients send the same request again by themselves.
        api: the api that the row is about; None: any that has no row of its own.
        is_known: False: the code is newer than the table.
    """

    code: int
    name: str
    kind: Kind
    actor: Actor
    meaning: str
    now: str = NOTHING
    fix: str = NOTHING
    area: str = ""
    is_retried: bool = False
    api: Api | None = None
    is_known: bool = True

    @property
    def advice(self) -> str:
        """What to do now and as a fix, with placeholders."""
        return f"Now: {self.now} Fix: {self.fix}"

    def filled(self, **names: str) -> CodeFacts:
        """The same with names in place of placeholders; a name that is not known is left in capitals."""
        return replace(self, now=_filled(self.now, names), fix=_filled(self.fix, names))


def _filled(text: str, names: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: names.get(found[1]) or found[1].upper(), text)


def at(apis: Iterable[Api], facts: CodeFacts) -> Iterator[CodeFacts]:
    """The same facts as the answer of each of some apis."""
    return (replace(facts, api=api) for api in apis)


class CodeTable:
    """The codes of one protocol.

    Args:
        rows: one for each code, and one for each code and api where the meaning differs.
        unknown: facts of a code that has no row.
        other_names: further names of codes.
    """

    def __init__(
        self, rows: Iterable[CodeFacts], unknown: CodeFacts, other_names: Mapping[str, int] | None = None
    ) -> None:
        self.rows = tuple(rows)
        self._by_place = {(row.code, row.api): row for row in self.rows}
        if len(self._by_place) != len(self.rows):
            raise ValueError("a code has two rows for one api")
        self._by_name = {row.name: row.code for row in self.rows} | dict(other_names or {})
        self._unknown = unknown

    def meaning(self, api: Api | None, code: int) -> CodeFacts:
        """The facts of a code as the answer of an api; of a code without a row what holds of any error."""
        found = self._by_place.get((code, api)) or self._by_place.get((code, None))
        return found or replace(self._unknown, code=code, name=f"UNKNOWN({code})", api=api)

    def unknown(self, name: str, api: Api | None = None) -> CodeFacts:
        """What holds of an error that the table does not have."""
        return replace(self._unknown, name=name, api=api)

    def code_of(self, name: str) -> int | None:
        """The number of a code by its name, or by a name that is made of its number; None if it is not known."""
        numbered = _NUMBERED.fullmatch(name)
        return int(numbered[1]) if numbered else self._by_name.get(name)

    def of_area(self, *areas: str, api: Api | None = None) -> tuple[int, ...]:
        """The codes that are about something as the answer of an api, or of any, ascending."""
        codes = sorted({row.code for row in self.rows})
        return tuple(code for code in codes if self.meaning(api, code).area in areas)

    def retried(self) -> tuple[int, ...]:
        """The codes after which clients send the same request again, ascending."""
        return tuple(sorted(row.code for row in self.rows if row.api is None and row.is_retried))
