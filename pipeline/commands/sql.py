"""``wirelake sql``: ask the lake, without a JVM."""

from __future__ import annotations

import base64
import csv
import sys
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import orjson
import pyarrow as pa
import typer
from rich.table import Table as Grid
from rich.text import Text

from pipeline.dashboard.ask import TooMuchError, TooSlowError, ask
from pipeline.dashboard.views import views
from pipeline.errors import UserError
from pipeline.settings import load_settings
from pipeline.tables import TABLES
from pipeline.terminal import Console, json_line, printable

_SHOWN = 200
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins with one of these is run as a formula when a spreadsheet opens the CSV (CWE-1236)."""


def sql(
    query: Annotated[str | None, typer.Argument(help="One query; tables are schema.name, times are UTC.")] = None,
    lake: Annotated[Path | None, typer.Option(help="The lake's folder.")] = None,
    tables: Annotated[bool, typer.Option("--tables", help="List tables and views, with their columns.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV with a header.")] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0.001, help="Seconds that it may take; default: an hour.")
    ] = None,
    memory: Annotated[int | None, typer.Option(min=64, help="MiB of memory that it may take; default: 2048.")] = None,
    conf: Annotated[Path | None, typer.Option(help="Settings file, see `sql:` in conf/local.yaml.")] = None,
) -> None:
    """Ask the lake in DuckDB's SQL: read-only, without a JVM.

    All rows are read, with --json or --csv all are printed; a query that takes more time, memory or temporary files
    than it may ends with an error instead, exit code 2, and what was printed until then is not the whole answer.

    Examples:

      wirelake sql --lake demo-lake "FROM consumer_lag ORDER BY lag DESC"

      wirelake sql --lake demo-lake --csv "SELECT api_name, count(*) FROM silver.exchanges GROUP BY ALL"

      wirelake sql --tables
    """
    if as_json and as_csv:
        raise UserError("give --json or --csv, not both")
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
            _write(batches, as_json=as_json, as_csv=as_csv)
    except TooSlowError as error:
        raise UserError(f"{error}. Ask for less (WHERE date = …), or give it longer: --timeout SECONDS") from error
    except TooMuchError as error:
        raise UserError(f"{error}. Ask for less (WHERE date = …), or give it more: --memory MIB") from error


def _write(batches: Iterator[pa.RecordBatch], *, as_json: bool, as_csv: bool) -> None:
    names = _distinct(next(batches).schema.names)
    rows = _rows(batches)
    if as_json:
        for row in rows:
            _write_json(dict(zip(names, row, strict=True)))
    elif as_csv:
        _write_csv(names, rows)
    else:
        _show(names, rows)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        try:
            values = [column.to_pylist() for column in batch.columns]
        except (OverflowError, ValueError) as error:
            raise UserError(f"a time that is out of Python's range ({error}): cast it to VARCHAR") from error
        yield from zip(*values, strict=True)


def _distinct(names: list[str]) -> list[str]:
    """Names of columns, made unique: ``a``, ``a_2``."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


def _for_json(value: Any) -> Any:
    """What JSON has no form for, and orjson therefore asks about."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal() if value == value.to_integral_value() and abs(value) < 2**63:  # DuckDB's sum() of a bigint
            return int(value)
        case _:
            return str(value)


_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def _json(value: Any) -> bytes:
    return orjson.dumps(value, _for_json, _OPTIONS)


def _cell(value: Any) -> str:
    """A value as text, for CSV and tables."""
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return _json(value).decode().strip('"')


def _write_json(row: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json_line(row, _for_json, _OPTIONS))
    sys.stdout.buffer.flush()


def _guarded(value: Any) -> str:
    text = _cell(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def _write_csv(names: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in chain([tuple(names)], rows):
        writer.writerow([_guarded(value) for value in row])
    sys.stdout.flush()


def _show(names: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    grid = Grid(*(printable(name) for name in names))
    shown = list(islice(rows, _SHOWN))
    for index, column in enumerate(zip(*shown, strict=True)):
        if all(value is None or isinstance(value, (int, float, Decimal)) for value in column):
            grid.columns[index].justify = "right"
    for row in shown:
        grid.add_row(*(Text(printable(_cell(value))) for value in row))
    console = Console()
    console.print(grid)
    more = sum(1 for _ in rows)
    console.print(f"{len(shown)} rows" + (f", {more} more not shown: --json or --csv for all" if more else ""))


def _list_tables(*, as_json: bool) -> None:
    if as_json:
        for table in TABLES.values():
            columns = [{"name": c.name, "type": c.type, "comment": c.comment} for c in table.columns]
            _write_json({"name": table.full_name, "kind": "table", "comment": table.comment, "columns": columns})
        for view in views():
            _write_json({"name": view.name, "kind": "view", "comment": view.question, "columns": None})
        return
    grid = Grid("name", "what it holds", "columns", show_lines=True)
    for table in TABLES.values():
        grid.add_row(table.full_name, table.comment, ", ".join(table.column_names))
    for view in views():
        grid.add_row(view.name, view.question, "view")
    Console().print(grid)
