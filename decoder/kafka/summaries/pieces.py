"""What words are made of: names of topics, lists that stay short, errors, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from decoder.fields import Json, integer, items
from decoder.kafka.errors import NO_ERROR, error_name
from decoder.model import Message

MOST = 6
"""This many of a list are described; the rest is counted."""
_MOST_PARTITIONS = 12
ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"

Item = TypeVar("Item")


class Exchange(NamedTuple):
    """An exchange that is described.

    Attributes:
        asked: the request's body; empty if it was not seen.
        answer: the response's body; None if it was not seen.
        names: topics by id.
        request, response: the messages.
    """

    asked: Json
    answer: Json | None
    names: dict[str, str]
    request: Message | None
    response: Message | None

    @property
    def version(self) -> int:
        """The request's version."""
        message = self.request or self.response
        return -1 if message is None or message.api_version is None else message.api_version

    def topic(self, holder: Json) -> str:
        """The topic that a struct of a body names, by name or by id."""
        return topic_name(holder, self.names) or "?"


def topic_name(holder: Json, names: dict[str, str]) -> str | None:
    """The topic that a struct names, by id if its name is not known; None if it names none."""
    name = holder.get("name") or holder.get("topic") or holder.get("topicName")
    if isinstance(name, str):
        return name
    topic_id = holder.get("topicId")
    return names.get(topic_id, topic_id) if isinstance(topic_id, str) and topic_id != ZERO_UUID else None


class Part(NamedTuple):
    """A partition in a body.

    Attributes:
        place: ``topic-partition``.
        fields: its struct.
    """

    place: str
    fields: Json


def parts(exchange: Exchange, body: Json | None, topics: str, partitions: str, index: str) -> Iterator[Part]:
    """The partitions of a body, whose arrays and fields have these names."""
    for topic in items(body, topics):
        name = exchange.topic(topic)
        for part in items(topic, partitions):
            yield Part(f"{name}-{part.get(index, '?')}", part)


def listed(found: Sequence[Item], say: Callable[[Item], str] = str, separator: str = ", ") -> str:
    """A list in words, cut after the first MOST."""
    text = separator.join(map(say, islice(found, MOST)))
    return text if len(found) <= MOST else f"{text}{separator}{len(found) - MOST} more"


def of_topic(topic: str, partitions: Sequence[int]) -> str:
    """``payments-0,1,2``."""
    if not partitions:
        return topic
    some = ",".join(map(str, partitions[:_MOST_PARTITIONS]))
    return f"{topic}-{some}" + (f",… ({len(partitions)})" if len(partitions) > _MOST_PARTITIONS else "")


def counted(count: int, noun: str) -> str:
    """``1 record``, ``2 records``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def named(code: int | None) -> str:
    """An error code by its name, ``ok`` for none, ``?`` where it is not known."""
    return "?" if code is None else "ok" if code == NO_ERROR else error_name(code)


def verdict(codes: Sequence[tuple[str, int | None]]) -> str:
    """What became of several things, each with its error code: ``ok``, the error of all, or those of some."""
    wrong = [(what, code) for what, code in codes if code is not None and code != NO_ERROR]
    if not wrong:
        return "?" if any(code is None for _, code in codes) else "ok"
    if len(wrong) == len(codes) and len({code for _, code in wrong}) == 1:
        return error_name(wrong[0][1])
    rest = ", others ok" if len(wrong) < len(codes) else ""
    return listed(wrong, lambda one: f"{one[0]} {error_name(one[1])}") + rest


def throttled(answer: Json | None) -> str:
    """How long the broker held its client back, if it did."""
    time = integer(answer or {}, "throttleTimeMs")
    return f", throttled {time} ms" if time else ""


def answered(exchange: Exchange, text: str) -> str:
    """The part of the line that the response gives; empty without one."""
    return "" if not exchange.answer else f" → {text}{throttled(exchange.answer)}"


def member(member_id: str | None) -> str:
    """A member by its id; empty for one that has none yet."""
    return f" member {member_id}" if member_id else ""


def producer(body: Json, prefix: str = "") -> str:
    """``pid 7 epoch 0``; empty where there is none."""
    number, epoch = integer(body, f"{prefix}producerId"), integer(body, f"{prefix}producerEpoch")
    return "" if number is None or number < 0 else f"pid {number} epoch {'?' if epoch is None else epoch}"


def span(first: int | None, last: int | None) -> str:
    """Inclusive offsets, ``@5`` or ``@5..9``."""
    if first is None:
        return "@?"
    return f"@{first}" if last is None or last <= first else f"@{first}..{last}"


def joined(*words: str) -> str:
    """Words with spaces between them, empty ones left out."""
    return " ".join(word for word in words if word)
