"""What is told of a transaction that stays open: no more than is known of it."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.analysis.incidents.incidents import grouped
from pipeline.analysis.incidents.report import CERTAIN, LIKELY
from pipeline.analysis.rules.kafka.producers.aborting import by_hand
from tests.pipeline.analysis.incidents.made import SECOND, T0, found

_TOOL = "kafka-transactions.sh --bootstrap-server BROKER"


def hanging(**more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "topic": "t", "client_id": "app", "address": "h:1", "transactional_id": "tx-1", "partitions": ["t-0"],
        "timeout_us": 600 * SECOND, "age_us": 38 * SECOND, "silent_us": 37 * SECOND, "usual_us": 18_000,
    }  # fmt: skip
    (row,) = grouped([found("hanging_transaction", "tx-1", **(given | more))]).incidents
    return row


@pytest.mark.parametrize(
    ("more", "headline", "why", "certainty"),
    [
        (
            {},
            "app (h) keeps transaction tx-1 open on t, and nothing was seen of it for 37 s",
            "nothing was seen of it for 37 s, while others there were committed after 18 ms at most; its timeout of "
            "10 min has not passed.",
            LIKELY,
        ),
        (
            {"age_us": 630 * SECOND},
            "app (h) keeps transaction tx-1 open on t beyond its timeout of 10 min",
            "was not ended within its timeout of 10 min.",
            CERTAIN,
        ),
        (
            {"came_back_as": "tx-2"},
            "app (h) came back as tx-2 and left transaction tx-1 open on t",
            "its client started over as tx-2, and nothing ended what it had left open.",
            CERTAIN,
        ),
        (
            {"state": "resolved", "age_us": 630 * SECOND},
            "app (h) kept transaction tx-1 open on t beyond its timeout of 10 min: the coordinator aborted it",
            "its end without its producer asking for it, after 10 min.",
            CERTAIN,
        ),
        (
            {"state": "unknown", "known_until_us": T0},
            "app (h) keeps transaction tx-1 open on t, and nothing was seen of it for 37 s",
            "The capture has nothing after 11:06:40 UTC.",
            LIKELY,
        ),
    ],
)
def test_it_is_late_only_once_its_timeout_has_passed(
    more: dict[str, Any], headline: str, why: str, certainty: str
) -> None:
    row = hanging(**more)
    assert row["headline"] == headline
    assert row["reasoning"].endswith(why)
    assert row["confidence"] == certainty


def test_where_it_begins_is_filled_in_by_whoever_knows_it() -> None:
    assert (
        f"`{_TOOL} abort --topic t --partition 0 --start-offset 24`"
        in hanging(first_offsets={"t-0": 24})["immediate_action"]
    )
    left = found("hanging_transaction", "tx-1", transactional_id="tx-1", partitions=["t-0"])
    held = found("lso_stalled", "t-0", topic="t", partition=0, transactional_id="tx-1", first_offset=24)
    starved = found("read_committed_starved", "g/t-0", 1, group="g", topic="t", partition=0, last_stable_offset=24)
    for rows in ([left, held], [held], [starved]):
        (row,) = grouped(rows).incidents
        assert f"`{_TOOL} abort --topic t --partition 0 --start-offset 24`." in row["immediate_action"], row["rule"]


def test_of_what_is_over_no_offset_is_named_it_would_be_another_one() -> None:
    over = hanging(state="resolved", age_us=630 * SECOND, first_offsets={"t-0": 24})
    assert "--start-offset START_OFFSET`" in over["immediate_action"]


def test_what_is_not_known_can_be_found_out() -> None:
    assert by_hand(["t-0"], {}, "tx") == (
        f"`{_TOOL} describe-producers --topic t --partition 0` shows its start offset, "
        f"`{_TOOL} abort --topic t --partition 0 --start-offset START_OFFSET` ends it"
    )
    assert by_hand([], {}, "a b").startswith(f"`{_TOOL} describe --transactional-id 'a b'` names its partitions")
    four = by_hand([f"t-{n}" for n in range(4)], dict.fromkeys((f"t-{n}" for n in range(4)), 7), None)
    assert four.count("--start-offset 7`") == 3
    assert four.endswith(" and the same in 1 more")
