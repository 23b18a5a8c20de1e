"""The statements of the apis that most traffic consists of, of many exchanges at once.

Their bodies become columns without an object of each (:mod:`decoder.kernel.leaves`). What these functions give back is
read one by one, as all other apis are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from decoder.columns import Bools, Ints
from decoder.kafka.apis import ApiKey
from pipeline.analysis.columns.nullable import Numbers, spans_of, truths
from pipeline.analysis.statements.commits import committed, kept_alive
from pipeline.analysis.statements.fetches import fetched
from pipeline.analysis.statements.produces import produced
from pipeline.analysis.statements.stated import Exchanges, Stated
from pipeline.lake.arrow import int_values

_READ_BY: Mapping[int, Callable[[Exchanges], Stated]] = {
    int(ApiKey.PRODUCE): produced,
    int(ApiKey.FETCH): fetched,
    int(ApiKey.OFFSET_COMMIT): committed,
    int(ApiKey.HEARTBEAT): kept_alive,
}
APIS = frozenset(_READ_BY)


def hot_statements(batch: pa.RecordBatch) -> tuple[list[tuple[str, Ints, Mapping[str, pa.Array]]], Bools]:
    """Statements of exchanges of these apis, and which exchanges are read so.

    Returns:
        By kind of statement (see :class:`Stated`) the numbers of exchanges and columns; and of each exchange whether
        all that it states is among them.
    """
    apis = int_values(batch.column("api_key").fill_null(-1))
    found, is_read = [], np.zeros(batch.num_rows, np.bool_)
    for api, read in _READ_BY.items():
        rows = np.flatnonzero(apis == api)
        if not len(rows):
            continue
        stated = read(_exchanges(batch, rows))
        is_read[rows] = ~stated.is_given_back
        found += [(name, rows[sources], columns) for name, sources, columns in _kept(stated)]
    return found, is_read


def _exchanges(batch: pa.RecordBatch, rows: Ints) -> Exchanges:
    """Some rows; bodies, which are most of a batch, stay where they are."""
    versions = int_values(batch.column("api_version").fill_null(-1))
    requests, responses = batch.column("request_body"), batch.column("response_body")
    return Exchanges(
        spans_of(requests, rows), spans_of(responses, rows), versions[rows], truths(responses.is_valid())[rows]
    )


def _kept(stated: Stated) -> Iterator[tuple[str, Ints, Mapping[str, pa.Array]]]:
    """What is not given back."""
    for name, (sources, columns) in stated.parts.items():
        if not stated.is_given_back.any():
            yield name, sources, columns
            continue
        kept = np.flatnonzero(~stated.is_given_back[sources])
        places = Numbers.all_known(kept).arrow(pa.int64())
        yield name, sources[kept], {column: values.take(places) for column, values in columns.items()}
