"""The page that lists all groups and topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.analysis.live_metrics.groups import GroupNow
from pipeline.dashboard.queries.progress.all_groups import state_of
from tests.pipeline.dashboard.web.addresses import sample_lake
from tests.pipeline.dashboard.web.apps import frames, row_links, text_of
from tests.pipeline.lakes import diagnosed_lake


@pytest.mark.parametrize(
    ("now", "is_stuck", "state"),
    [
        (GroupNow("c", "g", members=1, lag=5, trend=9.0), True, ("stuck commits", False)),
        (GroupNow("c", "g", members=1, lag=5, refused=2), False, ("commits refused", False)),
        (GroupNow("c", "g", members=1, lag=5, trend=0.3), False, ("falls behind", False)),
        (GroupNow("c", "g", members=0, lag=5, trend=0.0), False, ("no member seen", False)),
        (GroupNow("c", "g", members=0, lag=0), False, ("caught up", True)),
        (GroupNow("c", "g", members=2, lag=5, trend=-3.0), False, ("catching up", True)),
        (GroupNow("c", "g", members=2, lag=5, trend=0.01), False, ("steady", True)),
        (GroupNow("c", "g", members=2), False, ("lag not known", True)),
    ],
)
def test_the_worst_that_holds_is_the_state(now: GroupNow, state: tuple[str, bool], *, is_stuck: bool) -> None:
    assert state_of(now, is_stuck=is_stuck) == state


@pytest.mark.slow
def test_what_is_written_without_a_reader_is_listed(use: Any, tmp_path: Path) -> None:
    lake = sample_lake(tmp_path)
    topics = frames(use(lake, "groups", range="all"))[1]
    assert [row["topic"] for row in topics if row["without a reader"] == "no reader was seen"] == ["java-0.9.0.1"]
    app = use(lake, "partitions", range="all")
    (unread,) = (rows for rows in frames(app) if "reader" in rows[0])
    assert [(row["topic"], row["partition"], row["offsets added"]) for row in unread] == [("java-0.9.0.1", 0, 36)]
    assert "1 partition; no reader was seen of 1." in text_of(app)
    link = row_links(app)[-1]
    assert "topic=java-0.9.0.1" in link
    shown = use(lake, "partitions", group="(no group)", topic="java-0.9.0.1", partition="0", range="all")
    assert "group=%28no+group%29" in link
    assert [box.value for box in shown.selectbox if box.label == "Group"] == ["(no group)"]


@pytest.mark.slow
def test_all_groups_are_listed_those_in_trouble_first(use: Any, tmp_path: Path) -> None:
    lake = diagnosed_lake(tmp_path / "lake", "healthy", "stuck_commit")
    app = use(lake, "groups", range="all")
    groups, topics = frames(app)
    first = groups[0]
    assert (first["group"], first["state"], first["members"], first["lag"]) == ("billing", "stuck commits", 2, 127)
    assert first["most behind on"] == "payments-2: 108"
    assert [row["state"] for row in groups[1:] if row["state"] not in ("caught up", "steady", "catching up")] == []
    assert (topics[0]["topic"], topics[0]["partitions"], topics[0]["its lag"]) == ("payments", 4, 108)
    links = row_links(app)
    assert links[0].startswith("/group?range=all&group=billing&cluster=")
    assert any(link.startswith("/partitions?range=all&topic=payments&") for link in links)
    assert "in trouble" in text_of(app)
