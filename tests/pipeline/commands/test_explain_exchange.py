"""A whole exchange, and every message that speaks of an offset."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from tests.paths import CAPTURES

STUCK = str(CAPTURES / "stuck_commit.pcap")
SMALL = str(CAPTURES / "version_negotiation.pcap")


def run(*arguments: str, columns: int | None = None) -> str:
    done = CliRunner().invoke(app, ["explain", *arguments], env={"COLUMNS": columns and str(columns)})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


@pytest.mark.parametrize("number", ["84", "85"])
def test_both_halves_whichever_is_named(number: str) -> None:
    out = run(SMALL, "--frame", number, "--exchange")
    assert "#84 OffsetCommit v9 request, 134 bytes: ok" in out
    assert "#85 OffsetCommit v9 response, 30 bytes: ok" in out
    assert "readers-new greetings-0 @10 gen 1 → ok" in out
    found = [json.loads(line) for line in run(SMALL, "--frame", number, "--exchange", "--json").splitlines()]
    assert {(one["frame"], one["direction"]) for one in found} == {(84, "request"), (85, "response")}
    alone = [json.loads(line) for line in run(SMALL, "--frame", "84", "--json").splitlines()]
    assert [{k: v for k, v in one.items() if k not in ("frame", "direction")} for one in found][: len(alone)] == alone


def test_beside_each_other_where_there_is_room() -> None:
    wide = run(SMALL, "--frame", "85", "--exchange", columns=200).splitlines()
    assert any("#84" in line and "#85" in line for line in wide)
    narrow = run(SMALL, "--frame", "85", "--exchange", columns=120).splitlines()
    assert not any("#84" in line and "#85" in line for line in narrow)
    assert max(map(len, wide)) <= 200
    assert max(map(len, narrow)) <= 120


def test_a_request_without_an_answer_stands_alone() -> None:
    out = run(STUCK, "--frame", "2661", "--exchange")
    assert "#2661 Fetch v16 request" in out
    assert "response" not in out


def test_an_offset_is_followed_from_its_record_to_the_commits() -> None:
    found: list[dict[str, Any]] = [
        json.loads(line) for line in run(STUCK, "--follow-offset", "payments", "2", "23", "--json").splitlines()
    ]
    said = [one["says"] for one in found if one["says"]]
    assert said.count("committed @24 by billing: read") == 31
    assert "produced" in said
    assert "asked for, handed out" in said
    frames = [one["frame"] for one in found]
    assert len(set(frames)) == len(frames)
    commits = {one["client_id"] for one in found if one["api_name"] == "OffsetCommit" and one["client_id"]}
    assert commits == {"billing-1"}


def test_nothing_is_a_sentence() -> None:
    with pytest.raises(UserError, match=r"none of the 2,661 messages .* speaks of offset 9999 of payments-2"):
        run(STUCK, "--follow-offset", "payments", "2", "9999")
    with pytest.raises(UserError, match="there is no frame 99999"):
        run(STUCK, "--frame", "99999", "--exchange")


def test_a_topic_that_never_occurs_is_no_dead_end() -> None:
    with pytest.raises(UserError, match=r"no --topic paymets: did you mean payments\?"):
        run(STUCK, "--follow-offset", "paymets", "2", "24")
    with pytest.raises(UserError, match="no --partition 9: there are 0, 1, 2, 3"):
        run(STUCK, "--follow-offset", "payments", "9", "24")
