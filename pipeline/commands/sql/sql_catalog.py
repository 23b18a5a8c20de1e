"""``wirelake tables`` and ``wirelake describe``: what a lake holds, what a column means, and which name was meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from rich.text import Text

from pipeline.config.common_options import whole_lake
from pipeline.dashboard.views import View, views
from pipeline.errors import UserError, no_lake
from pipeline.lake.path_checks import why_unreadable
from pipeline.tables import TABLES
from pipeline.tables.model import Column, Table
from pipeline.terminal.console import Console, printable
from pipeline.terminal.lines import Lines, columns_of
from pipeline.terminal.pager import paged

_SIMILAR = 0.6
_MISSING = re.compile(r"Table with name \"?(?P<name>[\w.]+?)\"? does not exist")
_STREAM_FAILS = re.compile(
    r"reading the stream registered as 'delta_(?P<table>\w+)' failed: (?P<why>[^\n]*)|"
    r"(?:IO|Invalid Input) Error: (?P<of_file>[^\n]*\.parquet[^\n]*)"
)
_NAMED_FILE = re.compile(r"['\"](?P<path>[^'\"]+\.parquet)['\"]")
_NO_COLUMN = re.compile(r"Referenced column \"(?P<name>[^\"]+)\" not found")

LakeOption = Annotated[
    str | None,
    typer.Option(help="The lake's folder, or its URL: which tables it has, how many rows.", callback=whole_lake),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


def tables(lake: LakeOption = None, as_json: JsonOption = False) -> None:
    """List the tables and views of a lake.

    The exit code is 2 if there is no lake, or a table of it cannot be read.

    Examples:

      wirelake tables

      wirelake tables --lake demo-lake
    """
    counts, unreadable = ({}, {}) if lake is None else _rows(lake)
    if as_json:
        _tables_as_json(counts, is_counted=lake is not None)
        _warn(unreadable)
        return
    titles = ["table", "rows"] if lake is not None else ["table"]
    listed = [
        (name, "damaged" if name in unreadable else _count(counts.get(name)), table.comment)
        for name, table in TABLES.items()
    ]
    listed += [(view.name, "view", view.question) for view in views()]
    with paged():
        _columns([*titles, "what it holds"], [row if lake is not None else (row[0], row[2]) for row in listed])
    _warn(unreadable)


def describe(
    table: Annotated[str, typer.Argument(help="A table (schema.name) or a view.")],
    as_sql: Annotated[bool, typer.Option("--sql", help="Of a view the query that it is, alone.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the columns of a table or view, and what they mean.

    Of a table it also states what identifies a row.

    The exit code is 2 if there is no such table or view.

    Examples:

      wirelake describe gold.findings

      wirelake describe consumer_lag

      wirelake describe consumer_lag --sql
    """
    found = _named(table)
    if as_sql and (as_json or not isinstance(found, View)):
        raise UserError("--sql shows the query of a view: a table has none, and the JSON of a view has it as `sql`")
    with paged(not as_json):
        if isinstance(found, View):
            _describe_view(found, as_json=as_json, as_sql=as_sql)
        else:
            _describe_table(found, as_json=as_json)


def _named(name: str) -> Table | View:
    for one in TABLES.values():
        if name in (one.full_name, one.name):
            return one
    for view in views():
        if name == view.name:
            return view
    raise UserError(no_such_table(name))


def _describe_table(table: Table, *, as_json: bool) -> None:
    if as_json:
        _write(table_object(table))
        return
    lines = Lines()
    _headline(table.full_name, table.comment, lines)
    lines.write([("key: ", "dim"), (", ".join(table.key), "")])
    lines.write([])
    _list_columns(table.columns, lines)


def _headline(name: str, text: str, lines: Lines) -> None:
    for at, line in enumerate(_broken(f"{name}: {text}", lines.width or 1 << 30)):
        begin, rest = (name, line.removeprefix(name)) if at == 0 else ("", line)
        lines.write([(begin, "bold"), (rest, "")])


def _list_columns(columns: Sequence[Column], lines: Lines) -> None:
    rows = [(column.name, column.type.lower(), column.comment) for column in columns]
    _columns(["column", "type", "what it means"], rows, lines)


def _describe_view(view: View, *, as_json: bool, as_sql: bool) -> None:
    if as_json:
        _write(view_object(view) | {"sql": view.sql})
        return
    if as_sql:
        lines = Lines(width=0)
        for line in view.sql.splitlines():
            lines.write([(line, "")])
        return
    lines = Lines()
    _headline(view.name, view.question, lines)
    lines.write([("its query: ", "dim"), (f"wirelake describe {view.name} --sql", "")])
    lines.write([])
    _list_columns(_columns_of_view(view), lines)


def _columns_of_view(view: View) -> Sequence[Column]:
    from pipeline.dashboard.view_columns import view_columns  # noqa: PLC0415 - it loads DuckDB

    return view_columns(view)


def table_object(table: Table) -> dict[str, Any]:
    """A table as the JSON object of ``wirelake tables --json``."""
    return {"name": table.full_name, "kind": "table", "comment": table.comment, "columns": _objects(table.columns)}


def view_object(view: View) -> dict[str, Any]:
    """A view, likewise."""
    columns = _objects(_columns_of_view(view))
    return {"name": view.name, "kind": "view", "comment": view.question, "columns": columns}


