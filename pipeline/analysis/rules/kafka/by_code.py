"""Advice that follows from the error codes that symptoms were answered with."""

from __future__ import annotations

from shlex import quote

from pipeline.analysis.codes.advice import advice_of
from pipeline.analysis.codes.kafka.answers import kafka_facts
from pipeline.analysis.codes.model import CodeFacts
from pipeline.analysis.rules.episode import Episode


def codes_of(episode: Episode) -> tuple[CodeFacts, ...]:
    """The facts of the errors that its symptoms were answered with."""
    known = {"topic": episode.topic, "group": episode.group_id}
    return kafka_facts(episode.answers, **{name: quote(value) for name, value in known.items() if value})


def by_code(episode: Episode) -> str:
    """What these errors ask for."""
    return advice_of(codes_of(episode))
