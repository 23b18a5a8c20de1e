"""The terms that the address has for the rows of a page, and which of them could be dropped where no row is left."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from pipeline.dashboard.queries.terms import Term, read_terms, write_terms
from pipeline.dashboard.web.format import code
from pipeline.dashboard.web.page_context import link_exactly
from pipeline.dashboard.web.parts.grid import Column

WHERE = "where"
"""Name of the terms in the address; ``scripts/tables.js`` writes them."""


def terms_here(fields: Collection[str]) -> tuple[Term, ...]:
    """The terms of the address, of these columns."""
    return read_terms(st.query_params.get(WHERE, ""), fields)


def link_without(page: str, terms: Sequence[Term], term: Term, columns: Sequence[Column], how_many: str) -> None:
    """A link to the same rows without one of the terms.

    Args:
        page: name of its file, without ``.py``.
        terms: those of the address.
        term: one of them.
        columns: their titles.
        how_many: rows that there are without it, in words.
    """
    title = next((column.title for column in columns if column.field == term.field), term.field)
    left = st.query_params.to_dict()
    rest = [one for one in terms if one != term]
    if rest:
        left[WHERE] = write_terms(rest)
    else:
        left.pop(WHERE, None)
    value = code(term.value) if term.value else "empty"
    link_exactly(page, f"Without {title} {'≠' if term.is_not else '='} {value}: {how_many}", **left)
