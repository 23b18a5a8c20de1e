"""Commands that people copy run as they are: with all that they require, and with what is known filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from pipeline.analysis.incidents.incidents import grouped
from tests.paths import ROOT
from tests.pipeline.analysis.incidents.golden import FOLDER
from tests.pipeline.analysis.incidents.made import found

_TEXTS = (*FOLDER.glob("*.txt"), *(ROOT / "docs" / "rules").glob("*.md"), ROOT / "docs" / "reference" / "rules.md")
_REQUIRED = {
    "kafka-dump-log.sh --deep-iteration": ("--files",),
    "kafka-acls.sh .*--add": ("--allow-principal", "--operation|--producer|--consumer", "--topic|--group"),
    "kafka-configs.sh .*--alter": ("--entity-name|--topic", "--add-config"),
    "kafka-consumer-groups.sh .*--reset-offsets": ("--group", "--topic", "--to-", "--execute"),
    "kafka-leader-election.sh .*--election-type": ("--topic", "--partition"),
    "kafka-transactions.sh .*abort": ("--topic", "--partition", "--start-offset"),
    "kafka-transactions.sh .*describe-producers": ("--topic", "--partition"),
    "kafka-transactions.sh .*find-hanging": ("--topic|--broker-id",),
}
"""What a command requires: of each part one of the options."""
_PLACEHOLDERS = {
    "BROKER", "GROUP", "TOPIC", "PARTITION", "OFFSET", "START_OFFSET", "TRANSACTIONAL_ID", "CLIENT_ID", "LOG_FILE",
    "FILE", "NAME", "OPERATION", "TOKEN", "ID",
}  # fmt: skip


def _commands() -> Iterator[str]:
    for path in _TEXTS:
        text = " ".join(path.read_text(encoding="utf-8").split())
        yield from re.findall(r"`(kafka-[a-z-]+\.sh [^`]*)`", text)


@pytest.mark.parametrize("command", _REQUIRED)
def test_a_command_has_the_options_that_it_requires(command: str) -> None:
    given = [one for one in _commands() if re.match(command, one)]
    assert given
    lacking = [(one, part) for one in given for part in _REQUIRED[command] if not re.search(part, one)]
    assert lacking == []


def test_placeholders_are_spelled_alike() -> None:
    words = {word for one in _commands() for word in re.findall(r"(?<![\w=.-])[A-Z][A-Z_]*(?![\w.-])", one)}
    assert words <= _PLACEHOLDERS
    assert {"BROKER", "TOPIC"} <= words
    assert [one for one in _commands() if "…" in one] == []


def test_a_command_covers_each_partition_that_the_headline_names() -> None:
    given = [found("stalled", f"g/t-{n}", group="g", topic="t", partition=n, offset=7) for n in (1, 0)]
    (row,) = grouped(given).incidents
    assert "makes no progress on t-0 and t-1" in row["headline"]
    assert "--to-offset 8 --topic t:0 --group g --execute` and `kafka-consumer-groups.sh" in row["immediate_action"]
    assert "--to-offset 8 --topic t:1 --group g --execute`" in row["immediate_action"]
    assert "--shift-by" not in row["immediate_action"]


def test_a_group_is_set_to_where_the_log_begins_if_its_offset_is_deleted() -> None:
    given = [
        found("stalled", "g/t-0", group="g", topic="t", partition=0, offset=7, lost_to_retention=40),
        found("stalled", "g/t-1", group="g", topic="t", partition=1, offset=7),
    ]
    (row,) = grouped(given).incidents
    assert "--to-earliest --topic t:0 --group g --execute` and `" in row["immediate_action"]
    assert "--to-offset 8 --topic t:1 --group g --execute`" in row["immediate_action"]


@pytest.mark.parametrize(
    ("kinds", "now", "is_login"),
    [
        (["SASL_AUTHENTICATION_FAILED"], "Check the client's credentials", True),
        (["GROUP_AUTHORIZATION_FAILED"], "--add --allow-principal User:NAME --operation Read --group g`", False),
        (["TOPIC_AUTHORIZATION_FAILED"], "--operation Read --topic TOPIC`", False),
        (["CLUSTER_AUTHORIZATION_FAILED"], "--operation OPERATION --cluster`", False),
        (["SASL_AUTHENTICATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"], "--operation Read --topic TOPIC`", True),
    ],
)
def test_a_right_that_is_missing_is_no_guessed_password(kinds: list[str], now: str, *, is_login: bool) -> None:
    refused = found("auth_failed", "b:1/app", kinds=kinds, clients=["app at h"], times=3, server="b:1", group_ids=["g"])
    (row,) = grouped([refused]).incidents
    assert now in row["immediate_action"]
    assert ("passwords" in row["immediate_action"]) == is_login
    assert ("rotate secrets" in row["remediation"]) == is_login


@pytest.mark.parametrize(
    ("subject", "now"),
    [("app/Produce v2", "Update the library of app"), ("app/ConsumerGroupHeartbeat v1", "Start it with classic.")],
)
def test_a_client_newer_than_its_brokers_is_not_updated(subject: str, now: str) -> None:
    advice = "Now: start it with classic. Fix: newer brokers."
    refused = found("unsupported_version", subject, clients=["app at h"], server="b:1", advice=advice)
    (row,) = grouped([refused]).incidents
    assert row["immediate_action"].startswith(now)


def test_two_processes_with_one_instance_id_are_not_restarted() -> None:
    taken = found("zombie_member", "g/app", group="g", clients=["app at h"], kinds=["FENCED_INSTANCE_ID"])
    (row,) = grouped([taken]).incidents
    assert row["immediate_action"].startswith("Stop one of the two processes that use this group.instance.id")
    assert row["remediation"].startswith("Give each instance a group.instance.id")


def test_the_right_is_that_of_the_api_that_was_refused() -> None:
    answers = [["Metadata", "TOPIC_AUTHORIZATION_FAILED"], ["Produce", "TOPIC_AUTHORIZATION_FAILED"]]
    refused = found("auth_failed", "b:1/app", kinds=["TOPIC_AUTHORIZATION_FAILED"], answers=answers, topics=["t"])
    (row,) = grouped([refused]).incidents
    assert "--operation Write --topic" in row["immediate_action"]
    assert "--operation Read" not in row["immediate_action"]


def test_of_batches_only_the_advice_that_applies_is_given() -> None:
    large = found("oversized_or_tiny_batches", "t/app", topic="t", client_id="app", kinds=["oversized"])
    small = found("oversized_or_tiny_batches", "t/app", topic="t", client_id="app", severity="info")
    (of_large,), (of_small,) = (grouped([one]).incidents for one in (large, small))
    assert "compression.type" in of_large["remediation"]
    assert "linger.ms" not in of_large["remediation"]
    assert "linger.ms" in of_small["remediation"]
    assert "compression.type" not in of_small["remediation"]


@pytest.mark.parametrize(
    ("connection", "fix"),
    [
        ("10.0.0.1:9-10.0.0.2:9092", "Capture whole packets (`-s 0` of tcpdump)"),
        ("interface:eth0:a:1", "Give the capture more room (`--buffer-mib` of"),
        ("file:date=2026-03-01/a-1-0000.parquet", "Look in `ops.landing_files`"),
    ],
)
def test_a_loss_is_mended_by_where_it_arose(connection: str, fix: str) -> None:
    (row,) = grouped([found("capture_loss", f"a/{connection}", connections=[connection], bytes_lost=1)]).incidents
    assert row["remediation"].startswith(fix)
    assert "lost 1 byte" in row["headline"]


def test_headline_and_measure_count_the_same_requests() -> None:
    slow = found(
        "latency_outlier", "b:1", 0, 9, severity="info", times=44, server="b:1", clients=["app at h"], recurrences=2
    )
    left = found("unanswered_requests", "b:1/app", 1, 5, severity="critical", times=16, clients=["app at h"])
    (row,) = grouped([slow, left]).incidents
    assert "left 16 requests" in row["headline"]
    assert row["impact"].startswith("16 times, since ")
