"""A query's answer as a file: it is asked again when somebody presses the button, for more rows than a page shows."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial

import pyarrow as pa
import streamlit as st

from pipeline.config.settings import SqlSettings
from pipeline.dashboard.answers import distinct, rows_of, write_csv, write_parquet
from pipeline.dashboard.query_sandbox.ask import ask
from pipeline.dashboard.web.page_context import LAKE

MOST_ROWS = 100_000
_MOST_BYTES = 64 * 1024 * 1024
"""Of rows in a file: the server holds them until the browser has it."""
_BATCH = 1024


def download(sql: str, limits: SqlSettings) -> None:
    """Draw what saves the answer."""
    files: tuple[tuple[str, str, str, Callable[[str, SqlSettings], bytes]], ...] = (
        ("CSV", "answer.csv", "text/csv", csv_of),
        ("Parquet", "answer.parquet", "application/vnd.apache.parquet", parquet_of),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, name, kind, write in files:
            st.download_button(
                label, partial(write, sql, limits), name, kind, key=name, on_click="ignore", icon=":material/download:"
            )
        st.caption(f"Up to {MOST_ROWS:,} rows or 64 MiB of them; all: `wirelake sql --format parquet`.")


def csv_of(sql: str, limits: SqlSettings) -> bytes:
    """The answer as CSV."""
    out = io.StringIO()
    with closing(_asked(sql, limits)) as batches:
        names = distinct(next(batches).schema.names)
        write_csv(names, rows_of(_bounded(batches)), out)
    return out.getvalue().encode()


def parquet_of(sql: str, limits: SqlSettings) -> bytes:
    """The answer as Parquet."""
    out = io.BytesIO()
    with closing(_asked(sql, limits)) as batches:
        schema = next(batches).schema
        write_parquet(distinct(schema.names), _bounded(batches), schema, out)
    return out.getvalue()


def _asked(sql: str, limits: SqlSettings) -> Generator[pa.RecordBatch]:
    return ask(
        os.environ[LAKE], sql, limits, seconds=limits.page_seconds, most=MOST_ROWS, batch=_BATCH,
        most_bytes=_MOST_BYTES, at_once=limits.page_queries,
    )  # fmt: skip


def _bounded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    left = _MOST_BYTES
    for batch in batches:
        left -= batch.nbytes
        if left < 0:
            return
        yield batch
