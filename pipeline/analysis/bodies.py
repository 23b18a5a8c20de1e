"""Adds to exchanges what only their frames store: bodies, the messages inside them, and headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from decoder.columns import Ints
from decoder.protocols import names_of
from pipeline.analysis.columns.nullable import Numbers, truths
from pipeline.lake.arrow import arrow_array, fits_one_array, in_one_array, pointing_to, taken

_TEXTS = ("body", "embedded", "header")
_KEEP_HEADERS = names_of(lambda protocol: protocol.keeps_headers)
"""Protocols whose headers state more than the columns of an exchange do."""

Bring = Callable[[pa.ChunkedArray, pa.Array], pa.ChunkedArray]
"""Gives values of a column of texts by row number; a row that is null gives null."""


def way_of(frames: pa.Table, *, copies_texts: bool = False) -> Bring:
    """How texts of frames are brought: copied if that is wanted, or where one array cannot hold them."""
    can_point = all(fits_one_array(frames.column(name)) for name in _TEXTS)
    return pointing_to if can_point and not copies_texts else taken


def texts_of(rows: pa.Table, frames: pa.Table, halves: Mapping[str, Ints], bring: Bring) -> dict[str, pa.ChunkedArray]:
    """The texts of both halves, by the name of their column.

    Args:
        rows: exchanges; their ``protocol`` is read.
        frames: rows of ``bronze.frames``.
        halves: by half its row number in ``frames`` of each exchange; -1 for none.
        bring: see :func:`way_of`.
    """
    columns = {}
    keeps_header = truths(pc.is_in(rows.column("protocol"), arrow_array(_KEEP_HEADERS, pa.string())))
    for name in _TEXTS:
        texts = in_one_array(frames.column(name))
        for half, places in halves.items():
            is_wanted = (places >= 0) & keeps_header if name == "header" else places >= 0
            columns[f"{half}_{name}"] = bring(texts, Numbers(places, is_wanted).arrow(pa.int64()))
    return columns


def with_texts(rows: pa.Table, texts: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """Rows with these columns in the place of those of the same names."""
    for name, column in texts.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def with_bodies_sql(exchanges: str, frames: str) -> str:
    """A query for exchanges with the texts of both frames, in what Spark SQL and DuckDB have in common.

    Texts are null where ``bronze.frames`` has not got the frame any more. Both engines read only the files and row
    groups that hold these frames: the least and greatest days, times, connections and numbers of the exchanges are
    known before frames are read.

    Args:
        exchanges: the name of rows of ``silver.exchanges``, or a query for them in brackets.
        frames: the name of rows of ``bronze.frames``.
    """
    keep_headers = ", ".join(f"'{name}'" for name in _KEEP_HEADERS)
    return f"""
        SELECT x.*,
            q.body AS request_body, r.body AS response_body,
            q.embedded AS request_embedded, r.embedded AS response_embedded,
            CASE WHEN x.protocol IN ({keep_headers}) THEN q.header END AS request_header,
            CASE WHEN x.protocol IN ({keep_headers}) THEN r.header END AS response_header
        FROM {exchanges} AS x
        LEFT JOIN {frames} AS q
            ON q.date = CAST(x.request_ts AS DATE) AND q.ts = x.request_ts AND q.connection_id = x.connection_id
            AND q.direction = 'request' AND q.seq = x.request_seq
        LEFT JOIN {frames} AS r
            ON r.date = CAST(x.response_ts AS DATE) AND r.ts = x.response_ts AND r.connection_id = x.connection_id
            AND r.direction = 'response' AND r.seq = x.response_seq
    """
