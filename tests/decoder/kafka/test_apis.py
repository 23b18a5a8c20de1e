"""One place names Kafka's api keys and error codes; nothing else gives them numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

import pytest

from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.errors import ERROR_NAMES, NO_ERROR
from decoder.kafka.schema import enums
from decoder.kafka.schema.build import SOURCES
from decoder.kafka.schema.table import api_names
from tests.paths import ROOT

NAMES = {*ApiKey.__members__, *KafkaError.__members__}
ASKED = ("api_key", "error_code", "errorCode", "apiKey")
FOLDERS = ("decoder", "pipeline/capture", "pipeline/commands", "pipeline/dashboard")
SOURCES_OF_OURS = sorted(
    path for path in chain.from_iterable((ROOT / folder).rglob("*.py") for folder in FOLDERS)
    if path != enums.TARGET
)  # fmt: skip


def test_the_enums_are_those_of_the_schema_table_and_its_releases():
    assert enums.TARGET.read_text(encoding="utf-8") == enums.module(api_names(), ERROR_NAMES, SOURCES)
    assert {key.value: enums.constant(name) for key, name in ((ApiKey(k), n) for k, n in api_names().items())} == {
        key.value: key.name for key in ApiKey
    }
    assert (ApiKey.OFFSET_COMMIT, ApiKey.SHARE_FETCH, KafkaError.ILLEGAL_GENERATION, NO_ERROR) == (8, 78, 22, 0)


def test_members_are_written_as_numbers_whatever_the_python():
    assert f"{ApiKey.FETCH} {KafkaError.UNKNOWN_SERVER_ERROR!s}" == "1 -1"


def test_errors_are_read_from_what_javap_lists():
    listing = """
       0: new           #1                  // class org/apache/kafka/common/protocol/Errors
       4: ldc_w         #590                // String UNKNOWN_SERVER_ERROR
       7: iconst_0
       8: iconst_m1
       9: ldc_w         #591                // String The server experienced an unexpected error.
      27: ldc           #9                  // String NONE
      30: iconst_1
      31: iconst_0
      32: aconst_null
      50: ldc_w         #601                // String STREAMS_GROUP_FENCED
      53: sipush        300
      56: bipush        119
      58: ldc_w         #602                // String NOT A NAME
    """
    assert enums.read_errors(listing) == {-1: "UNKNOWN_SERVER_ERROR", 0: "NONE", 119: "STREAMS_GROUP_FENCED"}


def bare(text: str) -> Iterator[str]:
    """Lines of a source that name an api or an error by a number of their own, or compare one with a number."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign):
            names = {name.id.lstrip("_") for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)}
            if names & NAMES and any(map(is_number, [node.value, *getattr(node.value, "elts", [])])):
                yield ast.unparse(node)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
            asked, other = node.left, node.comparators[0]
            if isinstance(asked, ast.Tuple) and isinstance(other, ast.Tuple):  # (key, version) == (FETCH, 0)
                pairs = [(mine, [theirs]) for mine, theirs in zip(asked.elts, other.elts, strict=True)]
            else:
                pairs = [(asked, [other, *getattr(other, "elts", [])])]
            if any(is_asked(mine) and any(map(is_number, theirs)) for mine, theirs in pairs):
                yield ast.unparse(node)


def is_asked(node: ast.expr) -> bool:
    return any(word in ast.unparse(node) for word in ASKED)


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


@pytest.mark.parametrize(
    "text",
    [
        "_PRODUCE = 0",
        "PRODUCE, FETCH = (0, 1)",
        "peek.api_key == 17",
        "x.error_code in (0, None)",
        "(x.api_key, 0) == (10, 0)",
    ],
)
def test_a_bare_number_is_found(text):
    assert list(bare(text)) == [ast.unparse(ast.parse(text))]  # Python 3.10 writes brackets that later ones leave out


def test_no_api_or_error_has_a_number_of_its_own():
    found = {str(path.relative_to(ROOT)): list(bare(path.read_text(encoding="utf-8"))) for path in SOURCES_OF_OURS}
    assert {path: lines for path, lines in found.items() if lines} == {}
