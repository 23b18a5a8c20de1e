"""Which protocols does the agent recognise? The registry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from decoder import Codec
from decoder.kafka.protocol import KafkaProtocol
from decoder.mongodb.protocol import MongoProtocol
from decoder.protocol import WireProtocol


@cache
def protocols() -> Sequence[WireProtocol]:
    """All protocols, the one to be preferred first."""
    return (KafkaProtocol(Codec()), MongoProtocol())
