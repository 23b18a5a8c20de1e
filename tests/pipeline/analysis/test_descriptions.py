"""A row of the lake is told in the words in which the message itself is told."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.analysis.descriptions import ProtocolDescribers, described
from pipeline.commands.messages.descriptions import Describers
from pipeline.commands.messages.messages import decoded_messages, ordered_frames
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from tests.paths import CAPTURES

ROW: dict[str, Any] = {
    "protocol": "kafka", "api_key": 8, "api_version": 8, "api_name": "OffsetCommit", "client_id": "app",
    "request_size": 10, "response_size": None, "request_status": "ok", "response_status": None,
    "request_body": '{"groupId":"g","generationIdOrMemberEpoch":3,"topics":[{"name":"t","partitions":'
    '[{"partitionIndex":2,"committedOffset":24}]}]}',
    "response_body": None,
}  # fmt: skip


@pytest.mark.parametrize("name", ["stuck_commit", "mongodb/troubled_mongodb"])
def test_the_lake_says_what_decode_says(name: str) -> None:
    capture = str(CAPTURES / f"{name}.pcap")
    describers, lines = Describers(), {}
    for item in decoded_messages(ordered_frames([capture]), keeps_requests=True):
        describers.note(item)
        if item.frame.direction == "response" and item.request is not None:
            lines[item.frame.exchange_id] = describers.describe(item)
    tables = diagnose(read_inputs([capture]), StreamSettings()).tables
    ours = ProtocolDescribers()
    ours.note_topics(tables["silver.topics"].to_pylist())
    rows = {row["exchange_id"]: row for row in tables["silver.exchanges_with_bodies"].to_pylist()}
    assert len(lines) > 100
    assert {name: described(rows[name], ours) for name in lines} == lines


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "g t-2 @24 gen 3"),
        ({"response_size": 5, "response_body": '{"topics":[{"name":"t","partitions":[{"errorCode":0}]}]}'},
         "g t-2 @24 gen 3 → ok"),
        ({"request_body": None}, ""),
        ({"request_body": "not JSON"}, ""),
        ({"request_body": "[1]"}, ""),
        ({"request_body": '{"topics":7}'}, ""),
        ({"request_body": '{"topics":[7]}'}, ""),
        ({"request_size": None}, ""),
        ({"protocol": "gopher"}, ""),
    ],
)  # fmt: skip
def test_a_row_of_whatever_content_is_told_or_nothing_is_said(values: dict[str, Any], words: str) -> None:
    assert described(ROW | values, ProtocolDescribers()) == words
