"""Terms of the address: that a column has a value, or has another one; read, written, and as conditions of SQL.

``client_id=billing-1;status!=paired``: terms are joined by ``;``, and in values ``%`` and ``;`` are written as ``%25``
and ``%3B``. ``scripts/tables.js`` reads and writes the same for rows that the browser has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TERM = re.compile(r"(\w+)(!?=)(.*)", re.DOTALL)
_MOST = 20
"""Terms that are read, more than a person clicks."""


@dataclass(frozen=True, slots=True)
class Term:
    """That a row has a value, as the page shows it, in a column.

    Attributes:
        field: the column.
        value: the value as text; empty: the row has none.
        is_not: the row must not have it.
    """

    field: str
    value: str
    is_not: bool = False


def read_terms(text: str, fields: Collection[str]) -> tuple[Term, ...]:
    """The terms of an address; what names none of ``fields`` is left out."""
    found = (_TERM.fullmatch(part) for part in text.split(";")[:_MOST])
    return tuple(
        Term(one[1], one[3].replace("%3B", ";").replace("%25", "%"), one[2] == "!=")
        for one in found
        if one is not None and one[1] in fields
    )


def write_terms(terms: Sequence[Term]) -> str:
    """Terms as an address has them."""
    return ";".join(
        f"{one.field}{'!=' if one.is_not else '='}{one.value.replace('%', '%25').replace(';', '%3B')}" for one in terms
    )


def conditions_of(terms: Sequence[Term], expressions: Mapping[str, str]) -> list[str]:
    """Conditions of SQL, whose ``$names`` are those of :func:`parameters_of`.

    Args:
        terms: of fields that ``expressions`` has.
        expressions: of each field what it is in SQL: a text, or null.
    """
    return [_condition(expressions[one.field], f"term_{index}", one) for index, one in enumerate(terms)]


def parameters_of(terms: Sequence[Term]) -> dict[str, Any]:
    """Values of the ``$names`` of :func:`conditions_of`."""
    return {f"term_{index}": one.value for index, one in enumerate(terms)}


def _condition(expression: str, name: str, term: Term) -> str:
    if term.is_not:
        return f"coalesce({expression}, '') <> ${name}"
    if not term.value:
        return f"coalesce({expression}, '') = ${name}"
    return f"{expression} = ${name}"  # plain equality lets files be left out by their least and greatest
