"""How the rows of Kafka's table are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.codes.model import NOTHING, OPERATOR, REFUSAL, Actor, CodeFacts, Kind, at

RETRIES = "nothing while it passes: the client repeats the request by itself."
ASKS_METADATA = "nothing while it passes: the client fetches new metadata and asks the right broker."
ASKS_COORDINATOR = "nothing while it passes: the client sends FindCoordinator and repeats the request."
_UNEXPECTED = (
    "ask the makers of the broker, or of a proxy in front of it: Apache Kafka does not answer this request so."
)
BROKER_LOG = "read the log of the broker that answered at this time (server.log)."


def row(
    error: KafkaError,
    kind: Kind,
    actor: Actor,
    meaning: str,
    now: str = NOTHING,
    fix: str = NOTHING,
    *,
    area: str = "",
    is_retried: bool = False,
    api: ApiKey | None = None,
) -> CodeFacts:
    """A row; see CodeFacts for its parts."""
    key = None if api is None else int(api)
    return CodeFacts(int(error), error.name, kind, actor, meaning, now, fix, area, is_retried, key)


def only_at(facts: CodeFacts, *apis: ApiKey) -> Iterator[CodeFacts]:
    """Facts of a code as the answer of some apis; as the answer of any other it is an unexpected refusal."""
    yield from at(map(int, apis), facts)
    yield replace(facts, kind=REFUSAL, actor=OPERATOR, now=BROKER_LOG, fix=_UNEXPECTED)
