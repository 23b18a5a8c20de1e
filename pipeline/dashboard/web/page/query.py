"""The user's own questions, in DuckDB's SQL: read-only, stopped when they take too long."""

from __future__ import annotations

from threading import Timer
from typing import Any

import duckdb
import pyarrow as pa
import streamlit as st

from pipeline.dashboard.sql import open_query
from pipeline.dashboard.views import views
from pipeline.dashboard.web.grid import Column, Kind, grid
from pipeline.dashboard.web.here import Here, run
from pipeline.dashboard.web.words import number
from pipeline.errors import UserError
from pipeline.tables import TABLES

_MOST = 1000
_SECONDS = 30
_CELL = 2000
"""Characters of a value that are shown."""
_FIRST = "FROM consumer_lag ORDER BY lag DESC"


def draw(here: Here) -> None:
    """Draw the page."""
    st.caption(
        "One query in DuckDB's SQL. It reads the lake and nothing else, of all times: the time range is not applied. "
        f"Times are UTC; {_MOST:,} rows are shown, and a query may take {_SECONDS} seconds."
    )
    with st.form("ask", border=False):
        sql = st.text_area("Query", value=_FIRST, key="sql", bind="query-params", height=140)
        asked = st.form_submit_button("Run", type="primary")
    if asked or "sql" in st.query_params:
        _answer(here.connection, sql)
    with st.expander("Tables and views"):
        for view in views():
            st.markdown(f"`{view.name}`: {view.question}")
        for table in TABLES.values():
            st.markdown(
                f"`{table.full_name}`: {table.comment}. {', '.join(f'`{name}`' for name in table.column_names)}"
            )


def _answer(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    stop = Timer(_SECONDS, connection.interrupt)
    stop.start()
    try:
        data, more = first_rows(connection, sql)
    except duckdb.InterruptException:
        st.warning(f"Stopped after {_SECONDS} seconds. Ask for less: a day (`WHERE date = …`), fewer columns.")
        return
    except (duckdb.Error, pa.ArrowException, UserError) as error:
        st.error("The query does not run.")
        st.code(str(error), language=None)
        return
    finally:
        stop.cancel()
    if not data.num_rows:
        st.info("No rows.")
        return
    st.caption(f"The first {number(data.num_rows)} rows" if more else f"{number(data.num_rows)} rows")
    grid(
        _rows(data),
        [Column(str(index), name, _kind(data, index)) for index, name in enumerate(data.schema.names)],
        key="answer",
    )


def first_rows(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[pa.Table, bool]:
    """The first rows of an answer, and whether there are more.

    Raises:
        UserError: it is not one query, or it does not run.
    """
    data = open_query(connection, sql, _MOST + 1).read_all()
    return data.slice(0, _MOST), data.num_rows > _MOST


def _rows(data: pa.Table) -> list[dict[str, Any]]:
    columns = [column.to_pylist() for column in data.columns]
    return [{str(index): _cut(value) for index, value in enumerate(row)} for row in zip(*columns, strict=True)]


def _cut(value: Any) -> Any:
    """A value that a browser can be given a thousand times: bodies and frames are long."""
    if isinstance(value, bytes):
        value = value.hex()
    if isinstance(value, (str, list, dict)) and len(text := str(value)) > _CELL:
        return f"{text[:_CELL]} … ({number(len(text))} characters)"
    return value


def _kind(data: pa.Table, index: int) -> Kind:
    kind = data.schema.types[index]
    if pa.types.is_timestamp(kind) and kind.tz:
        return "time"
    return "number" if pa.types.is_integer(kind) else "text"


run(draw)
