"""The picture as a chart of Vega-Lite: what is drawn of the hand-made lake, and who is drawn how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.dashboard.queries.progress.members import Member
from pipeline.dashboard.queries.progress.offsets import offsets
from pipeline.dashboard.queries.progress.partitions import Place
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.sql import connect
from pipeline.errors import UserError
from pipeline.tables import ASSIGNMENTS, EXCHANGES, OFFSET_TIMELINE, TABLES
from tests.pipeline.dashboard.conftest import HOSTILE, at, stable
from tests.pipeline.rows import row, write

pytest.importorskip("altair")
from pipeline.dashboard.charts import offsets_chart
from pipeline.dashboard.web.pictures.colours import DARK, LIGHT
from pipeline.dashboard.web.pictures.offsets_picture import OPEN, ZOOM, in_words, offsets_picture


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A member that is refused, one that continues, and a transaction that nobody has ended."""
    folder = tmp_path_factory.mktemp("refused")

    def event(seconds: float, **values: Any) -> dict[str, Any]:
        where = {"cluster": "k", "topic": "orders", "partition": 0, "group_id": "g", "exchange_id": f"e{seconds}"}
        return row(OFFSET_TIMELINE, ts=at(seconds), **(where | values))

    def commit(seconds: float, offset: int, client: str, **values: Any) -> dict[str, Any]:
        given = {"kind": "committed", "event_offset": offset, "client_id": client, "member_id": f"{client}-m"}
        return event(seconds, **(given | values))

    rejected = {"kind": "commit_rejected", "error_name": "ILLEGAL_GENERATION"}
    rows = [
        *(commit(n, 5, HOSTILE, **rejected) for n in range(1, 9)),
        *(commit(n + 0.5, 10 * n, "new") for n in range(1, 9)),
        commit(9, 99, "new", kind="txn_committed"),
        event(5, kind="fetched", group_id="", high_watermark=80, **stable(5, 50, 80)),
        event(8, kind="fetched", group_id="", high_watermark=95, **stable(8, 50, 95)),
    ]
    owned = [
        row(
            ASSIGNMENTS, cluster="k", group_id="g", generation=n, member_id=f"{client}-m", topic="orders", partition=0,
            client_id=client, group_protocol="classic", first_ts=at(first), last_ts=at(first),
        )
        for n, client, first in ((1, HOSTILE, 0), (2, "new", 4))
    ]  # fmt: skip
    filled = {
        OFFSET_TIMELINE.full_name: rows,
        ASSIGNMENTS.full_name: owned,
        EXCHANGES.full_name: [row(EXCHANGES, exchange_id=f"x{n}", ts=at(n)) for n in (0, 10)],
    }
    for name, table in TABLES.items():
        write(folder, table, filled.get(name, []))
    return folder


def drawn(*args: Any, **options: Any) -> dict[str, Any]:
    """The specification, with each layer's rows in it."""
    chart: dict[str, Any] = offsets_chart(*args, **options).to_dict()
    for part in chart.get("vconcat", [chart]):
        for layer in part["layer"]:
            layer["rows"] = chart["datasets"][layer.get("data", chart.get("data"))["name"]]
    return chart


def layers(chart: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Layers of a chart by kind of mark."""
    found: dict[str, list[dict[str, Any]]] = {}
    for layer in chart["layer"]:
        found.setdefault(layer["mark"]["type"], []).append(layer)
    return found


def values(layer: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = layer["rows"]
    return rows


def test_a_lake_and_a_partition_give_one_chart_with_owners_below(refused: Path) -> None:
    chart = drawn(refused, "orders", 0, width=700)
    above, below = chart["vconcat"]
    assert (above["width"], below["width"], chart["background"]) == (700, 700, LIGHT.background)
    assert [r["name"] for r in values(layers(below)["rect"][0])] == [f"{HOSTILE}, generation 1", "new, generation 2"]
    crossed, points = layers(above)["point"]
    assert {r["member"] for r in values(points)} == {HOSTILE, "new"}
    assert [(r["ts_text"][-6:], r["outcome"], r["error_name"]) for r in values(crossed)] == [
        (f"{n:02}.000", "rejected", "ILLEGAL_GENERATION") for n in range(1, 9)
    ]
    assert {r["outcome"]: (r["solid"], r["stroke"]) for r in values(points)} == {
        "accepted": (1, LIGHT.ink), "rejected": (0, LIGHT.members[1]), "pending": (0, LIGHT.members[0]),
    }  # fmt: skip
    assert drawn(refused, "orders", 0, dark=True)["background"] == DARK.background


def test_colour_and_symbol_are_those_of_the_member_in_all_layers(refused: Path) -> None:
    above, below = drawn(refused, "orders", 0)["vconcat"]
    scales = [
        layer["encoding"]["color"]["scale"]
        for chart in (above, below)
        for layer in chart["layer"]
        if (layer["encoding"].get("color", {}).get("field")) == "member"
    ]
    assert scales == [{"domain": ["new", HOSTILE], "range": list(LIGHT.members[:2])}] * 3
    assert layers(above)["point"][1]["encoding"]["shape"]["scale"]["range"] == ["circle", "square"]


def test_the_area_of_an_open_transaction_is_hatched_and_names_it(refused: Path) -> None:
    above, _ = drawn(refused, "orders", 0)["vconcat"]
    (area,), (hatching,), (name,) = (layers(above)[mark] for mark in ("area", "rule", "text"))
    assert [(r["low"], r["high"]) for r in values(area)] == [(50, 80), (50, 95)]
    assert len(values(hatching)) > 20
    assert values(name)[0]["name"] == "open: a producer not seen"


def test_only_a_page_that_hears_of_them_has_selections(refused: Path) -> None:
    with connect(refused) as connection:
        shown = offsets(connection, Scope(at(0), at(10)), Place("k", "orders", 0, "g"))
    assert shown is not None
    above, _ = offsets_picture(shown, dark=False, select=[OPEN, ZOOM])
    assert sorted(param["name"] for param in above.to_dict()["params"]) == [OPEN, ZOOM]
    assert "params" not in offsets_picture(shown, dark=False)[0].to_dict()
    assert shown.members == [Member("new", "new-m", "new"), Member(HOSTILE, f"{HOSTILE}-m", HOSTILE)]
    words = in_words(shown)
    for said in ("orders-0", "commits of group g by new, ", "crossed", "hollow", "hatched"):
        assert said in words


def test_a_partition_without_a_group_has_its_log(hand_made_lake: Path) -> None:
    chart = drawn(hand_made_lake, "orders", 3, group="", start=at(8), end=at(10))
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["line"]
    assert [r["line"] for r in values(chart["layer"][0])] == ["high watermark"]


def test_what_is_not_there_is_said(hand_made_lake: Path) -> None:
    with pytest.raises(UserError, match="nothing was seen of nowhere-0 of group g in this time"):
        offsets_chart(hand_made_lake, "nowhere", 0, group="g")
    with pytest.raises(UserError, match="ends before it begins"):
        offsets_chart(hand_made_lake, "orders", 0, start=at(9), end=at(3))
