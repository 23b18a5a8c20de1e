"""The page that opens first, the search from every page, and addresses, on a lake of real captures."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from pipeline.dashboard.queries.overview.findings import counts, findings
from pipeline.dashboard.queries.overview.health import Health, health
from pipeline.dashboard.queries.overview.incidents import findings_of, incident, incident_counts, incidents
from pipeline.dashboard.queries.scope import Scope, extent
from pipeline.dashboard.queries.traffic.exchange_search import Search, search
from pipeline.dashboard.sql import connect
from tests.pipeline.dashboard.web.apps import PAGES, text_of
from tests.pipeline.lakes import diagnosed_lake

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.slow

_CAPTURES = ("stuck_commit", "stalled_lso", "old_format", "mongodb/troubled_mongodb")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return diagnosed_lake(tmp_path_factory.mktemp("troubled") / "lake", *_CAPTURES)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return diagnosed_lake(tmp_path_factory.mktemp("healthy") / "lake", "healthy")


def _plain(app: AppTest) -> str:
    return text_of(app).replace("\\", "")


def _address(app: AppTest) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def _links(app: AppTest) -> dict[str, dict[str, str]]:
    """Of each link its page and parameters, by its label."""
    return {
        link.proto.label.replace("\\", ""): {
            "page": link.proto.page,
            **{name: values[0] for name, values in parse_qs(link.proto.query_string).items()},
        }
        for link in app.get("page_link")
    }


def test_how_far_it_is_behind_goes_by_the_newest_of_the_lake_whatever_is_looked_at(
    use: Any, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[datetime] = []
    monkeypatch.setattr(Health, "behind_seconds", lambda _, newest, now: asked.append(newest) or (now - newest).days)
    app = use(lake, "home", **{"range": "from … to", "from": "2026-11-21 04:46:00Z", "to": "2026-11-21 04:46:10Z"})
    with connect(lake) as connection:
        there = extent(connection)
    assert there is not None
    assert asked == [there.last]
    assert "behind the wire" in _plain(app)


def test_the_worst_is_named_first_with_cause_and_who_is_hurt(use: Any, lake: Path) -> None:
    app = use(lake, "home")
    text = _plain(app)
    first = text.index("keeps transaction orders-tx-1 open on orders-0")
    assert (
        first < text.index("sets group billing back to offset 24 of payments-2") < text.index("cursors on shop.orders")
    )
    assert "Source: billing-1 (127.0.0.1)\nAffected: group billing" in text
    assert "since 2026-11-21 04:46:08 UTC" in text
    figures = {metric.label.replace("\\", ""): metric.value for metric in app.metric}
    assert figures["Held back in orders-0, records"] == "134"  # of 152 offsets 18 are transaction markers


def test_what_was_captured_stands_above_and_what_is_healthy_below(use: Any, lake: Path) -> None:
    app = use(lake, "home")
    (seen,) = [caption.value for caption in app.caption if "Captured" in caption.value]
    assert "1 agent" in seen
    assert "no packets missing" in seen
    assert "2026-11-21 04:46:02 to 16:31:11 UTC" in seen
    (good,) = [text.value for text in app.markdown if "groups" in text.value and "clients" in text.value]
    assert "**5** of 7 groups" in good  # billing and reports are hurt


def test_when_nothing_is_wrong_that_is_said_first(use: Any, healthy: Path) -> None:
    app = use(healthy, "home")
    assert [element.value.split(" in what")[0] for element in app.success] == ["Nothing is wrong"]
    assert "all " in _plain(app)
    assert not app.metric


def test_of_another_time_nothing_is_told(use: Any, lake: Path) -> None:
    app = use(lake, "home", **{"range": "from … to", "from": "2020-01-01", "to": "2020-01-02"})
    assert "Nothing is wrong in what was seen from 2020-01-01 00:00:00 to 2020-01-02 00:00:00 UTC." in text_of(app)


@pytest.mark.parametrize("protocol", [None, "kafka", "mongodb"])
@pytest.mark.parametrize("seconds", [0, 600, 10**6])
def test_all_views_count_the_same(lake: Path, protocol: str | None, seconds: int) -> None:
    connection = connect(lake)
    there = extent(connection)
    assert there is not None
    start = there.first if seconds else there.last
    scope = Scope(start, there.last, protocol)
    told, found = incidents(connection, scope), findings(connection, scope)
    assert sum(incident_counts(connection, scope).values()) == len(told)
    assert incident_counts(connection, scope)["resolved"] == sum(row["state"] == "resolved" for row in told)
    assert sum(counts(connection, scope).values()) == len(found)
    assert {row["incident_id"] for row in found if protocol is None} <= {row["incident_id"] for row in told}
    for row in told:
        whole = incident(connection, row["incident_id"])
        assert whole is not None
        assert len(findings_of(connection, whole)) == row["findings"]
    assert health(connection, scope).exchanges == search(connection, scope, Search(), seconds=600).counted


def test_pages_show_the_counts_of_each_other(use: Any, lake: Path) -> None:
    home, exchanges = text_of(use(lake, "home")), text_of(use(lake, "exchanges"))
    connection = connect(lake)
    (found,) = connection.sql("SELECT count(*) FROM silver.exchanges").fetchall()
    assert f"{found[0]:,} exchanges" in home
    assert f"{found[0]:,} exchanges" in exchanges
    app = use(lake, "findings")
    (told,) = connection.sql("SELECT count(*) FROM gold.incidents").fetchall()
    assert f"What belongs together: {told[0]} incidents" in _links(app)
    (all_findings,) = connection.sql("SELECT count(*) FROM gold.findings").fetchall()
    assert sum(int(metric.value) for metric in app.metric) == all_findings[0]


@pytest.mark.parametrize(
    ("text", "page", "parameters"),
    [
        ("billing", "group", {"group": "billing"}),
        ("BILL", "group", {"group": "billing"}),
        ("payments", "partitions", {"topic": "payments"}),
        ("payments-2", "partitions", {"topic": "payments", "partition": "2", "group": "billing"}),
        ("billing-1", "exchanges", {"client": "billing-1"}),
        ("127.0.0.1", "exchanges", {"host": "127.0.0.1"}),
        ("orders-tx-1", "transactions", {"transaction": "orders-tx-1"}),
        ("shop.orders", "exchanges", {"namespace": "shop.orders"}),
        ("127.0.0.1:35908", "exchanges", {}),
    ],
)
def test_any_name_leads_to_its_page(use: Any, lake: Path, text: str, page: str, parameters: dict[str, str]) -> None:
    links = _links(use(lake, "search", q=text))
    assert any(link["page"] == page and parameters.items() <= link.items() for link in links.values()), links


def test_a_search_begins_on_any_page(use: Any, lake: Path) -> None:
    for page in PAGES:
        assert "Search for a name" in [box.label for box in use(lake, page).text_input]
    app = use(lake, "home", protocol="Kafka")
    next(box for box in app.text_input if box.label == "Search for a name").set_value(" billing-2 ").run()
    assert [title.value for title in app.title] == ["Search"]
    assert _address(app) == {"q": "billing-2", "protocol": "Kafka"}
    assert "`billing-2`" in _links(app)


def test_the_address_of_a_search_fills_its_box(use: Any, lake: Path) -> None:
    app = use(lake, "search", q="billing")
    assert [box.value for box in app.text_input if box.label == "Search for a name"] == ["billing"]


@pytest.mark.parametrize("name", ["<b>x</b>", "**x**", "[l](http://e.example)", "\u202egro", "%", "x" * 5000, "\0"])
def test_a_name_that_nobody_has_is_shown_as_text(use: Any, lake: Path, name: str) -> None:
    app = use(lake, "search", q=name)
    (told,) = app.info
    assert told.value.startswith("No name has `")
    assert "\u202e" not in told.value


@pytest.mark.parametrize(
    ("page", "parameters"),
    [
        ("home", {"range": "all", "protocol": "MongoDB"}),
        ("home", {"range": "last hour"}),
        ("home", {"range": "from … to", "from": "2026-11-21 04:46:10Z", "to": "2026-11-21 04:46:20Z"}),
        ("findings", {"protocol": "Kafka"}),
        ("search", {"q": "orders", "protocol": "Kafka"}),
        ("partitions", {"group": "billing", "topic": "payments", "partition": "2"}),
        ("exchanges", {"api": "OffsetCommit", "client": "billing-1"}),
        ("query", {"sql": "FROM consumer_lag"}),
    ],
)
def test_a_view_that_is_opened_by_its_address_shows_the_same(
    use: Any, lake: Path, page: str, parameters: dict[str, str]
) -> None:
    def shown(app: AppTest) -> list[str]:
        return [line for line in text_of(app).splitlines() if not line.startswith("Lake as of")]

    first = use(lake, page, **parameters)
    address = _address(first)
    assert parameters.items() <= address.items()
    assert shown(use(lake, page, **address)) == shown(first)


def test_links_keep_what_was_chosen(use: Any, lake: Path) -> None:
    app = use(lake, "home", range="all", protocol="Kafka", times="local")
    for link in _links(app).values():
        assert (link["range"], link["protocol"], link["times"]) == ("all", "Kafka", "local")


def test_an_incident_shows_what_follows_from_what(use: Any, lake: Path) -> None:
    app = use(lake, "incident")  # the worst
    assert len(app.get("vega_lite_chart")) == 2  # its partition, and the graph
    assert "because read_committed readers stop at the first open transaction" in _plain(app)
