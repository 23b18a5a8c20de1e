"""Partitions that are written to while no group reads them: of hand-made rows and of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.dashboard.queries.progress.unread import NO_READER, unread, without_reader
from pipeline.dashboard.queries.scope import Scope, extent
from pipeline.dashboard.sql import connect, query
from pipeline.tables import OFFSET_TIMELINE
from tests.pipeline.dashboard.conftest import at
from tests.pipeline.lakes import diagnosed_lake
from tests.pipeline.rows import row, write

DAY = Scope(at(0), at(300))


def _event(seconds: float, topic: str, partition: int, kind: str, client: str = "", **values: Any) -> dict[str, Any]:
    given = {
        "ts": at(seconds), "topic": topic, "partition": partition, "kind": kind, "client_id": client, "cluster": "k",
        "group_id": "", "exchange_id": f"e{seconds}",
    }  # fmt: skip
    return row(OFFSET_TIMELINE, **{**given, **values})


def test_a_partition_without_a_group_says_who_reads_it_if_anyone(tmp_path: Path) -> None:
    write(tmp_path, OFFSET_TIMELINE, [
        _event(1, "lost", 0, "produced", "web", high_watermark=5),
        _event(2, "lost", 0, "produced", "", high_watermark=9),
        _event(3, "lost", 0, "fetched", "broker-2-fetcher-0", high_watermark=9),
        _event(1, "lost", 1, "produced", "web", high_watermark=1),
        _event(2, "lost", 1, "committed", "app", group_id="g", committed_offset=1),
        _event(1, "viewed", 0, "produced", "web", high_watermark=2), _event(2, "viewed", 0, "fetched", "live-view"),
        _event(1, "still", 0, "listed", "inspector", high_watermark=7),
        _event(1, "grown", 0, "listed", "inspector", high_watermark=7),
        _event(9, "grown", 0, "listed", "inspector", high_watermark=8),
    ])  # fmt: skip
    with connect(tmp_path) as connection:
        found = unread(connection, DAY)
    assert [(one["topic"], one["partition"], one["reader"], one["added"]) for one in found] == [
        ("lost", 0, NO_READER, 4), ("grown", 0, NO_READER, 1), ("viewed", 0, "read without a group, by live-view", 0),
    ]  # fmt: skip
    assert (found[0]["writers"], found[0]["high_watermark"], found[0]["written_ts"]) == (["web"], 9, at(2))
    topics = [
        {"cluster": "k", "topic": topic, "partitions": partitions}
        for topic, partitions in (("lost", 2), ("grown", 1), ("viewed", 1), ("still", 1))
    ]
    assert without_reader(found, topics) == [
        f"{NO_READER} of 1 of 2 partitions", NO_READER, "read without a group, by live-view", "",
    ]  # fmt: skip


@pytest.mark.slow
def test_what_a_share_group_gets_is_read(tmp_path: Path) -> None:
    lake = diagnosed_lake(tmp_path / "lake", "incidents/share_groups")
    written = "SELECT DISTINCT topic, partition FROM gold.offset_timeline WHERE kind = 'produced'"
    partitions = {(one["topic"], one["partition"]) for one in query(lake, written).to_pylist()}
    grouped = "SELECT count(*) AS n FROM gold.offset_timeline WHERE group_id <> ''"
    assert query(lake, grouped).to_pylist() == [{"n": 0}], "a share group commits no offset"
    with connect(lake) as connection:
        whole = extent(connection)
        assert whole is not None
        found = unread(connection, Scope(whole.first, whole.last))
    assert partitions
    assert [one for one in found if one["reader"] == NO_READER and (one["topic"], one["partition"]) in partitions] == []
