"""Introductions of producers: what is looked up is what a search through all of them finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.rules.kafka.producers.introductions import Introduced, Introductions

_TIMES = st.integers(0, 12)
_SOME = st.lists(
    st.builds(
        Introduced,
        us=_TIMES,
        transactional_id=st.sampled_from("abc"),
        timeout_us=st.integers(0, 5),
        client_id=st.sampled_from(["c", "d", None]),
        host=st.sampled_from("hi"),
        exchange_id=st.text("xyz", max_size=3),
        server=st.sampled_from("st"),
    ),
    max_size=12,
).map(lambda some: sorted(some, key=lambda one: (one.us, one.exchange_id)))


@given(_SOME, st.sampled_from("abc"), _TIMES, _TIMES)
def test_what_an_id_asked_for_and_when(some: list[Introduced], name: str, at_us: int, until_us: int) -> None:
    known = Introductions(some)
    own = [one for one in some if one.transactional_id == name]
    before = [one for one in own if one.us <= at_us]
    assert known.timeout_us(name, at_us) == max((one.timeout_us for one in before), default=0)
    assert known.is_taken_anew(name, at_us, until_us) == any(at_us < one.us <= until_us for one in own)
    last = (before or own or [None])[-1]
    assert known.coordinator(name, at_us) == (last and last.server)


@given(_SOME, st.sampled_from(["c", "d", None]), st.sampled_from("hi"), _TIMES)
def test_the_heir_begins_anew_under_an_id_that_nobody_had(
    some: list[Introduced], client_id: str | None, host: str, after_us: int
) -> None:
    before = {one.transactional_id for one in some if one.us <= after_us}
    heirs = [
        one
        for one in some
        if one.us > after_us
        and client_id is not None
        and (one.client_id, one.host) == (client_id, host)
        and one.transactional_id not in before
    ]
    found = Introductions(some).heir(client_id, host, after_us)
    assert (found and (found.us, found.exchange_id)) == (
        heirs[0] and (heirs[0].us, heirs[0].exchange_id) if heirs else None
    )
