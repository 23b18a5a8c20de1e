"""What a function reads that finds the statements of many exchanges of one api at once, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from decoder.columns import Bools, Ints, Spans


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Exchanges of one api.

    Attributes:
        requests, responses: bodies; an empty text for none.
        versions: of the api; -1 where it is not known.
        has_response: whether a response was seen.
    """

    requests: Spans
    responses: Spans
    versions: Ints
    has_response: Bools


@dataclass(frozen=True, slots=True)
class Stated:
    """Their statements.

    Attributes:
        is_given_back: exchanges that must be read one by one; what is stated of them here does not count.
        parts: by the names of :data:`pipeline.analysis.statements.kafka.PARTS`: of each row the number of the exchange,
            in ascending order, and columns; those that are missing are null.
    """

    is_given_back: Bools
    parts: Mapping[str, tuple[Ints, Mapping[str, pa.Array]]]
