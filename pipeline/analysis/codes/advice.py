"""Advice about several error codes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pipeline.analysis.codes.model import Api, CodeFacts
from pipeline.analysis.codes.table import TABLES, meaning

BY_CODE: Final = "Now: {now_of_the_code}. Fix: {fix_of_the_code}."
"""The advice of a rule that takes it from the table, whatever the code."""
_SHOWN = 3


def facts_of(protocol: str, answers: Iterable[tuple[Api | None, str]]) -> tuple[CodeFacts, ...]:
    """The facts of errors by their names, distinct, in the same order.

    Args:
        protocol: ``kafka`` or ``mongodb``.
        answers: apis and names of their errors; a name that the table does not have is read as a code of its own.
    """
    return tuple(dict.fromkeys(_facts_of(protocol, answers)))


def _facts_of(protocol: str, answers: Iterable[tuple[Api | None, str]]) -> Iterator[CodeFacts]:
    for api, name in answers:
        code = TABLES[protocol].code_of(name)
        yield TABLES[protocol].unknown(name, api) if code is None else meaning(protocol, api, code)


def now_of(some: Sequence[CodeFacts]) -> str:
    """What to do at once about all of them; under the name of each, if they ask for different things."""
    return _joined_texts([(one.name, one.now) for one in some])


def fix_of(some: Sequence[CodeFacts]) -> str:
    """What prevents all of them, likewise."""
    return _joined_texts([(one.name, one.fix) for one in some])


def advice_of(some: Sequence[CodeFacts]) -> str:
    """Both, as a finding states them."""
    return f"Now: {now_of(some)} Fix: {fix_of(some)}"


def _joined_texts(texts: Sequence[tuple[str, str]]) -> str:
    by_text: dict[str, list[str]] = {}
    for name, text in texts:
        by_text.setdefault(text, []).append(name)
    if len(by_text) == 1:
        return next(iter(by_text))
    return " ".join(f"{', '.join(dict.fromkeys(names))}: {text}" for text, names in list(by_text.items())[:_SHOWN])
