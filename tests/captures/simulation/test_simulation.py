"""A conversation that is played again is the same conversation, of other parties and at another time."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from decoder.kafka.apis import ApiKey
from pipeline.config.settings import StreamSettings
from tests.captures.simulation.conversation import PARTS, Conversation
from tests.captures.simulation.life import CLUSTER, Life
from tests.captures.simulation.pace import Pace
from tests.pipeline.analysis.rules.incidents import recordings

START_US = 1_800_000_000_000_000
COPY, LIFE, STRETCH = 7, 2, 10.0


@pytest.fixture(scope="module")
def conversation() -> Conversation:
    (recording,) = recordings(["healthy"])
    return Conversation.of(recording, StreamSettings())


@pytest.fixture(scope="module")
def pace(conversation: Conversation) -> Pace:
    return Pace(*conversation.span_us, START_US, STRETCH, Random(1))


@pytest.fixture(scope="module")
def played(conversation: Conversation, pace: Pace) -> dict[str, pa.Table]:
    """All of it, taken in five pieces."""
    life = Life(conversation, COPY, LIFE, pace)
    step = (pace.end_us - pace.start_us) // 4
    pieces = [life.until(pace.start_us + n * step) for n in range(1, 6)]
    assert life.is_over
    assert not any(rows.num_rows for rows in life.until(pace.end_us * 2).values())
    return {part: pa.concat_tables([piece[part] for piece in pieces]) for part in PARTS}


def us(rows: pa.Table, name: str) -> Any:
    return rows.column(name).cast(pa.int64())


def test_a_slower_clock_keeps_the_order_and_is_uneven() -> None:
    pace = Pace(0, 600_000_000, START_US, STRETCH, Random(3))
    recorded = np.arange(-5_000_000, 600_000_000, 1_000_000, dtype=np.int64)
    times = pace.played(recorded)
    assert (np.diff(times) > 0).all()
    assert times[0] == START_US - 5_000_000
    spans = np.diff(times[5:])
    assert 0.79 * STRETCH * 1e6 < spans.min() < spans.max() < 1.26 * STRETCH * 1e6
    assert spans.max() > 1.2 * spans.min()
    assert pace.end_us == pytest.approx(START_US + STRETCH * 600e6, rel=0.1)


def test_nothing_runs_faster_than_it_was_recorded() -> None:
    pace = Pace(0, 600_000_000, START_US, 1.0, Random(3))
    assert np.diff(pace.played(np.arange(0, 600_000_000, 1_000_000, dtype=np.int64))).min() >= 999_999


def test_every_row_is_played_once_in_its_time(conversation: Conversation, played: dict[str, pa.Table]) -> None:
    assert {part: rows.num_rows for part, rows in played.items()} == {
        part: rows.num_rows for part, rows in conversation.parts.items()
    }
    for part, rows in played.items():
        assert rows.schema == conversation.parts[part].schema
    assert len(pc.unique(played["exchanges"].column("exchange_id"))) == played["exchanges"].num_rows
    answered = played["exchanges"].filter(pc.is_valid(played["exchanges"].column("response_ts")))
    assert (np.diff(us(answered, "response_ts").to_numpy()) >= 0).all()


def test_who_waits_for_an_answer_waits_as_long(conversation: Conversation, played: dict[str, pa.Table]) -> None:
    """A Produce request is sent earlier, where its records were fetched before it was answered."""
    recorded, again = (
        pc.subtract(us(rows, "response_ts"), us(rows, "request_ts"))
        for rows in (conversation.parts["exchanges"], played["exchanges"])
    )
    is_produce = pc.equal(conversation.parts["exchanges"].column("api_key"), int(ApiKey.PRODUCE))
    assert pc.any(is_produce).as_py()
    assert recorded.filter(pc.invert(is_produce)) == again.filter(pc.invert(is_produce))
    assert pc.all(pc.greater_equal(again, recorded).filter(is_produce)).as_py()


def test_names_and_addresses_are_the_copys_own(conversation: Conversation, played: dict[str, pa.Table]) -> None:
    events, states = played["events"], played["states"]
    for rows, name in ((events, "topic"), (events, "client_id"), (states, "group_id"), (states, "member_id")):
        assert all(not value or value.startswith("team07.") for value in rows.column(name).unique().to_pylist())
    assert events.column("cluster").unique().to_pylist() == [CLUSTER]
    assert {server.partition(":")[0] for server in events.column("server").unique().to_pylist()} == {"10.2.7.1"}
    life = Life(conversation, COPY, LIFE, Pace(*conversation.span_us, START_US, 1, Random(1)))
    assert {fact.server for fact in life.facts()} <= set(events.column("server").to_pylist())
    bodies = [body for body in played["exchanges"].column("request_body").to_pylist() if body]
    assert any('"groupId":"team07.' in body or '"team07.' in body for body in bodies)


def test_offsets_and_generations_go_on_where_the_last_life_ended(
    conversation: Conversation, played: dict[str, pa.Table]
) -> None:
    before, after = conversation.parts["events"], played["events"]
    for name in ("offset", "high_watermark"):
        moved = pc.subtract(after.column(name), before.column(name)).to_pylist()
        stated = pc.and_(pc.greater_equal(before.column(name), 0), pc.is_valid(before.column("topic"))).to_pylist()
        grown = (LIFE * conversation.grown["events"]).tolist()
        assert [by for by, is_one in zip(moved, stated, strict=True) if is_one] == [
            by for by, is_one in zip(grown, stated, strict=True) if is_one
        ]
    joined = pc.max(conversation.parts["states"].column("generation")).as_py()
    least = pc.min(after.filter(pc.greater(before.column("generation"), 0)).column("generation")).as_py()
    assert least > joined
