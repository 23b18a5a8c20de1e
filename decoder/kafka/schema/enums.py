"""Content of ``decoder/kafka/apis.py``: Kafka's api keys and error codes as enums; :mod:`.build` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

TARGET = Path(__file__).parents[1] / "apis.py"

_ERROR = re.compile(
    r"ldc(?:_w)? .*// String ([A-Z][A-Z0-9_]*)\n.*: (?:[bs]ipush|iconst).*\n.*: ([bs]ipush +|iconst_)(\S+)"
)
"""How the constructor of an error is called: its name, its place in the enum, its code."""

_HEAD = '''"""Kafka's api keys and error codes by name.

Written by ``make schemas`` from Apache Kafka {sources} (the newest release that knows one names it); change
decoder/kafka/schema/enums.py instead. numba knows no enums: kernels take ``int(ApiKey.FETCH)``.
"""

from __future__ import annotations

from enum import IntEnum


class ApiKey(IntEnum):
    """The number in front of each request that names what is asked for."""

    __str__ = int.__repr__  # as of Python 3.11

{apis}


class KafkaError(IntEnum):
    """What a broker answers, by number; not to be mistaken for :class:`decoder.errors.ErrorCode`."""

    __str__ = int.__repr__

{errors}
'''


def constant(name: str) -> str:
    """An api's name as Kafka's ApiKeys spells it: ``OFFSET_COMMIT``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def read_errors(listing: str) -> dict[int, str]:
    """Error code to name, from what ``javap -c`` prints of Kafka's enum of errors."""
    codes = ((name, code.replace("m", "-")) for name, _, code in _ERROR.findall(listing))
    return {int(code): name for name, code in codes}


def module(apis: Mapping[int, str], errors: Mapping[int, str], sources: Iterable[str]) -> str:
    """The text of ``apis.py``.

    Args:
        apis: api key to name.
        errors: error code to name.
        sources: the Kafka releases that they are from.
    """
    return _HEAD.format(
        sources=" and ".join(sources),
        apis="\n".join(f"    {constant(name)} = {key}" for key, name in sorted(apis.items())),
        errors="\n".join(f"    {name} = {code}" for code, name in sorted(errors.items())),
    )
