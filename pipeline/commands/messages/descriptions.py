"""Messages in words; each protocol describes its own."""

from __future__ import annotations

from collections.abc import Sequence

from decoder import Message
from decoder.explain.describer import About, Describer
from pipeline.analysis.descriptions import ProtocolDescribers
from pipeline.commands.messages.messages import Decoded

_WELL = ("ok", "redacted")


class Describers:
    """See decoder.explain.describer.Describer, of whatever protocol a message is."""

    def __init__(self) -> None:
        self._describers = ProtocolDescribers()

    def note(self, item: Decoded) -> None:
        """Take note of a message, in the order of time."""
        if item.frame.direction == "response":
            self._of(item).note(item.request, item.message)

    def describe(self, item: Decoded) -> str:
        """A message in words, a response together with its request."""
        return self._of(item).describe(*_halves(item))

    def errors(self, item: Decoded) -> Sequence[str]:
        """Names of the errors that a response holds."""
        return self._of(item).errors(item.message) if item.frame.direction == "response" else ()

    def is_wrong(self, item: Decoded) -> bool:
        """Whether it holds an error, or does not decode."""
        return item.message.status not in _WELL or bool(self.errors(item))

    def about(self, item: Decoded) -> About:
        """What it is about."""
        return self._of(item).about(*_halves(item))

    def topic_of(self, item: Decoded, topic_id: str) -> str | None:
        """The name of a topic of a message that is given by its id, if a response named it."""
        return self._of(item).topic_of(topic_id)

    def of_offset(self, item: Decoded, topic: str, partition: int, at: int) -> str:
        """What it says of one offset, in words; empty: nothing."""
        return self._of(item).of_offset(*_halves(item), topic, partition, at)

    def _of(self, item: Decoded) -> Describer:
        return self._describers.of(item.frame.protocol)


def _halves(item: Decoded) -> tuple[Message | None, Message | None]:
    return (item.message, None) if item.frame.direction == "request" else (item.request, item.message)
