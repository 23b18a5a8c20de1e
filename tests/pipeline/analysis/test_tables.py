"""Does what stands in SQL stand there as SQL?"""

from __future__ import annotations

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.tables import Tables, numbers


def test_members_of_an_enum_stand_in_sql_as_numbers() -> None:
    some = numbers(ApiKey.FETCH, ApiKey.JOIN_GROUP, KafkaError.REBALANCE_IN_PROGRESS, 7)
    assert f"api_key IN {some}" == "api_key IN (1, 11, 27, 7)"
    tables = Tables({})
    assert tables.rows(f"SELECT 11 IN {some} AS is_in, {ApiKey.FETCH} AS one")[0] == (True, 1)
    tables.close()
