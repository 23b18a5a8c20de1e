"""Numbers of an enum are in SQL as numbers; each question gets its own rows; names can be given again."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.tables import Tables, numbers


def test_members_of_an_enum_stand_in_sql_as_numbers() -> None:
    some = numbers(ApiKey.FETCH, ApiKey.JOIN_GROUP, KafkaError.REBALANCE_IN_PROGRESS, 7)
    assert f"api_key IN {some}" == "api_key IN (1, 11, 27, 7)"
    tables = Tables({})
    assert tables.rows(f"SELECT 11 IN {some} AS is_in, {ApiKey.FETCH} AS one")[0] == (True, 1)
    tables.close()


EVENTS = pa.table({"topic": ["a", "a", "b", None], "us": [1, 3, 2, 4], "members": [["x"], ["y"], ["x"], []]})
LATER = "SELECT us, topic FROM events WHERE topic IS NOT DISTINCT FROM $topic AND us > $us ORDER BY us DESC"
LAST = "WITH these AS (SELECT * FROM events WHERE topic = $topic) SELECT max(us) AS us, count(*) AS times FROM these"


@pytest.mark.parametrize(
    ("sql", "questions"),
    [
        (LATER, [{"topic": "a", "us": 0}, {"topic": "b", "us": 2}, {"topic": None, "us": 0}, {"topic": "a", "us": 1}]),
        (LATER, [{"topic": None, "us": 0}]),
        (LAST, [{"topic": "a"}, {"topic": "none"}, {"topic": "b"}]),
        ("SELECT us FROM events WHERE list_contains($ids, topic) LIMIT 1", [{"ids": ["b"]}, {"ids": ["c", "d"]}]),
        (LATER, []),
    ],
)
def test_many_questions_are_answered_as_each_alone_in_the_order_of_the_columns(
    sql: str, questions: list[dict[str, object]]
) -> None:
    tables = Tables({"events": EVENTS})
    assert tables.of_each(sql, questions) == [sorted(tables.rows(sql, **one)) for one in questions]
    assert tables.of_each(sql, iter(questions[:1])) == [sorted(tables.rows(sql, **one)) for one in questions[:1]]
    tables.close()


@pytest.mark.parametrize("asked_often", [False, True])
def test_a_name_can_be_given_again_and_is_free_afterwards(*, asked_often: bool) -> None:
    tables = Tables({"events": EVENTS}, asked_often=asked_often)
    tables.view("late", "SELECT us FROM events WHERE us > 2")
    assert sorted(tables.rows("SELECT us FROM late")) == [(3,), (4,)]
    assert tables.keep("late", "SELECT us FROM events WHERE us > $us", us=3)
    assert tables.rows("SELECT us FROM late") == [(4,)]
    assert not tables.keep("late", "SELECT us FROM events WHERE us > 9")
    tables.add("late", EVENTS.slice(0, 1))
    assert tables.rows("SELECT us, members FROM late") == [(1, ["x"])]
    tables.close()
    others = Tables({})
    with pytest.raises(duckdb.CatalogException):
        others.rows("SELECT us FROM late")
    others.close()


def test_columns_of_nulls_alone_are_compared_with_anything() -> None:
    nameless = pa.table({"us": [1, 3], "topic": pa.nulls(2), "members": [[None], []]})
    tables = Tables({"events": EVENTS, "nameless": nameless}, asked_often=True)
    assert tables.rows("SELECT us FROM events JOIN nameless USING (us) WHERE events.topic > nameless.topic") == []
    tables.close()
