"""What an error code means: the reader of the table, for any protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.codes.model import Api, CodeFacts, CodeTable
from pipeline.analysis.codes.mongodb.table import MONGODB

TABLES: Final[Mapping[str, CodeTable]] = {"kafka": KAFKA, "mongodb": MONGODB}


def meaning(protocol: str, api: Api | None, code: int) -> CodeFacts:
    """The facts of an error code.

    Args:
        protocol: ``kafka`` or ``mongodb``.
        api: Kafka's api key or MongoDB's command that was answered so; None: any.
        code: its number; one without a row gets what holds of any error.
    """
    return TABLES[protocol].meaning(api, code)
