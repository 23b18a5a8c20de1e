from __future__ import annotations

import pytest

from decoder.kafka.schema.build import compact_message, differences, merge, read_schema, version_range

SCHEMA = """
// a comment
{
  "apiKey": 3, "type": "request", "listeners": ["broker"], "name": "ThingRequest",  // another
  "validVersions": "0-4",
  "flexibleVersions": "3+",
  "fields": [
    { "name": "Url", "type": "string", "versions": "0+", "default": "http://none", "about": "Not // a comment." },
    { "name": "Parts", "type": "[]Part", "versions": "1+", "nullableVersions": "2+" },
    { "name": "Extra", "type": "int32", "versions": "3+", "taggedVersions": "3+", "tag": 0, "default": "0x1f" }
  ],
  "commonStructs": [
    { "name": "Part", "versions": "0+", "fields": [{ "name": "Id", "type": "uuid", "versions": "0+" }] }
  ]
}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [("none", (1, 0)), (None, (1, 0)), ("3", (3, 3)), ("0-4", (0, 4)), ("2+", (2, 32767)), (" 1-2 ", (1, 2))],
)
def test_version_ranges(text, expected):
    assert version_range(text) == expected


def test_a_schema_keeps_its_facts_and_loses_its_prose():
    message = compact_message(read_schema(SCHEMA))
    everything, nothing = (0, 32767), (1, 0)
    assert message == {
        "name": "ThingRequest",
        "kind": "request",
        "apiKey": 3,
        "versions": (0, 4),
        "flexible": (3, 32767),
        "fields": [
            ["url", "string", everything, nothing, nothing, None, None, "http://none", None],
            [
                "parts", "[]Part", (1, 32767), (2, 32767), nothing, None, None, None,
                [["id", "uuid", everything, nothing, nothing, None, None, None, None]],
            ],
            ["extra", "int32", (3, 32767), nothing, (3, 32767), 0, None, "0x1f", None],
        ],
    }  # fmt: skip


def versions_of(name: str, versions: tuple[int, int], api_key: int = 3) -> dict:
    return {"name": name, "kind": "request", "apiKey": api_key, "versions": versions, "flexible": (1, 0), "fields": []}


@pytest.mark.parametrize(
    ("newest", "oldest", "expected"),
    [
        ((3, 13), (0, 11), {"New": (3, 13), "Old": (0, 2)}),
        ((0, 5), (0, 3), {"New": (0, 5)}),
        ((0, 2), (0, 4), {"New": (0, 2), "Old": (3, 4)}),
        ((4, 6), (0, 3), {"New": (4, 6), "Old": (0, 3)}),
    ],
)
def test_the_older_definition_stays_for_versions_that_only_it_has(newest, oldest, expected):
    merged = merge([[versions_of("New", newest)], [versions_of("Old", oldest)]])
    assert {m["name"]: m["versions"] for m in merged} == expected


def test_messages_of_different_keys_do_not_meet():
    assert len(merge([[versions_of("A", (0, 3), 1)], [versions_of("B", (0, 3), 2)]])) == 2


def test_differences_name_the_versions_that_two_releases_define_differently():
    new, old = read_schema(SCHEMA), read_schema(SCHEMA.replace('"Url"', '"Address"'))
    assert differences([[compact_message(new)], [compact_message(new)]]) == []
    assert differences([[compact_message(new)], [compact_message(old)]]) == [f"ThingRequest v{v}" for v in range(5)]
