"""What does a message say, in a line for people? Keys are names; of values that the policy left out the size."""

from __future__ import annotations

from typing import Any

from decoder.explain.describer import About, Describer
from decoder.model import Message

_MOST = 3


class RespDescriber(Describer):
    """See decoder.explain.describer.Describer: ``key, 12 B → OK``."""

    def describe(self, request: Message | None, response: Message | None) -> str:
        """See decoder.explain.describer.Describer."""
        arguments = [] if request is None else request.body.get("arguments") or []
        more = [f"{len(arguments) - _MOST} more"] if len(arguments) > _MOST else []
        words = ", ".join([*map(_word, arguments[:_MOST]), *more])
        return words if response is None else f"{words} → {_answer(response.body)}".strip()

    def about(self, request: Message | None, response: Message | None) -> About:
        """See decoder.explain.describer.Describer: a key takes the place of a topic."""
        arguments = [] if request is None else request.body.get("arguments") or []
        return About(places=frozenset((key, None) for key in arguments[:1] if isinstance(key, str)))


def _answer(body: dict[str, Any]) -> str:
    return str(body["error"]) if "error" in body else _word(body.get("value"))


def _word(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['sizeInBytes']} B" if "sizeInBytes" in value else str(value.get("error", "?"))
    if isinstance(value, list):
        return f"{len(value)} values"
    return "null" if value is None else str(value)
