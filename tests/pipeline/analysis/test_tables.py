"""Numbers of an enum stand in SQL as numbers; each question gets its own rows."""

from __future__ import annotations

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
