"""Arrays find where a log became shorter, as a loop over its answers does."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.rules.kafka.brokers import log_ends
from pipeline.analysis.rules.kafka.brokers.log_ends import Fall, LogEnds, _merged, falls

Answer = dict[str, Any]
SECOND = 1_000_000
_LEAST_S = 5


def plain_falls(rows: list[Answer]) -> list[Fall]:
    """The same, answer by answer."""
    found: list[Fall] = []
    acknowledged, watermarks = list[Answer](), defaultdict[str, list[Answer]](list)
    for number, row in enumerate(rows):
        seen = acknowledged if row["is_write"] else watermarks[row["whose"]]
        before = max((one for one in seen if one["us"] < row["asked_us"]), key=lambda one: one["ended"], default=None)
        stated = row["base"] if row["is_write"] else row["ended"]
        if (
            before is not None
            and stated < before["ended"]
            and (not row["is_repeated"] if row["is_write"] else _stays(rows, number, before["ended"]))
        ):
            found.append(
                Fall(
                    before["ended"], stated, before["us"], row["us"], (before["exchange_id"], row["exchange_id"]),
                    is_given_again=row["is_write"], servers=tuple(dict.fromkeys((before["server"], row["server"]))),
                )
            )  # fmt: skip
            acknowledged, watermarks = [], defaultdict(list)
        if not row["is_write"]:
            watermarks[row["whose"]].append(row)
        acknowledged.append(row)
    return _merged(found)


def _stays(rows: list[Answer], number: int, before: int) -> bool:
    row = rows[number]
    alike = [
        one for one in rows[number:]
        if not one["is_write"] and one["whose"] == row["whose"] and one["us"] <= row["us"] + 2 * _LEAST_S * SECOND
    ]  # fmt: skip
    is_seen = rows[-1]["us"] - row["us"] >= _LEAST_S * SECOND and alike[-1]["us"] - row["us"] >= _LEAST_S * SECOND
    return is_seen and len(alike) >= 3 and all(one["ended"] < before for one in alike)


def table_of(rows: list[Answer], place: int = 0) -> pa.Table:
    return pa.Table.from_pylist([{"place": place, **row} for row in rows])


@st.composite
def answers(draw: st.DrawFn) -> list[Answer]:
    rows, us = [], 0
    for number in range(draw(st.integers(1, 60))):
        us += draw(st.sampled_from([0, 1, SECOND // 2, SECOND, 3 * SECOND]))
        is_write = draw(st.booleans())
        base = draw(st.integers(0, 12))
        server = draw(st.sampled_from(["a:9092", "b:9092"]))
        is_listed = not is_write and draw(st.booleans())
        rows.append(
            {
                "us": us, "asked_us": us - draw(st.sampled_from([0, 1, SECOND, 4 * SECOND])), "base": base,
                "ended": base + draw(st.integers(1, 3)) if is_write else base, "is_write": is_write,
                "is_repeated": is_write and draw(st.integers(0, 3)) == 0,
                "whose": "" if is_write or is_listed else server, "server": server, "exchange_id": f"x-{number:03}",
            }
        )  # fmt: skip
    return rows


@pytest.mark.parametrize("block", [1, 3, 1024])
@given(rows=answers())
@settings(max_examples=300, deadline=None)
def test_as_a_loop_does(block: int, rows: list[Answer]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_ends, "_FIRST_BLOCK", block)
        ((place, ends),) = LogEnds.by_place(table_of(rows, 7))
        assert place == 7
        assert falls(ends) == plain_falls(rows)


def test_partitions_are_told_apart() -> None:
    def written(us: int, base: int) -> Answer:
        return {
            "us": us, "asked_us": us - 1, "base": base, "ended": base + 5, "is_write": True, "is_repeated": False,
            "whose": "", "server": "a:9092", "exchange_id": f"x-{us}",
        }  # fmt: skip

    both = pa.concat_tables(
        [table_of([written(10, 0), written(20, 5)], 0), table_of([written(15, 5), written(25, 0)], 1)]
    )
    assert [
        (place, [(one.before, one.after, one.us) for one in falls(ends)]) for place, ends in LogEnds.by_place(both)
    ] == [
        (0, []),
        (1, [(10, 0, 25)]),
    ]
