"""What the address of a page names and the lake has not is said to be absent: nothing else is shown in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.tables import WRITTEN_BY_DIAGNOSE
from tests.pipeline.dashboard.web.apps import frames, text_of

pytestmark = pytest.mark.slow

PLACE = {"group": "g", "topic": "orders", "partition": "0", "cluster": "k"}


@pytest.mark.parametrize(
    ("page", "address", "words"),
    [
        ("group", {"group": "nobody"}, "There is no group `nobody` in this lake."),
        ("group", {"group": "g", "cluster": "nowhere"}, "There is no group `g` in cluster `nowhere` in this lake."),
        ("partitions", {"group": "nobody"}, "There is no group `nobody` in this lake."),
        ("partitions", {"topic": "nothing"}, "There is no topic `nothing` in this lake."),
        ("partitions", PLACE | {"group": "nobody"}, "There is no group `nobody` in this lake."),
        ("partitions", PLACE | {"topic": "nothing"}, "There is no topic of group `g` named `nothing` in this lake."),
        (
            "partitions", PLACE | {"partition": "99"},
            "There is no partition of topic `orders` of group `g` named `99` in this lake.",
        ),
        ("partitions", {"partition": "x"}, "There is no partition `x` in this lake."),
        (
            "partitions", PLACE | {"cluster": "nowhere"},
            "There is no cluster of partition `0` of topic `orders` of group `g` named `nowhere` in this lake.",
        ),
        ("transactions", {"transaction": "none"}, "There is no transactional id `none` in this lake."),
        ("incident", {"incident": "none"}, "There is no such incident in this lake, or not any more."),
        ("exchanges", {"exchange": "none"}, "There is no exchange `none` in this lake"),
        ("exchanges", {"finding": "none"}, "There is no such finding in this lake, or not any more."),
        ("exchanges", {"partition": "x"}, "Not a partition's number: x."),
        ("exchanges", {"slower": "x"}, "Not a duration: x."),
        ("sequence", {"exchange": "none"}, "There is no exchange `none` in this lake"),
        ("compare", {"exchange": "none"}, "There is no exchange `none` in this lake"),
        ("home", {"only": "nowhere"}, r"There is no cluster nowhere in this lake\. It has k\."),
    ],
)  # fmt: skip
def test_a_name_that_is_not_there_is_said_to_be_absent(
    use: Any, hand_made_lake: Path, page: str, address: dict[str, str], words: str
) -> None:
    app = use(hand_made_lake, page, **address)
    assert words in text_of(app)
    assert app.get("vega_lite_chart") == []
    if address.keys() != {"exchange"}:
        assert frames(app) == []


def test_another_name_can_be_chosen_then(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "group", group="nobody")
    assert app.selectbox(key="group").value is None
    app.run()
    assert app.selectbox(key="group").value is None  # nobody has chosen
    app.selectbox(key="group").set_value("classic").run()
    assert "Group classic: members a, b" in text_of(app).replace("\\", "")
    assert "classic" in app.query_params["group"]


def test_what_was_seen_at_another_time_is_said_to_be_there(use: Any, hand_made_lake: Path) -> None:
    early = {"range": "from … to", "from": "2026-03-01 12:00:00Z", "to": "2026-03-01 12:00:01Z"}
    app = use(hand_made_lake, "group", group="new", **early)
    assert "Nothing was seen of group `new` from 2026-03-01 12:00:00 to 12:00:01 UTC." in text_of(app)
    (link,) = [one for one in app.get("page_link") if one.proto.label == "Look in the whole lake"]
    assert "group=new" in link.proto.query_string
    assert "range=all" in link.proto.query_string


def test_the_quality_page_advises_what_runs(use: Any, hand_made_lake: Path) -> None:
    assert f"Run `wirelake check --lake {hand_made_lake}`." in text_of(use(hand_made_lake, "quality"))


def test_the_quality_page_of_a_diagnosis_advises_no_check(use: Any, hand_made_lake: Path) -> None:
    mark = hand_made_lake / WRITTEN_BY_DIAGNOSE
    mark.touch()
    try:
        text = text_of(use(hand_made_lake, "quality"))
    finally:
        mark.unlink()
    assert "wirelake check" not in text
    assert "Quality checks run on lakes of `wirelake stream` only." in text
