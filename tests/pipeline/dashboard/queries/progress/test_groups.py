"""What a group did: owners, who waited for whom, lag, pauses between commits; of hand-made rows and a recording."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.dashboard.queries.progress import groups
from pipeline.dashboard.queries.progress.groups import Group
from pipeline.dashboard.queries.progress.rebalances import classic_rebalances, rebalances
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.sql import connect
from pipeline.errors import UserError
from pipeline.tables import ASSIGNMENTS, EXCHANGES, FRAMES, OFFSET_TIMELINE, STATE_EVENTS, TABLES
from tests.pipeline.dashboard.conftest import MAX, at
from tests.pipeline.lakes import diagnosed_lake
from tests.pipeline.rows import row, write

pytest.importorskip("altair")
from pipeline.dashboard.charts import group_chart
from pipeline.dashboard.web.pictures.colours import DARK, LIGHT
from pipeline.dashboard.web.pictures.group_picture import group_picture, in_words

DAY = Scope(at(0), at(300))
G = Group("k", "g")


def said(seconds: float, kind: str, member: str, generation: int, asked: float | None = None, error: int = 0) -> Any:
    us, asked_us = (int(at(one).timestamp() * 1e6) for one in (seconds, seconds if asked is None else asked))
    return SimpleNamespace(
        kind=kind, member_id=f"{member}-m", generation=generation, client_id=member, client="10.0.0.1:5", us=us,
        asked_us=asked_us, exchange_id=f"{kind}{seconds}", error_code=error,
    )  # fmt: skip


def test_whoever_goes_on_with_its_work_is_who_the_others_wait_for() -> None:
    rows = [
        said(1, "join", "a", 1, asked=0.9),
        said(10, "heartbeat", "a", 1, error=27),
        said(12, "heartbeat", "a", 1, error=27),
        said(15, "join", "a", 2, asked=14),
        said(15, "join", "b", 2, asked=5),
    ]
    first, second = classic_rebalances(rows, {2: at(16)})
    assert (first.generation, first.culprit, first.members) == (1, None, 1)
    assert (second.began, second.ended, second.waited) == (at(5), at(16), 11.0)
    assert [(wait.client_id, wait.seconds) for wait in second.waits] == [("b", 10.0), ("a", 1.0)]
    assert (second.culprit, second.why) == (("a", "a-m"), "continued with its work and asked late")


def test_a_member_that_is_silent_is_named_and_one_that_left_is_not() -> None:
    before = [said(1, "join", "a", 1), said(1, "join", "b", 1), said(3, "heartbeat", "a", 1)]
    after = [said(15, "join", "b", 2, asked=5)]
    assert classic_rebalances([*before, *after], {})[1].culprit == ("a", "a-m")
    left = said(4, "leave", "a", -1)
    assert classic_rebalances([*before, left, *after], {})[1].culprit is None


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partition 0 goes from a to b; a waits in JoinGroup, and is a static member."""
    folder = tmp_path_factory.mktemp("group")

    def commit(seconds: float, partition: int, who: str, lag: int = 3) -> dict[str, Any]:
        return row(
            OFFSET_TIMELINE, cluster="k", topic="orders", partition=partition, group_id="g", kind="committed",
            ts=at(seconds), client_id=who, member_id=f"{who}-m", event_offset=5, committed_offset=5, lag=lag,
            exchange_id=f"c{seconds}", error_name="NONE",
        )  # fmt: skip

    def state(seconds: float, kind: str, who: str, generation: int, **values: Any) -> dict[str, Any]:
        named = {"cluster": "k", "group_id": "g", "member_id": f"{who}-m", "client_id": who, "error_code": 0}
        return row(
            STATE_EVENTS, exchange_id=f"{kind}{seconds}{who}", ts=at(seconds), kind=kind, generation=generation,
            group_protocol="classic", **{**named, **values},
        )  # fmt: skip

    def given(seconds: float, generation: int, who: str, partition: int) -> dict[str, Any]:
        return row(
            ASSIGNMENTS, cluster="k", group_id="g", generation=generation, member_id=f"{who}-m", client_id=who,
            topic="orders", partition=partition, group_protocol="classic", first_ts=at(seconds), last_ts=at(seconds),
        )  # fmt: skip

    filled = {
        OFFSET_TIMELINE.full_name: [
            *(commit(n, 0, "a") for n in (10, 11, 12, 20)),
            *(commit(n, 0, "b", lag=MAX) for n in (60, 62)),
            *(commit(n, 1, "a") for n in (10, 30)),
        ],
        STATE_EVENTS.full_name: [
            state(9, "join", "a", 1), state(9.5, "assignment", "a", 1),
            state(55, "join", "a", 2), state(55, "join", "b", 2), state(56, "assignment", "b", 2),
        ],
        ASSIGNMENTS.full_name: [
            given(9.5, 1, "a", 0), given(9.5, 1, "a", 1), given(56, 2, "a", 1), given(56, 2, "b", 0),
        ],
        EXCHANGES.full_name: [
            *(row(EXCHANGES, exchange_id=f"x{n}", ts=at(n)) for n in (0, 300)),
            row(
                EXCHANGES, exchange_id="join55a", connection_id="j", api_key=11, ts=at(50), request_ts=at(50),
                request_seq=1,
            ),
            row(
                EXCHANGES, exchange_id="join55b", connection_id="j", api_key=11, ts=at(54), request_ts=at(54),
                request_seq=2,
            ),
        ],
        FRAMES.full_name: [
            row(FRAMES, connection_id="j", direction="request", seq=number, ts=at(seconds), body=body)
            for number, seconds, body in (
                (1, 50, '{"groupId":"g","groupInstanceId":"till-7"}'), (2, 54, "{}"),
            )
        ],
    }  # fmt: skip
    for name, table in TABLES.items():
        write(folder, table, filled.get(name, []))
    return folder


