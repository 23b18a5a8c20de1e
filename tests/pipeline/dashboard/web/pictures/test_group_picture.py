"""The picture of a group keeps room for its bars, however many members there are and however long their names."""

from __future__ import annotations

import re
from datetime import timedelta

import pyarrow as pa
import pytest

from pipeline.dashboard.queries.progress.groups import Group, GroupSeen
from pipeline.dashboard.queries.progress.members import members
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.pictures.group_picture import group_picture, room
from tests.pipeline.rows import T0

LANE = 22
"""Pixels that a partition has where there is room."""
_OF_PAGE = {
    "legend": {"labelFontSize": 14, "titleFontSize": 14, "rowPadding": 8, "titlePadding": 5, "offset": 20},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "labelPadding": 16},
    "title": {"offset": 20, "fontSize": 16},
}
"""How large Streamlit's theme writes."""
_PLOT = re.compile(r'd="M0\.5,0\.5h([\d.-]+)v([\d.-]+)h')


def seen(count: int, partitions: int, name: str) -> GroupSeen:
    """A group whose members owned a partition one after the other."""
    part = timedelta(seconds=60) / count
    owned = [
        {
            "topic": "orders", "partition": number % partitions, "client_id": f"{name}{number}",
            "member_id": f"m{number}", "generation": number, "group_protocol": "classic",
            "owned_from": T0 + number * part, "owned_until": T0 + (number + 1) * part, "is_owned_still": False,
        }
        for number in range(count)
    ]  # fmt: skip
    keys = [(str(row["client_id"]), str(row["member_id"])) for row in owned]
    scope = Scope(T0, T0 + timedelta(seconds=60), "kafka")
    nothing = pa.table({name: pa.nulls(0) for name in ("topic", "partition", "client_id", "member_id", "lag")})
    return GroupSeen(Group("k", "g"), scope, members(keys), owned, [], [], nothing, nothing)


@pytest.mark.parametrize("name", ["c", "consumer-of-the-orders-service-in-region-"])
@pytest.mark.parametrize(("count", "partitions"), [(1, 1), (3, 1), (4, 1), (7, 1), (30, 1), (30, 5)])
def test_bars_of_owners_have_room_below_any_legend(count: int, partitions: int, name: str) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    shown = seen(count, partitions, name)
    part = group_picture(shown, dark=False)["owners"]
    lanes = LANE * len(shown.partitions)
    assert part.height == lanes
    spec = part.properties(height=part.height + room("owners", shown), width=820).to_dict()
    spec |= {"autosize": {"type": "fit", "contains": "padding"}, "config": {**spec.get("config", {}), **_OF_PAGE}}
    width, height = map(float, _PLOT.search(vl_convert.vegalite_to_svg(spec)).groups())  # type: ignore[union-attr]
    assert height >= 0.7 * lanes
    assert width >= 500
