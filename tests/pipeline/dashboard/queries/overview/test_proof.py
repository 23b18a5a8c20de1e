"""What shows a finding is what proves it: exchanges where requests were wrong, a share-partition of a share group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pipeline.dashboard.queries.overview.proof import ConnectionSeen, parts_of_group, proof
from pipeline.dashboard.queries.progress.shares import SharesSeen
from pipeline.dashboard.queries.scope import ask_rows
from pipeline.dashboard.sql import connect
from tests.pipeline.lakes import diagnosed_lake

_CAPTURES = (
    "version_negotiation", "incidents/faulty_writers", "incidents/stale_readers", "incidents/share_groups",
    "incidents/unsure_writers",
)  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(diagnosed_lake(tmp_path_factory.mktemp("diagnosed") / "lake", *_CAPTURES)) as connection:
        yield connection


def found(lake: duckdb.DuckDBPyConnection, rule: str, subject: str) -> dict[str, Any]:
    sql = "SELECT * FROM gold.findings WHERE rule = $rule AND subject = $subject"
    (row,) = ask_rows(lake, sql, rule=rule, subject=subject)
    return row


def marked(shown: ConnectionSeen) -> list[str]:
    """What the exchanges that are marked say."""
    return [step.words for step in shown.steps.steps if step.exchange_id in shown.evidence]


@pytest.mark.parametrize(
    ("rule", "subject", "times", "words"),
    [
        ("crc_mismatch", "payouts-0/raw-damaged", 1, "CORRUPT_MESSAGE"),
        ("sequence_gap", "payouts-0/raw-gap", 2, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("oversized_or_tiny_batches", "thumbnails/images", 1, "MESSAGE_TOO_LARGE"),
        ("fenced_leader_epoch", "articles-0/raw-past", 5, "FENCED_LEADER_EPOCH"),
        ("stale_metadata", "articles-0/raw-future", 5, "UNKNOWN_LEADER_EPOCH"),
        ("old_message_format", "greetings", 1, "greetings-0 1 record (format v1), acks all"),
    ],
)
def test_what_is_wrong_with_requests_is_shown_by_the_exchanges_that_are_marked(
    lake: duckdb.DuckDBPyConnection, rule: str, subject: str, times: int, words: str
) -> None:
    row = found(lake, rule, subject)
    assert row["topic"] is not None
    assert row["partition"] is not None, "its offsets could be shown"
    shown = proof(lake, row, row["evidence"])
    assert isinstance(shown, ConnectionSeen)
    assert marked(shown).count(words) >= times
    assert shown.then is None


def test_a_batch_that_was_written_twice_is_shown_on_both_connections(lake: duckdb.DuckDBPyConnection) -> None:
    row = found(lake, "duplicate_write", "readings/meter")
    shown = proof(lake, row, row["evidence"])
    assert isinstance(shown, ConnectionSeen)
    first, again = shown.all
    assert first.part.ends[0] != again.part.ends[0], "the client sent it again on another connection"
    assert [one.exchange_id for one in (first, again)] == row["evidence"][:2]
    (sent, *_), (sent_again, *_) = marked(first), marked(again)
    assert sent == sent_again


def test_a_share_group_that_stopped_is_shown_by_what_became_of_its_records(lake: duckdb.DuckDBPyConnection) -> None:
    row = found(lake, "stopped", "painting/orders")
    assert row["partition"] is None
    shown = proof(lake, row, row["evidence"])
    assert isinstance(shown, SharesSeen)
    assert (shown.place.group, shown.place.topic) == ("painting", "orders")
    assert shown.held
    assert shown.scope.start < row["first_ts"] < row["last_ts"] <= shown.scope.end, "with the silence as a whole"


def test_how_far_a_group_is_behind_shows_only_what_is_about_that() -> None:
    assert "lag" in parts_of_group("stopped")
    assert "lag" not in parts_of_group("rebalance_storm")
