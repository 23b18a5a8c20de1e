"""The errors that a response names, and the names of their codes (org.apache.kafka.common.protocol.Errors)."""

from __future__ import annotations

import re

from decoder.kafka.apis import KafkaError

NO_ERROR = int(KafkaError.NONE)

ERROR_NAMES: dict[int, str] = {error.value: error.name for error in KafkaError}

_CODE = re.compile(r'"(?:errorCode|\w*ErrorCode)":(-?[1-9]\d{0,4})(?=[,}])', re.ASCII)
"""In compact JSON a quote inside a string is escaped, so that this matches keys only."""
_LARGEST = 2**15 - 1


def error_name(code: int) -> str:
    """The name of an error code; a code newer than this table keeps its number, as ``UNKNOWN(code)``."""
    return ERROR_NAMES.get(code, f"UNKNOWN({code})")


ERROR_MARKS = ('rrorCode":', 'rrorCode":0')
"""Fields that hold error codes in compact JSON, and those of them that are 0."""


def is_without_errors(body: str) -> bool:
    """Whether all fields of compact JSON that hold error codes are 0. It counts; reading takes longer."""
    every, zero = ERROR_MARKS
    return body.count(every) == body.count(zero)


def response_errors(body: str) -> list[tuple[int, str]]:
    """Code and name of each error in the JSON of a response, distinct and ascending.

    The non-zero values of all fields named ``errorCode`` or ``…ErrorCode``.
    """
    if is_without_errors(body):
        return []
    codes = {int(code) for code in _CODE.findall(body)}
    return [(code, error_name(code)) for code in sorted(codes) if -_LARGEST <= code <= _LARGEST]
