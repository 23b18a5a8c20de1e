"""Values of an answer as text and as JSON."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import orjson

OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def for_json(value: Any) -> Any:
    """What JSON has no form for, and orjson therefore asks about."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal() if value == value.to_integral_value() and abs(value) < 2**63:  # DuckDB's sum() of a bigint
            return int(value)
        case _:
            return str(value)


def cell(value: Any) -> str:
    """A value as text, for CSV and tables."""
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return orjson.dumps(value, for_json, OPTIONS).decode().strip('"')
