"""What a message states, in a line for people: each protocol has this :class:`Describer`, or one of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from decoder.model import Message


@dataclass(frozen=True, slots=True)
class About:
    """What an exchange is about, for whoever looks for it.

    Attributes:
        groups: consumer groups, or what takes their place.
        places: topics, each with a partition; or names like them, e.g. a namespace, which have none.
    """

    groups: frozenset[str] = frozenset()
    places: frozenset[tuple[str, int | None]] = frozenset()


class Describer:
    """Describes the messages of some connections in words; remembers the names that they state.

    A request is described by itself, its response together with it: so that each line can be understood alone. Either
    may be None (not seen); bodies may end early. No value of a record or document is shown, only what the payload
    policy leaves of the message. Texts are as on the wire: whoever prints them escapes what steers a terminal.

    Args:
        response_errors: WireProtocol.response_errors.
    """

    def __init__(self, response_errors: Callable[[str], Sequence[tuple[int, str]]]) -> None:
        self._response_errors = response_errors

    def note(self, request: Message | None, response: Message | None) -> None:
        """Take note of an exchange that may be described or not. To be called in the order of time."""

    def describe(self, request: Message | None, response: Message | None) -> str:
        """The exchange in words; by default the names of its errors. Without the api's name, which is before."""
        return "" if response is None else ", ".join(self.errors(response))

    def errors(self, response: Message) -> Sequence[str]:
        """Names of the errors in a response."""
        if not response.body:
            return ()
        return [name for _, name in self._response_errors(orjson.dumps(response.body, default=str).decode())]

    def about(self, request: Message | None, response: Message | None) -> About:
        """What an exchange is about."""
        del request, response
        return About()

    def topic_of(self, topic_id: str) -> str | None:
        """The name of a topic that is given by its id, if a response named it."""
        del topic_id
        return None

    def of_offset(self, request: Message | None, response: Message | None, topic: str, partition: int, at: int) -> str:
        """What an exchange says of one offset of a partition, in words; empty: nothing."""
        del request, response, topic, partition, at
        return ""