def test_a_group_has_owners_members_lag_and_pauses(lake: Path) -> None:
    with connect(lake) as connection:
        assert groups.groups(connection, DAY) == [G]
        shown = groups.group_seen(connection, DAY, G)
        rhythm = groups.rhythm(connection, DAY, G)
        assert groups.group_seen(connection, DAY, Group("k", "other")) is None
    assert shown is not None
    assert (shown.scope.start, shown.scope.end, shown.labels) == (at(9), at(62), ["a", "b"])
    assert [(r["partition"], r["member_id"], r["owned_from"], r["owned_until"]) for r in shown.owned] == [
        (0, "a-m", at(9.5), at(56)), (1, "a-m", at(9.5), at(56)),
        (0, "b-m", at(56), at(62)), (1, "a-m", at(56), at(62)),
    ]  # fmt: skip
    assert [(r["member_id"], r["instance"], r["left_ts"]) for r in shown.seen_members] == [
        ("a-m", "till-7", None),
        ("b-m", None, None),
    ]
    assert [(one.generation, one.seconds, one.waited) for one in shown.rebalances] == [(1, 0.5, 0.0), (2, 6.0, 6.0)]
    assert {(r["partition"], r["lag"]) for r in shown.lag.to_pylist()} == {(0, 3), (0, MAX), (1, 3)}
    assert max(shown.lag.to_pylist(), key=lambda r: r["ended"])["ended"] == at(62)
    assert shown.partitions == [("orders", 0), ("orders", 1)]
    assert [(r["partition"], r["client_id"], r["commits"], r["usual"], r["longest"], r["silent"]) for r in rhythm] == [
        (1, "a", 2, 20.0, 20.0, 270.0), (0, "a", 4, 1.0, 8.0, 280.0), (0, "b", 2, 2.0, 2.0, 238.0),
    ]  # fmt: skip


def test_the_picture_has_one_colour_for_a_member_and_no_time_of_its_own(lake: Path) -> None:
    chart = group_chart(lake, "g", width=600).to_dict()
    assert [part["width"] for part in chart["vconcat"]] == [600] * 4
    assert chart["background"] == LIGHT.background
    scales = {
        str(layer["encoding"]["color"]["scale"])
        for part in chart["vconcat"]
        for layer in part.get("layer", [part])
        if layer["encoding"].get("color", {}).get("field") == "member"
    }
    assert scales == {str({"domain": ["a", "b"], "range": list(LIGHT.members[:2])})}
    assert group_chart(lake, "g", dark=True).to_dict()["background"] == DARK.background
    with connect(lake) as connection:
        shown = groups.group_seen(connection, DAY, G)
    assert shown is not None
    assert list(group_picture(shown, dark=False)) == ["owners", "waits", "lag", "gaps"]
    assert in_words(shown) == "Group g: members a, b; 2 rebalances, the longest took 6.0 s."
    with pytest.raises(UserError, match="nothing was seen of group nobody"):
        group_chart(lake, "nobody")


