"""Search, sequence and comparison of exchanges as Streamlit runs them, on the lake of a real capture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from tests.pipeline.dashboard.web.apps import frames, open_page, text_of
from tests.pipeline.lakes import diagnosed_lake
from tests.requirements import require_streamlit

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_streamlit()
    return diagnosed_lake(tmp_path_factory.mktemp("diagnosed") / "lake", "stuck_commit")


@pytest.fixture
def use(lake: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Open a page of the lake; whatever it raises fails the test."""

    def opened(page: str, **parameters: str) -> AppTest:
        monkeypatch.setenv("WIRELAKE_LAKE", str(lake))
        return open_page(page, **parameters)

    return opened


def _values(app: AppTest, name: str) -> list[str]:
    """What the address has of a parameter."""
    found = app.query_params[name]
    return [found] if isinstance(found, str) else list(found)


def pills(app: AppTest, key: str) -> Any:
    return next(group for group in app.get("button_group") if group.key == key)


def test_a_search_by_topic_says_what_each_exchange_did_and_narrows_by_a_click(use: Any) -> None:
    app = use("exchanges", topic="payments", partition="2", group="billing", client="billing-1")
    words = [row["what it says"] for row in frames(app)[0]]
    assert "billing payments-2 @24 gen 2 → ok" in words
    api = pills(app, "narrow api_name")
    assert api.options[0].startswith("OffsetCommit ")
    api.select(api.options[0]).run()
    assert [error.message for error in app.exception] == []
    assert _values(app, "api") == ["OffsetCommit"]
    assert {row["api or command"] for row in frames(app)[0]} == {"OffsetCommit"}
    assert not [group for group in app.get("button_group") if group.key == "narrow api_name"]


def test_older_exchanges_have_an_address(use: Any) -> None:
    app = use("exchanges")
    first = {row["exchange"] for row in frames(app)[0]}
    next(button for button in app.button if button.label == "Older").click().run()
    assert not first & {row["exchange"] for row in frames(app)[0]}
    (before,) = _values(app, "before")
    again = use("exchanges", before=before)
    assert frames(again)[0] == frames(app)[0]
    next(button for button in app.button if button.label == "Newest").click().run()
    assert {row["exchange"] for row in frames(app)[0]} == first


def test_terms_of_the_address_search_and_say_which_to_drop(use: Any) -> None:
    app = use("exchanges", where="client_id=billing-1;api_name=OffsetCommit")
    assert {(row["client"], row["api or command"]) for row in frames(app)[0]} == {("billing-1", "OffsetCommit")}
    app = use("exchanges", where="client_id=billing-1;api_name=nothing")
    assert frames(app) == []
    (link,) = (one.proto for one in app.get("page_link") if "api or command" in one.proto.label)
    assert link.label.startswith("Without api or command = `nothing`: ")
    assert "where=client_id%3Dbilling-1" in link.query_string


def test_what_makes_no_sense_is_said(use: Any) -> None:
    app = use("exchanges", partition="two", slower="soon")
    assert len(app.warning) == 2
    assert frames(app) == []  # not all exchanges in place of those that were asked for
    assert "No exchange matches in this time range." in text_of(use("exchanges", before="then", topic="<b>x</b>"))


def test_a_connection_is_shown_as_a_sequence_around_an_exchange(use: Any) -> None:
    commits = frames(use("exchanges", api="OffsetCommit", client="billing-1"))[0]
    middle = commits[len(commits) // 2]["exchange"]
    app = use("sequence", exchange=middle)
    assert len(app.get("vega_lite_chart")) == 1
    assert "requests of billing\\-1 at" in text_of(app)
    assert middle in {row["exchange"] for row in frames(app)[0]}
    links = [parse_qs(link.proto.query_string) for link in app.get("page_link")]
    turned = use("sequence", **{name: values[0] for name, values in next(one for one in links if "at" in one).items()})
    assert frames(turned)[0] != frames(app)[0]
    assert "There is no exchange `gone`" in text_of(use("sequence", exchange="gone"))
    assert "Open this page from an exchange" in text_of(use("sequence"))


def test_two_exchanges_stand_side_by_side(use: Any) -> None:
    stuck = [
        row["exchange"]
        for row in frames(use("exchanges", api="OffsetCommit", topic="payments", partition="2"))[0]
        if row["what it says"].startswith("billing payments-2 @24 ")
    ]
    app = use("compare", exchange=stuck[0], other=stuck[1])
    assert "0 fields differ of" in text_of(app)  # the same offset again, of which nothing has changed
    alone = use("compare", exchange=stuck[0])
    changed = {row["field"] for rows in frames(alone) for row in rows}
    assert "topics[payments].partitions[2].committedOffset" in changed
    assert "Not found." in text_of(use("compare", exchange=stuck[0], other="gone"))


@pytest.mark.parametrize("page", ["partitions", "incident"])
def test_commits_of_a_picture_are_reached_without_a_mouse(use: Any, page: str) -> None:
    place = {"group": "billing", "topic": "payments", "partition": "2"}
    app = use(page, **(place if page == "partitions" else {}))
    (commits,) = [one.proto for one in app.get("page_link") if one.proto.label == "These commits as exchanges"]
    address = {name: values[0] for name, values in parse_qs(commits.query_string).items()}
    assert {name: address[name] for name in ("api", *place)} == {"api": "OffsetCommit", **place}
    found = use("exchanges", **address)
    (rows,) = frames(found)
    assert "72 exchanges" in text_of(found)
    assert all(row["what it says"].startswith("billing payments-") for row in rows)


def test_the_lines_of_an_incident_lead_to_their_exchanges(use: Any) -> None:
    app = use("incident")
    assert "billing-1 commits payments-2 at 24" in [element.value for element in app.text]
    (first,) = [one.proto for one in app.get("page_link") if one.proto.label == "04:46:08.92"]
    address = {name: values[0] for name, values in parse_qs(first.query_string).items()}
    assert "What happened (time of day, UTC):" in next(element.value for element in app.code)
    assert address["near"].startswith("2026-11-21T04:46:08.9")
    connection = address["exchange"].rpartition("-")[0]
    assert f"Connection `{connection}`" in text_of(use("sequence", **address))
