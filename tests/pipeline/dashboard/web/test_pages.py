"""Each page on the hand-made lake, as Streamlit runs it, without a browser."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from pipeline.tables import DUPLICATE_FLOWS, EXCHANGES, TABLES
from tests.pipeline.dashboard.conftest import HOSTILE
from tests.pipeline.dashboard.web.apps import PAGES, frames, text_of
from tests.pipeline.rows import write

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.slow


@pytest.fixture
def empty_lake(tmp_path: Path) -> Path:
    for table in TABLES.values():
        write(tmp_path, table, [])
    return tmp_path


@pytest.fixture
def asked(use: Any) -> Any:
    """Open the page of SQL with a query in its address, and press the button."""

    def pressed(lake: Path, sql: str) -> AppTest:
        app = use(lake, "query", sql=sql)
        next(button for button in app.button if button.label == "Run").click().run()
        assert [error.message for error in app.exception] == []
        return app

    return pressed


def test_findings_show_what_is_wrong_and_what_to_do(use: Any, hand_made_lake: Path) -> None:
    text = text_of(use(hand_made_lake, "findings"))
    assert "summary of stuck_commit" in text
    assert "`about stuck_commit` since 2026-03-01 12:00:02 UTC" in text
    assert r"Use `it` or \*\*leave\*\* it\." in text
    assert "**What it rests on.**" in text  # the rule's page
    assert "Resolved" in text


def test_the_page_opens_with_incidents_and_what_to_do(use: Any, hand_made_lake: Path) -> None:
    text = text_of(use(hand_made_lake, "home"))
    assert "sets group g back to an old offset of orders" in text
    assert "**Now.** Restart" in text
    assert "still ongoing when the capture ends." in text


def test_an_incident_has_a_page_with_its_picture_and_what_follows_from_what(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "incident")  # of no address: the worst
    text = text_of(app)
    assert "sets group g back to an old offset of orders" in text
    assert "**Now.** Restart" in text
    assert "**Offset stuck** `about stuck_commit`" in text
    picture, said = app.get("vega_lite_chart")
    assert picture.proto.spec != said.proto.spec
    copied, slack, plain = [element.value for element in app.code]
    assert copied.startswith("## ")
    assert "• *stuck_commit* `about stuck_commit`" in slack
    assert "- stuck_commit about stuck_commit: summary of stuck_commit Exchanges c1, f2." in plain
    assert "- **stuck_commit** `about stuck_commit`: summary of stuck_commit Exchanges `c1`, `f2`." in copied
    assert "There is no such incident" in text_of(use(hand_made_lake, "incident", incident="gone"))


def test_names_of_the_wire_are_shown_as_text(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "findings")
    read = [element.value for kind in ("markdown", "caption") for element in app.get(kind)]
    assert HOSTILE in [element.value for element in app.text]
    assert not any("<b>y</b>" in value for value in read)
    assert f"``{HOSTILE}`` 2026-03-01 12:00:01 to 12:00:02 UTC, 1.0 s" in [expander.label for expander in app.expander]


def test_the_partition_in_most_trouble_is_shown_first(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "partitions")
    chosen = {box.key: box.value for box in app.selectbox}
    assert (chosen["group"], chosen["topic"], chosen["partition"], chosen["cluster"]) == ("g", "orders", "0", "k")
    committers, standing = frames(app)
    assert [(row["client"], row["accepted"]) for row in committers] == [("old", 4), ("new", 1)]
    assert (standing[0]["trouble"], standing[0]["lag"], standing[0]["behind"]) == (
        "stuck commits, open transaction",
        57,
        "58 s",
    )
    assert len(app.get("vega_lite_chart")) == 1


def test_a_partition_of_the_address_is_shown_until_another_topic_lacks_it(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "partitions", group="g", topic="orders", partition="4", cluster="k")
    assert {box.key: box.value for box in app.selectbox}["partition"] == "4"
    assert "1 commit accepted, 0 rejected, by 1 member." in text_of(app)
    app.selectbox(key="topic").set_value("filled").run()
    assert "filled" in app.query_params["topic"]
    assert {box.key: box.value for box in app.selectbox}["partition"] == "0"


def test_a_link_keeps_the_times_of_a_picture(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "partitions")
    query, group, _ = [parse_qs(link.proto.query_string) for link in app.get("page_link")]
    assert (group["group"], group["from"]) == (["g"], query["from"])
    assert (query["from"], query["to"]) == (["2026-03-01 12:00:01.000000Z"], ["2026-03-01 12:00:09.000000Z"])
    again = use(hand_made_lake, "partitions", **{name: values[0] for name, values in query.items()})
    assert [box.value for box in again.selectbox if box.key == "range"] == ["from … to"]
    assert "2026-03-01 12:00:01 to 12:00:09 UTC, 8.0 s" in text_of(again)


def test_a_partition_without_a_group_is_shown_with_the_group_in_most_trouble(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "partitions", topic="filled", partition="1", cluster="k")
    assert [box.value for box in app.selectbox if box.key in ("group", "topic", "partition")] == ["g", "filled", "1"]


def test_a_picture_of_the_address_does_not_wait_for_the_lag_of_all_groups(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "partitions", group="g", topic="orders", partition="0", cluster="k")
    assert len(app.get("vega_lite_chart")) == 1
    assert [next(iter(rows[0])) for rows in frames(app)] == ["client"]
    assert "Lag of all groups" in [link.proto.label for link in app.get("page_link")]


def test_a_group_has_its_owners_members_and_rhythm(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "group", group="classic")
    text = text_of(app)
    assert "Group classic: members a, b" in text.replace("\\", "")
    assert "It committed nothing in this time range." in text
    (members,) = [rows for rows in frames(app) if "member id" in rows[0]]
    assert [(row["member"], row["partitions"]) for row in members] == [("a", 2), ("b", 1)]
    app = use(hand_made_lake, "group", group="g")
    (rhythm,) = [rows for rows in frames(app) if "longest pause" in rows[0]]
    assert ("old", "orders", 0, 4) in [
        (row["member"], row["topic"], row["partition"], row["commits"]) for row in rhythm
    ]


def test_a_lake_that_was_not_checked_says_how(use: Any, hand_made_lake: Path) -> None:
    assert "wirelake check" in text_of(use(hand_made_lake, "quality"))


def test_transactions_name_who_holds_which_partition(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "transactions")
    assert (
        "`orders-0` stays at 5 for at least **1.0 s**: the transaction `hangs` of `hangs-client` is open. "
        "**15 records** up to 20 wait for readers with `isolation.level=read_committed`."
    ) in text_of(app)
    assert [[row["transactional id"] for row in rows] for rows in frames(app)] == [["hangs"], ["longer", "done"]]
    assert "2 transactions, 1 of them aborted" in text_of(app)


def test_the_address_of_a_transaction_shows_it_alone(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "transactions", transaction="hangs")
    assert "Of the transactional id `hangs` alone." in text_of(app)
    assert "No transaction ended in this time range." in text_of(app)
    (still_open,) = frames(app)
    assert [one["transactional id"] for one in still_open] == ["hangs"]
    other = text_of(use(hand_made_lake, "transactions", transaction=HOSTILE))
    assert f"There is no transactional id ``{HOSTILE}`` in this lake." in other
    assert "held back" not in other


def test_clients_that_break_are_listed_apart(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "clients")
    assert {metric.label: metric.value for metric in app.metric} == {
        "Break on Kafka 4": "0",  # no rule has found that it breaks: it uses what Kafka 4 has removed
        "Kafka clients": "2",
        "MongoDB clients": "1",
    }
    assert "Of 1 more client it is not known" in text_of(app)
    assert [[row["client"] for row in rows] for rows in frames(app)] == [["old"], ["old", "app", "shop"]]
    assert len(app.get("vega_lite_chart")) == 1  # which release refuses what


def test_latencies_are_in_milliseconds(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "latency")
    apis, errors = frames(app)
    assert (apis[0]["api or command"], apis[0]["p99, ms"]) == ("Fetch", 0.099)
    assert [row["error"] for row in errors] == ["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"]
    charts = app.get("vega_lite_chart")
    assert len(charts) == 4  # how long with percentiles, answers, and by api: the 99th percentile and traffic


def test_exchanges_are_searched_and_one_is_shown(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "exchanges", client="cmd", exchange="c1")
    assert "3 exchanges, the newest first." in text_of(app)
    assert "ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID" in text_of(app)
    app.text_input(key="client").set_value("nobody").run()
    assert "No exchange matches in this time range." in text_of(app)


def test_a_finding_leads_to_its_exchanges(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "exchanges", finding="id-stuck_commit")
    assert [row["exchange"] for row in frames(app)[0]] == ["c1", "f2"]
    assert "Evidence of **stuck_commit**" in text_of(app)
    assert "There is no such finding" in text_of(use(hand_made_lake, "exchanges", finding="gone"))


def test_a_query_is_answered_and_a_wrong_one_explained(asked: Any, hand_made_lake: Path) -> None:
    app = asked(hand_made_lake, "SELECT count(*) AS n, 1 AS n FROM silver.exchanges")
    assert frames(app) == [[{"n": 104, "n_1": 1}]]
    for wrong in ("DELETE FROM silver.exchanges", "FROM nowhere", "SELECT 'a'::INT", "FROM read_text('/etc/hostname')"):
        refused = asked(hand_made_lake, wrong)
        assert [error.value for error in refused.error] == ["The query does not run."]
    assert "The first 1,000 rows" in text_of(asked(hand_made_lake, "FROM range(5000)"))
    ((long,),) = frames(asked(hand_made_lake, "SELECT repeat('x', 3000) AS body"))
    assert long["body"].endswith("xx … (3,000 characters)")


def test_a_query_of_the_address_waits_for_a_person(use: Any, asked: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "query", sql="SELECT 4711 AS n")
    assert ([area.value for area in app.text_area], frames(app)) == (["SELECT 4711 AS n"], [])
    assert "Read it, then press *Run*" in text_of(app)
    app = asked(hand_made_lake, "SELECT 4711 AS n")
    assert frames(app.run()) == [[{"n": 4711}]]  # again, when the page is drawn again


def test_values_that_python_has_not_are_shown_as_text(asked: Any, hand_made_lake: Path) -> None:
    sql = (
        "SELECT TIMESTAMPTZ '-infinity' AS never, DATE 'infinity' AS day, TIMESTAMP '200000-01-01' AS late, "
        "{'a': TIMESTAMPTZ 'infinity'} AS inside, 18446744073709551615::UBIGINT AS many "
        "UNION ALL SELECT TIMESTAMPTZ '2026-03-01 12:00:00+00', NULL, NULL, NULL, 1 ORDER BY many DESC"
    )
    first, second = frames(asked(hand_made_lake, sql))[0]
    assert first == {
        "never": "-infinity",
        "day": "infinity",
        "late": "out of range: cast it to VARCHAR",
        "inside": "out of range: cast it to VARCHAR",
        "many": "18446744073709551615",
    }
    assert (second["never"], second["many"]) == ("2026-03-01 12:00:00+00:00", "1")


def test_long_values_are_cut(asked: Any, hand_made_lake: Path) -> None:
    sql = "SELECT repeat('ä', 2001) AS text, repeat('a', 1001)::BLOB AS bytes, range(900) AS few, range(90000) AS many"
    ((row,),) = frames(asked(hand_made_lake, sql))
    assert row["text"] == "ä" * 2000 + " … (2,001 characters)"
    assert row["bytes"] == "61" * 1000 + " … (1,001 bytes)"
    assert row["few"].startswith("[0, 1, 2")
    assert row["few"].endswith(" … (4,390 characters)")
    assert row["many"].startswith("… (7")
    assert row["many"].endswith(" KiB)")


def test_an_answer_ends_where_a_browser_has_enough(asked: Any, hand_made_lake: Path) -> None:
    columns = ", ".join(["repeat('x', 2000)"] * 40)
    text = text_of(asked(hand_made_lake, f"SELECT {columns} FROM range(1000)"))
    assert "The first 224 rows; with more, the answer would be too long." in text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 1",
        "FROM range(1000000000000) WHERE range < 500",  # which come at once
    ],
)
def test_a_query_that_takes_too_long_is_stopped(
    asked: Any, hand_made_lake: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    monkeypatch.setenv("WIRELAKE_SQL__PAGE_SECONDS", "1")
    app = asked(hand_made_lake, sql)
    assert [warning.value[:24] for warning in app.warning] == ["Stopped after 1 seconds."]
    assert not app.error


def test_an_error_of_a_late_row_is_shown(asked: Any, hand_made_lake: Path) -> None:
    sql = "SELECT CASE WHEN range < 900 THEN 1 ELSE error('no ' || range) END FROM range(1000)"
    app = asked(hand_made_lake, sql)
    assert [error.value for error in app.error] == ["The query does not run."]
    assert "no 900" in text_of(app)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("partitions", "MongoDB has no groups and partitions"),
        ("group", "MongoDB has no groups"),
        ("transactions", "These are Kafka's transactions"),
        ("latency", "Nothing was asked"),
    ],
)
def test_what_mongodb_has_not(use: Any, hand_made_lake: Path, page: str, words: str) -> None:
    assert words in text_of(use(hand_made_lake, page, protocol="MongoDB"))


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("partitions", "No partition was produced to"),
        ("group", "No group was seen"),
        ("mongodb", "MongoDB was asked nothing"),
        ("transactions", "No last stable offset is held back"),
        ("clients", "No client was seen"),
        ("latency", "Nothing was asked"),
        ("exchanges", "No exchange matches"),
    ],
)
def test_a_quiet_time_is_explained_in_plain_words(use: Any, hand_made_lake: Path, page: str, words: str) -> None:
    span = {"range": "from … to", "from": "2020-01-01 00:00:00", "to": "2020-01-02T00:00:00Z"}
    assert words in text_of(use(hand_made_lake, page, **span))


def test_no_finding_is_good_news(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "findings", **{"range": "from … to", "from": "2020-01-01", "to": "2020-01-02"})
    assert [e.value for e in app.success] == [
        "No findings: nothing is wrong in what was seen from 2020-01-01 00:00:00 to 2020-01-02 00:00:00 UTC."
    ]


def test_times_that_make_no_sense_are_reported(use: Any, hand_made_lake: Path) -> None:
    app = use(hand_made_lake, "findings", **{"range": "from … to", "from": "yesterday"})
    assert [e.value for e in app.warning] == ["Not a time: yesterday. Write it as 2026-03-01 12:00:00."]
    app = use(hand_made_lake, "findings", **{"range": "from … to", "to": "9999-12-31T23:59:59-05:00"})
    assert len(app.warning) == 1
    assert "Not a time" in app.warning[0].value
    app = use(hand_made_lake, "findings", **{"range": "from … to", "from": "2027-01-01", "to": "2026-01-01"})
    assert [e.value for e in app.warning] == ["The time range ends before it begins."]


@pytest.mark.parametrize("page", PAGES)
def test_a_lake_without_exchanges(use: Any, empty_lake: Path, page: str) -> None:
    assert "This lake has no exchanges." in text_of(use(empty_lake, page))


@pytest.mark.parametrize("page", ["findings", "partitions", "group", "transactions", "clients", "mongodb", "latency"])
def test_a_young_lake_lacks_tables(use: Any, hand_made_lake: Path, tmp_path: Path, page: str) -> None:
    for table in (EXCHANGES, DUPLICATE_FLOWS):
        shutil.copytree(hand_made_lake / table.path, tmp_path / table.path)
    assert "This lake lacks a table" in text_of(use(tmp_path, page)).replace("\\", "")


def test_a_lake_that_went_away_is_reported(use: Any, tmp_path: Path) -> None:
    assert "there is no lake at" in text_of(use(tmp_path, "findings"))


@pytest.mark.parametrize(("chosen", "first"), [("last hour", "12:00:00"), ("all", "12:00:00")])
def test_a_range_ends_with_the_data(use: Any, hand_made_lake: Path, chosen: str, first: str) -> None:
    app = use(hand_made_lake, "findings", range=chosen, refresh="every minute")
    assert f"2026-03-01 {first} to 12:01:40 UTC" in text_of(app)