def test_a_young_lake_has_the_lag_of_a_group(lake: Path, tmp_path: Path) -> None:
    write(tmp_path, OFFSET_TIMELINE, [
        row(OFFSET_TIMELINE, cluster="k", topic="t", partition=0, group_id="g", ts=at(1), lag=1, exchange_id="e"),
    ])  # fmt: skip
    with connect(tmp_path) as connection:
        assert groups.groups(connection, DAY) == [G]
        shown = groups.group_seen(connection, DAY, G)
        assert rebalances(connection, DAY, "k", "g") == []
    assert shown is not None
    assert list(group_picture(shown, dark=True)) == ["lag"]


def test_of_a_recording_the_stuck_member_is_the_one_that_kept_the_other_waiting(tmp_path: Path) -> None:
    with connect(diagnosed_lake(tmp_path / "lake", "stuck_commit")) as connection:
        everything = Scope(at(-1e9), at(1e9), "kafka")
        (billing,) = [one for one in groups.groups(connection, everything) if one.group_id == "billing"]
        shown = groups.group_seen(connection, everything, billing)
    assert shown is not None
    alone, both = shown.rebalances
    assert (alone.members, alone.culprit) == (1, None)
    assert both.culprit is not None
    assert (both.members, both.culprit[0], both.waits[0].client_id) == (2, "billing-1", "billing-2")


def test_a_streams_group_has_epochs_and_names_its_members(tmp_path: Path) -> None:
    for table in (ASSIGNMENTS, EXCHANGES, OFFSET_TIMELINE):
        write(tmp_path, table, [])
    values = {"cluster": "k", "group_id": "g", "group_protocol": "streams", "kind": "assignment", "error_code": 0}
    write(tmp_path, STATE_EVENTS, [
        row(STATE_EVENTS, member_id=f"{who}-m", client_id=who, client="10.0.0.1:5", generation=epoch, ts=at(second),
            exchange_id=f"e{second}", **values)
        for second, who, epoch in [(1, "a", 1), (20, "a", 2), (21, "b", 2)]
    ])  # fmt: skip
    with connect(tmp_path) as connection:
        found = rebalances(connection, DAY, "k", "g")
        shown = groups.group_seen(connection, DAY, G)
    assert [(one.protocol, one.generation, one.members, one.ended) for one in found] == [
        ("streams", 1, 1, at(1)), ("streams", 2, 2, at(21)),
    ]  # fmt: skip
    assert shown is not None
    assert [member.client_id for member in shown.members] == ["a", "b"]


def test_a_partition_whose_topic_has_no_name_yet_is_in_no_picture(tmp_path: Path) -> None:
    for table in (EXCHANGES, OFFSET_TIMELINE):
        write(tmp_path, table, [])
    values = {"cluster": "k", "group_id": "g", "group_protocol": "consumer", "client_id": "a", "generation": 1}
    given = {"member_id": "m", "first_ts": at(1), "last_ts": at(1), "topic_id": None}
    write(tmp_path, ASSIGNMENTS, [
        row(ASSIGNMENTS, topic=topic, partition=0, **given, **values) for topic in (None, "orders")
    ])  # fmt: skip
    write(tmp_path, STATE_EVENTS, [
        row(STATE_EVENTS, member_id="m", client="10.0.0.1:5", ts=at(1), exchange_id="e1", kind="assignment",
            error_code=0, **values)
    ])  # fmt: skip
    with connect(tmp_path) as connection:
        shown = groups.group_seen(connection, DAY, G)
    assert shown is not None
    assert {row["topic"] for row in shown.owned} == {None, "orders"}
    assert shown.partitions == [("orders", 0)]
