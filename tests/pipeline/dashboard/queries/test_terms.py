"""Terms of the address: whatever a value holds, it is read as it was written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.dashboard.queries.terms import Term, conditions_of, parameters_of, read_terms, write_terms

_VALUES = st.text("a;=%3B!", max_size=8) | st.sampled_from(["a;b=c", "", "\n\u202e"])
_TERMS = st.lists(st.builds(Term, st.sampled_from(["client_id", "status"]), _VALUES, st.booleans()), max_size=5)


@given(_TERMS)
def test_terms_are_read_as_they_were_written(terms: list[Term]) -> None:
    assert list(read_terms(write_terms(terms), {"client_id", "status"})) == terms


def test_what_is_no_term_is_left_out() -> None:
    text = "status=paired;nonsense;;secret=1;status!=a%3Bb=c"
    assert read_terms(text, {"status"}) == (Term("status", "paired"), Term("status", "a;b=c", is_not=True))
    assert read_terms("", {"status"}) == ()


def test_a_value_is_never_part_of_the_sql() -> None:
    terms = (Term("status", "' OR true --"), Term("status", "x", is_not=True), Term("status", ""))
    assert conditions_of(terms, {"status": "status"}) == [
        "status = $term_0", "coalesce(status, '') <> $term_1", "coalesce(status, '') = $term_2",
    ]  # fmt: skip
    assert parameters_of(terms) == {"term_0": "' OR true --", "term_1": "x", "term_2": ""}