def _objects(columns: Sequence[Column]) -> list[dict[str, str]]:
    return [{"name": column.name, "type": column.type, "comment": column.comment} for column in columns]


def _write(value: dict[str, Any]) -> None:
    from pipeline.commands.sql.sql_formats import write_json  # noqa: PLC0415 - it loads Arrow

    write_json(value)


def _tables_as_json(counts: dict[str, int], *, is_counted: bool) -> None:
    for table in TABLES.values():
        _write(table_object(table) | ({"rows": counts.get(table.full_name)} if is_counted else {}))
    for view in views():
        _write(view_object(view) | ({"rows": None} if is_counted else {}))


def _count(rows: int | None) -> str:
    return "-" if rows is None else f"{rows:,}"


def _rows(lake: str) -> tuple[dict[str, int], dict[str, str]]:
    """Rows of the tables that are there, from what their files state; and why some cannot be read.

    Raises:
        UserError: there is no lake, or nothing of it can be read.
    """
    from pipeline.lake.delta_reader import count_rows  # noqa: PLC0415 - it loads Arrow

    found, unreadable = dict[str, int](), dict[str, str]()
    for name, table in TABLES.items():
        try:
            count = count_rows(str(lake), table)
        except UserError as error:
            unreadable[name] = str(error)
            continue
        if count is not None:
            found[name] = count
    if not found:
        raise UserError(next(iter(unreadable.values()))) if unreadable else no_lake(lake)
    return found, unreadable


def _warn(unreadable: Mapping[str, str]) -> None:
    """Say what cannot be read, and end with exit code 2, if there is anything."""
    errors = Console(stderr=True)
    for why in unreadable.values():
        errors.print(Text(f"warning: {printable(why)}", "yellow"), soft_wrap=True)
    if unreadable:
        raise typer.Exit(2)


def _columns(titles: list[str], rows: Sequence[tuple[str, ...]], lines: Lines | None = None) -> None:
    """A list without a frame, whose last column is broken into lines."""
    lines = lines or Lines()
    sizes = [max(map(columns_of, column)) for column in zip(titles, *rows, strict=True)]
    indent = sum(size + 2 for size in sizes[:-1])
    room = max(lines.width - indent, 20) if lines.width else 1 << 30
    for number, row in enumerate([tuple(titles), *rows]):
        style = "dim" if number == 0 else ""
        front = "".join(
            f"{text:>{size}}  " if titles[at] == "rows" else f"{text:<{size}}  "
            for at, (text, size) in enumerate(zip(row[:-1], sizes[:-1], strict=True))
        )
        for at, line in enumerate(_broken(row[-1], room)):
            lines.write([(front if at == 0 else " " * indent, style or ("bold" if at == 0 else "")), (line, style)])


def _broken(text: str, room: int) -> list[str]:
    import textwrap  # noqa: PLC0415

    return textwrap.wrap(text, room) or [""]


def no_such_table(name: str) -> str:
    """In words that there is no such table, and which was meant."""
    known = {one.full_name: one.full_name for one in TABLES.values()} | {view.name: view.name for view in views()}
    known |= {one.name: one.full_name for one in TABLES.values()}
    last = name.rpartition(".")[2]
    similar = get_close_matches(name, known, 1, _SIMILAR) or get_close_matches(last, known, 1, _SIMILAR)
    similar = similar or [one for one in known if last and last in one][:1]
    hint = f"did you mean {known[similar[0]]}? " if similar else ""
    return f"no table or view is called {name}: {hint}`wirelake tables` lists all"


def _reason(error: str) -> str:
    """Why a file of a table cannot be read, from Arrow's error, and what to do."""
    file = _NAMED_FILE.search(error)
    if file is None:
        return error.strip()
    path, detail = file["path"], error[file.end() :].rpartition("] ")[2].strip().rstrip(".")
    if "ermission denied" in detail:
        return why_unreadable(path) or f"{path}: permission denied. Run as the lake's owner"
    if "magic bytes" in detail or "Parquet" in detail:
        detail = "it is no Parquet file, or damaged. Restore it from a backup, or write the lake again"
    elif "No such file" in detail:
        detail = "it is gone. If another run has replaced the lake meanwhile, ask again"
    return f"{path}: {detail}"


def in_plain_words(error: str, query: str) -> str:
    """DuckDB's error on a name in a query, as a sentence; any other as it is."""
    if (missing := _MISSING.search(error)) is not None:
        name = missing["name"]
        table = next((one for one in TABLES.values() if name in (one.full_name, one.name)), None)
        if table is None:
            asked = re.search(rf"\w+\.{re.escape(name)}\b", query)
            return no_such_table(asked[0] if asked else name)
        if table.full_name not in query.lower():
            return f"no table is called {name}: did you mean {table.full_name}?"
        return f"this lake has no {name} yet: it is made when the first rows for it come (`wirelake stream`)"
    if _NO_COLUMN.search(error) is not None:
        return f"{error.partition(chr(10) * 2)[0].strip()}\n`wirelake describe TABLE` lists the columns of a table"
    if (stream := _STREAM_FAILS.search(error)) is not None:
        of_table = f"{stream['table'].replace('_', '.', 1)}: " if stream["table"] else ""
        return f"cannot read {of_table}{_reason(stream['why'] or stream['of_file'])}"
    what, names, _ = error.partition("\n\ntables: ")
    return f"{what}\n\n`wirelake tables` lists tables and views" if names else error
