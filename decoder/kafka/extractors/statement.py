"""What one exchange states of the state behind it: statements, and many that are alike as one object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from decoder.kafka.errors import error_name


@dataclass(frozen=True, slots=True)
class StateEvent:
    """One statement (a row of ``silver.state_events`` without the exchange's columns).

    Attributes:
        kind: ``join``: a member enters a generation; ``assignment``: it is given partitions of a topic, or none at all
            (then topic and partitions are None); ``heartbeat``; ``leave``; ``group``: another request in the group's
            name; ``txn_init``, ``txn_add_partition``, ``txn_add_group``, ``txn_end``, ``txn_marker``;
            ``fetch_session``; ``software``.
        ordinal: position among the statements of the same exchange, from 0.
        generation: generation of the group or, in the consumer protocol (KIP-848), epoch of the member.
        group_protocol: ``classic`` or ``consumer`` (KIP-848).
        partition: of ``txn_add_partition`` and ``txn_marker``.
        partitions: of ``assignment``: those of the topic, each once.
        committed: of ``txn_end`` and ``txn_marker``: True commit, False abort.
        session_id, session_epoch: of ``fetch_session``; epoch 0 begins it, -1 ends it.
        error_code: 0 none; None if there was no answer, or it is not known.
    """

    kind: str
    ordinal: int = 0
    group_id: str | None = None
    member_id: str | None = None
    generation: int | None = None
    group_protocol: str | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    committed: bool | None = None
    session_id: int | None = None
    session_epoch: int | None = None
    software_name: str | None = None
    software_version: str | None = None
    error_code: int | None = None
    error_name: str | None = None
    partitions: tuple[int, ...] | None = None


Event = TypeVar("Event", bound=StateEvent)
Statement = TypeVar("Statement")
"""Instances of a dataclass."""


@dataclass(frozen=True, slots=True)
class Repeated(Generic[Statement]):
    """Statements that differ in a few columns, such as those of all partitions that a message lists.

    A partition takes 4 bytes on the wire, and an object of its own a hundred times that.

    Attributes:
        statement: has what all of them have in common.
        columns: by attribute the values of each statement, all equally many.
    """

    statement: Statement
    columns: dict[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __iter__(self) -> Iterator[Statement]:
        for values in zip(*self.columns.values(), strict=True):
            yield changed(self.statement, **dict(zip(self.columns, values, strict=True)))


Statements: TypeAlias = Event | Repeated[Event]
"""One or many."""


def changed(statement: Statement, **values: Any) -> Statement:
    """The same statement with other values. It takes less than half the time of dataclasses.replace()."""
    kind: Any = type(statement)
    made: Statement = object.__new__(kind)
    for name in kind.__dataclass_fields__:
        object.__setattr__(made, name, values[name] if name in values else getattr(statement, name))
    return made


def numbered(found: Iterable[Statements[Event]]) -> list[Statements[Event]]:
    """Statements of one exchange, which are the caller's own, with their ordinals and the names of their errors."""
    count = 0
    kept: list[Statements[Event]] = []
    for one in found:  # replace() would take most of the time
        if isinstance(one, Repeated):
            if not len(one):
                continue
            _name_error(one.statement)
            if "error_code" in one.columns:
                codes = one.columns["error_code"]
                one.columns["error_name"] = [None if code is None else error_name(code) for code in codes]
            one.columns["ordinal"] = range(count, count + len(one))
            count += len(one)
        else:
            _name_error(one)
            object.__setattr__(one, "ordinal", count)
            count += 1
        kept.append(one)
    return kept


def _name_error(statement: StateEvent) -> None:
    if statement.error_code is not None:
        object.__setattr__(statement, "error_name", error_name(statement.error_code))


def each(found: Iterable[Statements[Event]]) -> list[Event]:
    """A statement for each of those that stand for many."""
    return [one for some in found for one in (some if isinstance(some, Repeated) else (some,))]
