"""Every field of Kafka's messages that may hold a secret is known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from decoder.kafka.codec.quick_look import is_clean
from decoder.kafka.redaction.secrets import REVIEWED, Fate, fate_of, fates, fields_of, review_of, smells
from decoder.kafka.schema import table
from tests.decoder.kafka.credentials import credentials
from tests.paths import ROOT

REDACTED = ROOT / "docs" / "redacted-fields.md"
FIRST_LINE = "| api | message | field | what becomes of it | why |"


def fields() -> Iterator[tuple[str, int, str, str]]:
    """Direction, api key, path and type of each field that can hold a text or bytes, of every version."""
    for message in table.messages():
        if message.kind in ("request", "response") and message.api_key is not None:
            for version in range(message.versions[0], message.versions[1] + 1):
                for path, type_ in fields_of(table.layout(message.definition, version)):
                    yield message.kind, message.api_key, path, type_


def test_somebody_decided_about_every_field_that_smells_of_a_secret():
    unknown = {
        (kind, key, path) for kind, key, path, type_ in fields()
        if smells(path, type_) and review_of(key, kind, path) is None
    }  # fmt: skip
    assert unknown == set()


def test_every_decision_is_about_some_field():
    used = {id(review_of(key, kind, path)) for kind, key, path, _ in fields()}
    assert [review for review in REVIEWED if id(review) not in used] == []
    assert all(review.reason for review in REVIEWED)


def test_no_field_of_bytes_just_stays():
    assert {path for kind, key, path, type_ in fields() if type_ != "string" and fate_of(key, kind, path, type_) is Fate.STAYS} == set()  # noqa: E501  # fmt: skip


@pytest.mark.parametrize("name", ["saslPassword", "tokens/hmac", "newSecret", "credentials/user", "authBytes"])
def test_a_new_secret_is_overwritten_before_anybody_has_looked(name):
    assert fate_of(99, "request", name, "string") is Fate.SECRET
    assert fate_of(99, "request", "anything", "bytes") is Fate.SECRET
    assert fate_of(99, "request", "topics/name", "string") is Fate.STAYS


def test_the_tests_of_redaction_know_every_message_with_secrets():
    secret = {(key, kind) for (kind, key, _), named in fates().items() if Fate.SECRET in named.values()}
    assert {(key, kind) for kind, key, _, _ in credentials(b"secret").values()} == secret


def lines() -> list[str]:
    """The table of docs/redacted-fields.md: of each api what does not just stay, in any version."""
    names, rows = table.api_names(), {}
    for (kind, key, _), named in fates().items():
        for path, fate in named.items():
            review = review_of(key, kind, path)
            reason = review.reason if review else "nobody has looked"
            rows[key, kind, path] = f"| {names[key]} ({key}) | {kind} | `{path}` | {fate.value} | {reason} |"
    return [FIRST_LINE, "|---|---|---|---|---|", *(rows[row] for row in sorted(rows))]


def test_the_documentation_has_the_table():
    text = REDACTED.read_text()
    shown = text[text.index(FIRST_LINE) :].split("\n\n")[0].splitlines()
    assert shown == lines()


def test_a_version_that_no_release_has_is_not_clean():
    assert not is_clean(b"\0\3\0\x63\0\0\0\7\xff\xff", "request", 3, 99)


if __name__ == "__main__":
    print("\n".join(lines()))
