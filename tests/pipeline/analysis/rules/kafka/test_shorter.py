"""Which questions are below an end that was answered before: by arrays as by comparing each with each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.rules.kafka.brokers.shorter import below

_LARGEST = 2**63 - 1
OFFSETS = st.sampled_from((0, 1, 2, 3, 5, _LARGEST - 1, _LARGEST))
STATED = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), OFFSETS), max_size=12)


def columns(rows: list[tuple[int, int, int]]) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    return [np.array([row[number] for row in rows], np.int64) for number in range(3)]


@given(ends=STATED, questions=STATED)
def test_a_question_sees_what_was_answered_before(
    ends: list[tuple[int, int, int]], questions: list[tuple[int, int, int]]
) -> None:
    found = below(*columns(ends), *columns(questions))
    assert found.tolist() == [
        any(key == own and us < asked_us and offset > asked for key, us, offset in ends)
        for own, asked_us, asked in questions
    ]
