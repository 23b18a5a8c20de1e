"""The facts of what Kafka's brokers answered, by the names of apis and errors."""

from __future__ import annotations

from collections.abc import Iterable

from decoder.kafka.schema.table import api_keys
from pipeline.analysis.codes.advice import facts_of
from pipeline.analysis.codes.model import CodeFacts


def kafka_facts(answers: Iterable[tuple[str, str]], **names: str) -> tuple[CodeFacts, ...]:
    """The distinct facts of errors.

    Args:
        answers: api and error, by name; an api that is not known stands for any.
        names: what the placeholders of the texts stand for, as a shell takes it.
    """
    known = facts_of("kafka", ((api_keys().get(api), error) for api, error in answers))
    precise = {one.code for one in known if one.api is not None}
    return tuple(one.filled(**names) for one in known if one.api is not None or one.code not in precise)
