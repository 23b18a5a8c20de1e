"""``wirelake decode`` prints the messages that are asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from tests.paths import CAPTURES

STUCK = str(CAPTURES / "stuck_commit.pcap")
HANDS = str(CAPTURES / "changing_hands.pcap")
STALE = str(CAPTURES / "incidents" / "stale_readers.pcap")
MONGODB = str(CAPTURES / "mongodb" / "troubled_mongodb.pcap")


def run(*arguments: str) -> Any:
    done = CliRunner().invoke(app, ["decode", *arguments], env={"COLUMNS": None})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def objects(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--json").stdout.splitlines()]


@pytest.fixture(scope="module")
def everything() -> list[dict[str, Any]]:
    return objects(HANDS)


def test_a_response_is_found_by_what_its_request_names(everything: list[dict[str, Any]]) -> None:
    found = objects(HANDS, "--group", "relays", "--api", "TxnOffsetCommit")
    assert [one["direction"] for one in found] == ["request", "response"] * (len(found) // 2)
    assert len(found) == sum(one["api_name"] == "TxnOffsetCommit" for one in everything)


def test_topics_that_stand_by_their_id_are_found_by_name(everything: list[dict[str, Any]]) -> None:
    found = objects(HANDS, "--topic", "sto*", "--api", "Fetch")
    assert any("topicId" in json.dumps(one["body"]) for one in found)
    assert not objects(HANDS, "--topic", "stoc", "--api", "Fetch")
    of_one = objects(HANDS, "--topic", "stock", "--partition", "1", "--api", "ListOffsets")
    assert of_one
    assert all('"partitionIndex": 1' in json.dumps(one["body"]) for one in of_one)
    expected = [
        one["frame"]
        for one in everything
        if one["api_name"] == "ListOffsets" and '"partitionIndex": 1' in json.dumps(one["body"])
        and ("stock" in json.dumps(one["body"]))
    ]  # fmt: skip
    assert [one["frame"] for one in of_one] == expected


def test_clients_hosts_and_connections(everything: list[dict[str, Any]]) -> None:
    found = objects(HANDS, "--client", "relay*")
    connections = {one["connection_id"] for one in everything if (one["client_id"] or "").startswith("relay")}
    assert {one["connection_id"] for one in found} == connections
    assert {one["direction"] for one in found} == {"request", "response"}
    one = found[0]["connection_id"]
    alone = objects(HANDS, "--connection", one)
    assert {line["connection_id"] for line in alone} == {one}
    assert len(objects(HANDS, "--host", "127.0.0.1")) == len(everything)
    assert not objects(HANDS, "--host", "127.0.0.9")
    text = run(HANDS, "--connection", one).stdout.splitlines()
    address = text[0].split()[2]
    assert len(objects(HANDS, "--host", address)) == len(alone) == len(objects(HANDS, "--connection", address))


def test_errors_of_both_protocols() -> None:
    found = objects(STALE, "--errors")
    assert found
    assert {one["direction"] for one in found} == {"response"}
    assert all("rrorCode" in json.dumps(one["body"]) for one in found)
    lines = run(STALE, "--errors").stdout.splitlines()
    assert len(lines) == len(found)
    assert all(any(name in line for name in ("UNKNOWN", "FENCED", "COORDINATOR", "NOT_")) for line in lines)
    mongodb = run(MONGODB, "--errors").stdout
    assert "DuplicateKey" in mongodb
    assert " ok\n" not in mongodb


def test_slow_ones_and_times(everything: list[dict[str, Any]]) -> None:
    slow = objects(HANDS, "--slower-than", "500ms")
    assert [one["frame"] for one in slow] == [one["frame"] for one in everything if (one["latency_us"] or 0) > 500_000]
    assert len(objects(HANDS, "--slower-than", "0.5s")) == len(slow) == len(objects(HANDS, "--slower-than", "500000us"))
    middle = everything[len(everything) // 2]["ts"]
    later, before = objects(HANDS, "--since", middle), objects(HANDS, "--until", middle)
    assert min(one["ts"] for one in later) == middle == max(one["ts"] for one in before)
    assert len(objects(HANDS, "--since", middle[11:-1])) == len(later)
    assert len(later) + len(before) - sum(one["ts"] == middle for one in everything) == len(everything)


def test_namespaces_take_the_place_of_topics() -> None:
    found = objects(MONGODB, "--topic", "shop.*")
    assert found
    assert {one["protocol"] for one in found} == {"mongodb"}
    assert {one["direction"] for one in found} == {"request", "response"}


def test_nothing_found_is_told() -> None:
    done = run(HANDS, "--group", "no-such-group")
    assert done.stdout == ""
    assert "messages is like that" in done.stderr


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--topic", "paymets"), "no --topic paymets: did you mean payments?"),
        (("--group", "biling"), "no --group biling: did you mean billing?"),
        (("--client", "biling-1"), "no --client biling-1: did you mean billing-1 or billing-2?"),
        (("--client", "foo"), "no --client foo: there are setup, billing-1, "),
        (("--host", "10.0.0.1"), "no --host 10.0.0.1: did you mean 127.0.0.1?"),
        (("--host", "127.0.0.1:9093"), "no --host 127.0.0.1:9093: did you mean 127.0.0.1:9092"),
        (("--connection", "zz"), " and 10 more"),
        (("--connection", "127.0.0.1:35909"), "did you mean 127.0.0.1:35908"),
        (("--partition", "77"), "no --partition 77: there are 0, 1, 2, 3"),
        (("--slower-than", "9s"), "the slowest answer took "),
        (("--since", "05:00"), "the messages are of 2026-11-21 04:46:02 to 04:46:34 UTC"),
        (("--topic", "pay*", "--client", "nobody"), "is like that; no --client nobody: there"),
    ],
)
def test_names_that_do_occur_are_told_where_nothing_is_like_that(asked: tuple[str, ...], told: str) -> None:
    done = run(STUCK, *asked)
    assert (done.stdout, done.exit_code) == ("", 0)
    assert "none of the 2,661 messages is like that; " in done.stderr
    assert told in done.stderr


def test_times_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(UserError, match=r"--since 04:46:30 is after --until 04:46:10"):
        run(STUCK, "--since", "04:46:30", "--until", "04:46:10")
    with pytest.raises(UserError, match="is after --until"):
        run(STUCK, "--since", "04:46:30", "--until", "2026-11-21T04:46:10Z")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--slower-than", "fast"), "give a duration, e.g."),
        (("--since", "yesterday"), "give a time"),
        (("--until", "25:00"), "give a time"),
        (("--follow", "--tls-keylog", "x"), "does not decrypt"),
        (("--follow", HANDS), "one file or directory"),
    ],
)
def test_wrong_use_is_a_sentence(arguments: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        run(STUCK, *arguments)


def test_the_keys_of_json_are_those_of_the_contract() -> None:
    first = objects(STUCK, "--until", "04:46:02.4")[0]
    assert list(first) == [
        "frame", "ts", "connection_id", "exchange_id", "direction", "protocol", "api_key", "api_name", "api_version",
        "correlation_id", "client_id", "size", "status", "error_code", "error_offset", "header", "body", "latency_us",
        "service_us",
    ]  # fmt: skip
