"""``wirelake sql``: ask the lake, without a JVM."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from enum import Enum
from typing import Annotated

import pyarrow as pa
import typer
from rich.table import Table as Grid

from pipeline.commands.sql.sql_catalog import in_plain_words, table_object, view_object
from pipeline.commands.sql.sql_formats import write_json, write_lines, write_markdown
from pipeline.commands.sql.sql_order import in_stable_order
from pipeline.commands.sql.sql_table import show_table, sql_type
from pipeline.config.common_options import Conf, whole_lake
from pipeline.config.settings import load_settings
from pipeline.dashboard.answers import distinct, rows_of, write_csv, write_parquet
from pipeline.dashboard.query_sandbox.ask import TooMuchError, TooSlowError, ask
from pipeline.dashboard.views import views
from pipeline.errors import UserError
from pipeline.tables import TABLES
from pipeline.terminal.console import Console, printable
from pipeline.terminal.lines import Lines
from pipeline.terminal.pager import paged

_SHOWN = 40


class Format(str, Enum):
    """How an answer is printed."""

    table = "table"
    json = "json"
    csv = "csv"
    parquet = "parquet"
    markdown = "markdown"
    line = "line"


def sql(
    query: Annotated[str | None, typer.Argument(help="One query; tables are schema.name, times are UTC.")] = None,
    lake: Annotated[str | None, typer.Option(help="The lake's folder, or its URL.", callback=whole_lake)] = None,
    tables: Annotated[bool, typer.Option("--tables", help="List tables and views, with their columns.")] = False,
    form: Annotated[
        Format | None, typer.Option("--format", help="How the answer is printed; by default as a table.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As --format json: one JSON object a row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="As --format csv: CSV with a header.")] = False,
    rows: Annotated[int, typer.Option(min=1, help="Rows that a table shows: the first and the last ones.")] = _SHOWN,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Time limit in seconds; default: an hour.")] = None,
    memory: Annotated[int | None, typer.Option(min=64, help="Memory limit in MiB; default: 2048.")] = None,
    conf: Conf = None,
) -> None:
    """Query the lake in DuckDB's SQL: read-only, without a JVM.

    A table shows the first and the last rows, and as many columns as the terminal has room for (times, clients, apis,
    groups, topics and errors first); every other format shows all of both. `--format line` puts each column of a row
    on a line of its own. In a file or a pipe CSV keeps every character; on a terminal control characters are escaped.
    A query that exceeds its limit of time, memory or temporary files ends with an error and exit code 2, and what it
    printed is incomplete. `wirelake tables` lists tables and views, `wirelake describe TABLE` explains their columns.

    Examples:

      wirelake sql --lake demo-lake "FROM consumer_lag ORDER BY lag DESC"

      wirelake sql --lake demo-lake --csv "SELECT api_name, count(*) FROM silver.exchanges GROUP BY ALL"

      wirelake sql --lake demo-lake --format line "FROM gold.incidents LIMIT 1"

      wirelake sql --lake demo-lake --format markdown "FROM latency" >> ticket.md

      wirelake sql --lake demo-lake --format parquet "FROM gold.findings" > findings.parquet
    """
    given = [*([form] if form else []), *([Format.json] if as_json else []), *([Format.csv] if as_csv else [])]
    if len(given) > 1:
        raise UserError("give one of --format, --json and --csv")
    if tables:
        _list_tables(as_json=as_json)
        return
    if query is None or lake is None:
        raise UserError('give a query and its lake: wirelake sql "FROM consumer_lag" --lake DIR (or --tables)')
    limits = load_settings(conf).sql
    if memory is not None:
        limits = limits.model_copy(update={"memory_mb": memory})
    try:
        with closing(ask(lake, query, limits, seconds=timeout or limits.command_seconds)) as batches:
            _write(batches, given[0] if given else Format.table, rows, query)
    except TooSlowError as error:
        raise UserError(f"{error}. Ask for less (WHERE date = …), or give it longer: --timeout SECONDS") from error
    except TooMuchError as error:
        raise UserError(f"{error}. Ask for less (WHERE date = …), or give it more: --memory MIB") from error
    except UserError as error:
        raise UserError(in_plain_words(str(error), query)) from error


def _write(batches: Iterator[pa.RecordBatch], form: Format, most: int, query: str) -> None:
    schema = next(batches).schema
    names = distinct(schema.names)
    if form is Format.parquet:
        if sys.stdout.isatty():
            raise UserError("Parquet is no text: send it to a file, … --format parquet > answer.parquet")
        write_parquet(names, batches, schema, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    mixed = (view.name for view in views() if not view.name.startswith("exchanges_"))  # those come by time
    rows = in_stable_order(rows_of(batches), query, mixed)
    match form:
        case Format.json:
            for row in rows:
                write_json(dict(zip(names, row, strict=True)))
        case Format.csv:
            write_csv(names, rows, sys.stdout, printable if sys.stdout.isatty() else str)
            sys.stdout.flush()
        case Format.markdown:
            write_markdown(names, rows)
        case Format.line:
            with paged():
                write_lines(names, rows)
        case _:
            with paged():
                show_table(Lines(), names, [sql_type(field.type) for field in schema], rows, most)
                sys.stdout.flush()


def _list_tables(*, as_json: bool) -> None:
    if as_json:
        for table in TABLES.values():
            write_json(table_object(table))
        for view in views():
            write_json(view_object(view))
        return
    grid = Grid("name", "what it holds", "columns", show_lines=True)
    for table in TABLES.values():
        grid.add_row(table.full_name, table.comment, ", ".join(table.column_names))
    for view in views():
        grid.add_row(view.name, view.question, ", ".join(column["name"] for column in view_object(view)["columns"]))
    Console().print(grid)
