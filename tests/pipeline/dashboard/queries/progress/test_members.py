"""A client that dies and comes again is one in a picture; processes that share a client id are several."""

from __future__ import annotations

from typing import Any

from pipeline.dashboard.queries.progress.members import (
    OTHERS,
    ends_of_lives,
    label_of,
    label_of_client,
    members,
    restarted_clients,
)
from tests.pipeline.dashboard.conftest import at


def owned(client: str, member: str, begin: float, end: float) -> dict[str, Any]:
    return {"client_id": client, "member_id": member, "owned_from": at(begin), "owned_until": at(end)}


LOOP = [owned("dies", f"m{n}", 10 * n, 10 * n + 8) for n in range(9)]
TWINS = [owned("twin", f"t{n}", n, 100) for n in range(4)]


def test_a_client_whose_members_follow_each_other_was_restarted() -> None:
    assert restarted_clients([*LOOP, *TWINS, owned("once", "o", 0, 100)]) == {"dies"}
    assert restarted_clients(LOOP[:2]) == set()


def test_all_lives_of_a_restarted_client_have_one_label_and_one_colour() -> None:
    keys = [(row["client_id"], row["member_id"]) for row in (*LOOP, *TWINS)]
    shown = members(keys, restarted={"dies"})
    assert {label_of(shown, "dies", f"m{n}") for n in range(9)} == {"dies"}
    assert len({label_of(shown, "twin", f"t{n}") for n in range(4)}) == 4
    assert label_of_client(shown, "dies") == "dies"
    assert label_of_client(shown, "twin") == OTHERS
    assert len({one.label for one in shown}) == 5


def test_each_life_but_the_last_ends() -> None:
    assert ends_of_lives([*reversed(LOOP), *TWINS]) == [(at(10 * n + 8), "dies", f"m{n}") for n in range(8)]
