import orjson
import pytest

from decoder.kafka.errors import error_name, is_without_errors, response_errors


def test_names_of_error_codes():
    assert error_name(0) == "NONE"
    assert error_name(-1) == "UNKNOWN_SERVER_ERROR"
    assert error_name(22) == "ILLEGAL_GENERATION"


def test_a_code_newer_than_the_table_keeps_its_number():
    assert error_name(4711) == "UNKNOWN(4711)"


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ({}, []),
        ({"errorCode": 0, "topics": [{"partitionErrorCode": 0}]}, []),
        ({"errorCode": 0, "topics": [{"partitionErrorCode": 3}]}, [3]),
        ({"errorCode": -1}, [-1]),
        ({"name": 'rrorCode":5', "errorCode": 0}, []),
        ({"name": 'rrorCode":0', "errorCode": 7}, [7]),
    ],
)
def test_zeros_are_counted_where_there_are_no_other_codes(body, codes):
    text = orjson.dumps(body).decode()
    assert [code for code, _ in response_errors(text)] == codes
    assert is_without_errors(text) is not bool(codes)
