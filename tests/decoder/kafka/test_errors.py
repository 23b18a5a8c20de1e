from decoder.kafka.errors import error_name


def test_names_of_error_codes():
    assert error_name(0) == "NONE"
    assert error_name(-1) == "UNKNOWN_SERVER_ERROR"
    assert error_name(22) == "ILLEGAL_GENERATION"


def test_a_code_newer_than_the_table_keeps_its_number():
    assert error_name(4711) == "UNKNOWN(4711)"
