"""The picture of a conversation has a lane for each party and a step for each message, whatever they are called."""

from __future__ import annotations

from datetime import timedelta

import pytest

pytest.importorskip("altair")
from pipeline.dashboard.queries.traffic.conversation import Conversation, Message, Party
from pipeline.dashboard.web.pictures.conversation_picture import in_words, parties_picture
from tests.pipeline.dashboard.conftest import at

NAMES = ("c", "consumer-of-the-orders-service-in-region-eu-central-1-", "مستهلك-")


def conversation(clients: int, name: str) -> Conversation:
    parties = [*(Party(f"{name}{n}", "client") for n in range(clients)), Party("10.0.0.9:9092", "coordinator")]
    messages = [
        Message(at(n), n % clients, clients, "OffsetCommit v8", "g t-0 @1 → ok", f"e{n}", n == 3, n == 2,
                "3 commits of x" if n == 5 else "", timedelta(seconds=9) if n == 4 else None)
        for n in range(8)
    ]  # fmt: skip
    return Conversation(parties, messages)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clients", [1, 2, 6])
@pytest.mark.parametrize("dark", [False, True])
def test_each_party_has_a_lane_and_each_message_a_step(clients: int, name: str, *, dark: bool) -> None:
    spec = parties_picture(conversation(clients, name), dark=dark).to_dict()
    rows = [one for some in spec["datasets"].values() for one in some]
    heads = [one for one in rows if "role" in one]
    assert sorted({one["x"] for one in heads}) == list(range(clients + 1))
    steps = {one["at"] for one in rows if one.get("exchange_id")}
    assert steps == {0, 1, 2, 3, 5, 7, 8, 9}, "what is left out, and a pause, have a step of their own"
    assert {one["text"] for one in rows if "after" in one} == {"nothing else about it", "left out: 3 commits of x"}
    assert next(one["text"][0] for one in rows if one.get("is_wrong")) == "✕"


def test_it_is_drawn_as_a_file() -> None:
    vl_convert = pytest.importorskip("vl_convert")
    chart = parties_picture(conversation(6, NAMES[1]), dark=False, can_open=False).properties(width=900)
    assert "<svg" in vl_convert.vegalite_to_svg(chart.to_dict())


def test_who_does_not_see_it_gets_parties_and_refusals() -> None:
    words = in_words(conversation(2, "c"))
    assert words == "8 messages of c0 (client), c1 (client) and 10.0.0.9:9092 (coordinator); " + (
        "1 refused or without an answer (crossed)."
    )
