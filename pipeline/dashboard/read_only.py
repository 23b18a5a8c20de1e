"""Whether a query only reads: DuckDB's own parser shows what is in it; only what is known to be harmless passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from pipeline.errors import UserError

_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
"""Kinds of queries that only read. Others, e.g. ``WITH gone AS (DELETE …)``, DuckDB calls SELECT as well."""
_TABLE_FUNCTIONS = {
    "range", "generate_series", "unnest", "repeat", "repeat_row", "summary", "json_each", "json_tree", "explode",
    "histogram", "histogram_values", "pg_timezone_names", "icu_calendar_names", "test_all_types", "duckdb_columns",
    "duckdb_functions", "duckdb_keywords", "duckdb_schemas", "duckdb_tables", "duckdb_types", "duckdb_views",
}  # fmt: skip
"""Functions that are read as a table. Others open files, run a text as a query, log, write, or end the process."""
REFUSED_FUNCTIONS = {
    "currval", "json_execute_serialized_sql", "json_serialize_plan", "nextval", "query", "query_table", "setseed",
    "setval", "write_log",
}  # fmt: skip
"""Functions that change something, or look at another text as a query."""
_MOST_TEXT = 100_000
"""Characters of a query: the parser's work grows with them."""
_ONE_QUERY = "give one query: the lake is read-only, so it begins with SELECT, WITH, FROM or DESCRIBE"


@dataclass(frozen=True, slots=True)
class Query:
    """A query that only reads.

    Attributes:
        sql: its text.
        words: every text in its tree, in small letters: names of tables are among them.
        asks_for_all: it may name tables in a way that ``words`` does not show, e.g. ``SHOW TABLES``.
    """

    sql: str
    words: frozenset[str]
    asks_for_all: bool


def read_only(connection: duckdb.DuckDBPyConnection, sql: str) -> Query:
    """What ``sql`` asks, if it is one query and only reads.

    ``EXPLAIN`` and ``EXPLAIN ANALYZE``, which runs it, are put back before a query that only reads.

    Args:
        connection: any; only its parser is used.
        sql: a text of a stranger.

    Raises:
        UserError: it is none, more than one, or does not only read.
        duckdb.Error: it cannot be parsed.
    """
    if len(sql) > _MOST_TEXT:
        raise UserError(f"the query has {len(sql):,} characters; {_MOST_TEXT:,} are read")
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise UserError(_ONE_QUERY)
    match statements[0].type.name:
        case "SELECT":
            return _checked(connection, statements[0].query, "")
        case "EXPLAIN":
            prefix, inner = _explained(statements[0].query)
            return _checked(connection, inner, prefix)
        case _:
            raise UserError(_ONE_QUERY)


def _explained(sql: str) -> tuple[str, str]:
    """``EXPLAIN`` or ``EXPLAIN ANALYZE``, and what follows: options stay with it, and it is refused for them."""
    text = sql.encode()
    starts = [start for start, kind in duckdb.tokenize(sql) if not str(kind).endswith("comment")]  # in bytes
    second = text[starts[1] :][: len("ANALYZE")].upper() if starts[1:] else b""
    prefix, count = ("EXPLAIN ANALYZE ", 2) if second == b"ANALYZE" else ("EXPLAIN ", 1)
    return prefix, text[starts[count] :].decode(errors="replace") if starts[count:] else ""


def _checked(connection: duckdb.DuckDBPyConnection, sql: str, prefix: str) -> Query:
    words: set[str] = set()
    asks_for_all = False
    for item in _dictionaries(_tree(connection, sql)):
        kind, function = item.get("type"), item.get("function_name")
        if ("cte_map" in item or (isinstance(kind, str) and kind.endswith("_NODE"))) and kind not in _NODES:
            raise UserError(_ONE_QUERY)
        if isinstance(function, str) and function.lower() in REFUSED_FUNCTIONS:
            raise _refused(function)
        if kind == "TABLE_FUNCTION":
            name = str(item["function"]["function_name"]).lower()
            if name not in _TABLE_FUNCTIONS:
                raise _refused(name)
            asks_for_all |= name.startswith(("duckdb_", "histogram"))
        asks_for_all |= kind == "SHOW_REF"
        words.update(value.lower() for value in item.values() if isinstance(value, str))
    return Query(prefix + sql, frozenset(words), asks_for_all)


def _refused(function: str) -> UserError:
    return UserError(f"the function {function} is not for queries that read the lake and nothing else")


def _tree(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    found = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
    try:
        tree = json.loads(found[0]) if found else {}
    except RecursionError as error:
        raise UserError("the query is nested too deeply") from error
    if tree.get("error") is not False or len(tree["statements"]) != 1:
        raise UserError(_ONE_QUERY)
    return dict(tree)


def _dictionaries(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    rest: list[Any] = [tree]
    while rest:
        match rest.pop():
            case dict() as item:
                yield item
                rest += item.values()
            case list() as items:
                rest += items
