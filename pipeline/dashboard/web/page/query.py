"""The user's own questions, in DuckDB's SQL: read-only, stopped when they take too long."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from pipeline.config.settings import SqlSettings, load_settings
from pipeline.dashboard.query_sandbox.ask import BusyError, TooMuchError, TooSlowError, ask
from pipeline.dashboard.views import views
from pipeline.dashboard.web.page_context import LAKE, PageContext, link, run
from pipeline.dashboard.web.parts.answer_files import download
from pipeline.dashboard.web.parts.grid import Column, Kind, grid
from pipeline.dashboard.web.scripts.completion import complete_names
from pipeline.errors import UserError
from pipeline.humanize import number, size
from pipeline.tables import TABLES

_MOST_TEXT = 16 * 1024 * 1024
"""Characters of all rows that are shown."""
_BATCH = 16
_MOST_BATCH = 64 * 1024 * 1024
"""Rows that are read at once, since an answer may be left before its end, and their bytes: this process holds them."""
_CELL = 2000
"""Characters of a value that are shown."""
_MOST_NESTED = 256 * 1024
"""Bytes of a list or struct that is shown: as Python's objects it has many times as many."""
_ENDLESS = {2**63 - 1: "infinity", 1 - 2**63: "-infinity", 2**31 - 1: "infinity", 1 - 2**31: "-infinity"}
"""How DuckDB writes the times and days that are none."""
_ASKED = "query that was asked"
"""What of the session holds the query for which somebody pressed the button; it runs again when the page does."""
_FIRST = "FROM consumer_lag ORDER BY lag DESC"


def draw(here: PageContext) -> None:
    """Draw the page."""
    limits = load_settings().sql
    st.caption(
        "One query in DuckDB's SQL. It reads the lake and nothing else, of all times: the time range is not applied. "
        f"Times are UTC; {limits.page_rows:,} rows are shown, and a query may take "
        f"{limits.page_seconds:g} seconds. Names are completed by *Tab*; *Ctrl+Space* shows them."
    )
    with st.form("ask", border=False):
        sql = st.text_area("Query", value=_FIRST, key="sql", bind="query-params", height=140)
        asked = st.form_submit_button("Run")
    complete_names(here.connection)
    if asked:
        st.session_state[_ASKED] = sql
    # What only is in the address was written by whoever made the link, to be read before it is run.
    if st.session_state.get(_ASKED) == sql:
        _answer(sql, limits)
    elif "sql" in st.query_params:
        st.info("This query came with the address. Read it, then press *Run*.")
    with st.expander("Examples", expanded=sql == _FIRST):
        for view in views():
            link("query", f"{view.name}: {view.question}", "arrow_forward", sql=f"FROM {view.name}")
    with st.expander("Tables"):
        for table in TABLES.values():
            st.markdown(
                f"`{table.full_name}`: {table.comment}. {', '.join(f'`{name}`' for name in table.column_names)}"
            )


@dataclass(slots=True)
class _Answer:
    """The first rows of an answer, as they are shown.

    Attributes:
        names, kinds: of the columns.
        columns: their values.
        count: rows.
        is_cut: more rows would have been read, but for the length of these.
    """

    names: list[str]
    kinds: list[Kind]
    columns: list[list[Any]]
    count: int = 0
    is_cut: bool = False


def _answer(sql: str, limits: SqlSettings) -> None:
    asked = ask(
        os.environ[LAKE],
        sql,
        limits,
        seconds=limits.page_seconds,
        most=limits.page_rows + 1,
        batch=_BATCH,
        most_bytes=_MOST_BATCH,
        at_once=limits.page_queries,
    )
    try:
        with closing(asked) as batches:
            answer = _read(batches)
    except BusyError as error:
        st.warning(_sentence(error))
        return
    except (TooSlowError, TooMuchError) as error:
        st.warning(f"{_sentence(error)} Ask for less: a day (`WHERE date = …`), fewer columns.")
        return
    except UserError as error:
        st.error("The query does not run.")
        st.code(str(error), language=None)
        return
    if not answer.count:
        st.info("No rows.")
        return
    count = min(answer.count, limits.page_rows)
    if answer.is_cut:
        st.caption(f"The first {number(count)} rows; with more, the answer would be too long. Ask for fewer columns.")
    else:
        st.caption(f"The first {number(count)} rows" if answer.count > count else f"{number(count)} rows")
    rows = zip(*answer.columns, strict=True)
    grid(
        [{str(index): value for index, value in enumerate(row)} for row, _ in zip(rows, range(count), strict=False)],
        [
            Column(str(index), name, kind)
            for index, (name, kind) in enumerate(zip(answer.names, answer.kinds, strict=True))
        ],
        key="answer",
    )
    download(sql, limits)


def _sentence(error: UserError) -> str:
    text = str(error)
    return f"{text[0].upper()}{text[1:]}."


def _read(batches: Iterable[pa.RecordBatch]) -> _Answer:
    answer, length = _Answer([], [], []), 0
    for batch in batches:
        if length > _MOST_TEXT:
            answer.is_cut = True
            break
        if not answer.names:
            answer = _Answer(batch.schema.names, [_kind(kind) for kind in batch.schema.types], [[] for _ in batch])
        for index, column in enumerate(batch.columns):
            values = _values(column)
            if not all(_fits(value, answer.kinds[index]) for value in values):
                answer.kinds[index] = "text"
            answer.columns[index] += values
            length += sum(len(value if isinstance(value, str) else str(value)) for value in values)
        answer.count += batch.num_rows
    return answer


def _values(column: pa.Array) -> list[Any]:
    """Values that a browser can be given a thousand times: bodies and frames are long, and cut before they are copied.

    None of them is longer in Python than it is shown.
    """
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        first = [None if value is None else value.hex() for value in pc.binary_slice(column, 0, _CELL // 2).to_pylist()]
        return list(map(_ended, first, pc.binary_length(column).to_pylist(), ["bytes"] * len(column)))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        first = pc.utf8_slice_codeunits(column, 0, _CELL).to_pylist()
        return list(map(_ended, first, pc.utf8_length(column).to_pylist(), ["characters"] * len(column)))
    if pa.types.is_nested(kind):
        sizes = [column.slice(index, 1).nbytes for index in range(len(column))]
        return [
            f"… ({size(length)})" if length > _MOST_NESTED else _value(value)
            for value, length in zip(column, sizes, strict=True)
        ]
    return [_value(value) for value in column]


def _ended(first: str | None, length: int | None, unit: str) -> str | None:
    """The beginning of a value, with its length if that is not all."""
    if first is None or length is None or length <= (_CELL // 2 if unit == "bytes" else _CELL):
        return first
    return f"{first} … ({number(length)} {unit})"


def _value(scalar: pa.Scalar) -> Any:
    try:
        value = scalar.as_py()
    except (OverflowError, ValueError):  # Python has no year 10000, and nothing that is infinitely late
        number_of_units: Any = getattr(scalar, "value", None)
        return _ENDLESS.get(number_of_units, "out of range: cast it to VARCHAR")
    if isinstance(value, bytes):
        value = value.hex()
    text = str(value)
    return _ended(text[:_CELL], len(text), "characters") if len(text) > _CELL else value


def _kind(kind: pa.DataType) -> Kind:
    if pa.types.is_timestamp(kind) and kind.tz:
        return "time"
    return "number" if pa.types.is_integer(kind) else "text"


def _fits(value: Any, kind: Kind) -> bool:
    match kind:
        case "number":
            return value is None or -(2**63) <= value < 2**63
        case "time":
            return not isinstance(value, str)
        case _:
            return True


run(draw)
