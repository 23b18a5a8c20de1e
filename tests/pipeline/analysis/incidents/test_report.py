"""What an incident says: impact, what to do, confidence; also of names that a stranger has chosen."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from pipeline.analysis.incidents.incidents import grouped
from pipeline.analysis.incidents.report import CERTAIN, LIKELY, OPEN, sql_command
from tests.paths import PIPELINE, ROOT
from tests.pipeline.analysis.incidents.made import found


def told(*rows: dict[str, Any]) -> dict[str, Any]:
    (row,) = grouped(rows).incidents
    return row


def stopped(**values: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"group": "g", "topic": "t", "severity": "critical", "partitions": 2, "records_behind": 7}
    return found("stopped", "g/t", **(given | values))


@pytest.mark.parametrize(
    ("state", "impact", "now"),
    [
        ("ongoing", "7 records waiting in 2 partitions, growing, since 2026-11-", "List the members that are left"),
        ("unknown", "UTC (10 s), may be ongoing: seen last at 2026-11-", "List the members that are left"),
        ("resolved", "UTC (10 s), resolved.", "It is over. If it comes again: list the members that are left"),
    ],
)
def test_how_bad_it_is_and_what_to_do_follow_the_state(state: str, impact: str, now: str) -> None:
    row = told(stopped(state=state))
    assert row["state"] == state
    assert impact in row["impact"]
    assert row["immediate_action"].startswith(now)
    assert (row["records"], row["partitions"]) == (7, 2)
    assert row["growing"] == {"ongoing": True, "unknown": None, "resolved": False}[state]


def test_records_are_stated_beside_the_offsets_that_they_span() -> None:
    row = told(stopped(records_behind=134, transaction_markers=19))
    assert row["impact"].startswith("134 records (153 offsets less 19 transaction markers) waiting in 2 partitions, ")
    assert "133 records" in told(stopped(records_behind=133))["impact"]
    assert "offsets" not in told(stopped(records_behind=133))["impact"]


def test_markers_are_those_between_the_records_that_are_stated() -> None:
    held: dict[str, Any] = {
        "records_behind": 134,
        "transaction_markers": 18,
        "last_stable_offset": 24,
        "high_watermark": 176,
    }
    place: dict[str, Any] = {"topic": "t", "partition": 0, "severity": "critical"}
    hanging = found("hanging_transaction", "tx", 3, severity="critical", partitions=["t-0"], transactional_id="tx")
    stalled = found("lso_stalled", "t-0", 4, transactional_id="tx", **place, **held)
    row = told(hanging, stalled)
    assert row["rules"] == ["hanging_transaction", "lso_stalled"]
    assert row["impact"].startswith("134 records (152 offsets less 18 transaction markers) waiting in 1 partition")


def test_it_is_open_while_one_of_its_findings_is() -> None:
    lag = found("lag_growing", "g/t-0", 20, group="g", topic="t", partition=0, state="ongoing")
    assert told(stopped(state="resolved"), lag)["state"] == "ongoing"
    assert told(stopped(state="resolved"), lag | {"state": "unknown"})["state"] == "unknown"
    assert told(stopped(state=None))["state"] == "ongoing"  # of a release that did not know


def test_what_is_not_over_and_stands_still_comes_first() -> None:
    rows = [
        found("acks0_producer", "a", severity="info"),
        found("throttled", "b", severity="warning", clients=["b at h"]),
        found("stuck_commit", "c/t-0", group="c", topic="t", partition=0, severity="critical", state="resolved"),
        found("commit_rejected", "d/app", group="d", topic="t", severity="critical", clients=["app at h"]),
        stopped(),
        found("throttled", "e", severity="warning", state="resolved", clients=["e at h"]),
    ]
    assert [row["rule"] for row in grouped(rows).incidents] == [
        "stopped", "commit_rejected", "throttled", "stuck_commit", "acks0_producer", "throttled",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("unstable", "has_read_all", "words"),
    [
        (0, None, "(2 generations): a at h joins again and again"),
        (2, None, "(2 generations), 2 s of 10 s in rebalances: a at h joins again and again"),
        (6, None, "(2 generations), 6 s of 10 s in rebalances: a at h joins again and again"),
        (6, False, "(2 generations) and hardly reads, 6 s of 10 s in rebalances: a at h joins again and again"),
        (6, True, "(2 generations), 6 s of 10 s in rebalances: a at h joins again and again"),
    ],
)
def test_a_group_hardly_reads_only_where_that_was_seen(unstable: int, has_read_all: bool | None, words: str) -> None:
    figures = {"unstable_us": unstable * 1_000_000, "has_read_all": has_read_all}
    storm = found("rebalance_storm", "g", group="g", clients=["a at h"], kinds=["1", "2"], times=9, **figures)
    row = told(storm)
    assert words in row["headline"]
    assert row["impact"].startswith("9 joins, ")


@pytest.mark.parametrize(
    ("who", "headline", "fix"),
    [
        ({"writers": ["w"], "readers": ["r"]}, "Old message formats are written to t by w", "Update w ("),
        ({"readers": ["r"], "stored_for": ["r"]}, "t holds old message formats, which r reads", "Nothing, if they"),
        ({"readers": ["r"]}, "r reads t by requests that cannot take format v2", "Update r ("),
    ],
)
def test_old_formats_are_written_only_where_a_writer_was_seen(who: dict[str, Any], headline: str, fix: str) -> None:
    row = told(found("old_message_format", "t", topic="t", severity="info", **who))
    assert row["headline"].startswith(headline)
    assert ("written to" in row["headline"]) is ("writers" in who)
    assert row["remediation"].startswith(fix)


def test_how_sure_it_is() -> None:
    stuck = found("stuck_commit", "g/t-0", group="g", topic="t", partition=0, committer={"client_id": "app"})
    assert told(stuck)["confidence"] == CERTAIN
    assert told(stopped())["confidence"] == OPEN
    loose = found("unsupported_version", "app/Produce v0", clients=["app at h"])
    assert told(found("kip896_incompatible_client", "app"), loose)["confidence"] == LIKELY
    loss = found("capture_loss", "agent/b:1", client_ids=["app"])
    (row,) = [one for one in grouped([stuck, loss]).incidents if one["rule"] == "stuck_commit"]
    assert row["confidence"] == LIKELY
    assert "The capture lost some bytes of these clients" in row["reasoning"]


@pytest.mark.parametrize(
    ("advice", "now", "fix"),
    [
        ("Now: stop it. Fix: mend it.", "Stop it.", "Mend it."),
        ("*Now:* stop it.\n*Fix:* mend it.", "Stop it.", "Mend it."),
        ("Now: retention.ms longer. Fix: max.poll.records.", "retention.ms longer.", "max.poll.records."),
        ("Look at the log. Then mend it.", "Look at the log.", "Then mend it."),
    ],
)
def test_a_rule_without_words_here_speaks_for_itself(advice: str, now: str, fix: str) -> None:
    row = told(
        found("some_rule", summary="It is so for app at h. There is more.", advice=advice, client_id="app", host="h")
    )
    assert (row["headline"], row["immediate_action"], row["remediation"]) == ("It is so for app at h", now, fix)
    assert (row["reasoning"], row["source"]) == ("There is more.", "app (h)")


@pytest.mark.parametrize(
    ("headline", "names"),
    [
        ("Group g stands", "Group g stands (client: app at h)"),
        ("Group app stands", "Group app stands (client: app at h)"),
        ("app stands", "app stands (client: app at h)"),
        ("my-app at h stands", "my-app at h stands (client: app at h)"),
        ("app at h stands", "app at h stands"),
        ("app (h) is", "app (h) is"),
    ],
)
def test_a_headline_names_client_and_host(headline: str, names: str) -> None:
    assert told(found("some_rule", summary=f"{headline}.", client_id="app", host="h"))["headline"] == names


def test_a_headline_names_one_of_several_or_all() -> None:
    assert told(found("some_rule", summary="b at h stands.", clients=["a at h", "b at h"]))["headline"] == (
        "b at h stands"
    )
    assert told(found("some_rule", summary="It stands.", clients=["a at h", "b"]))["headline"] == (
        "It stands (clients: a at h and b)"
    )
    assert told(found("some_rule", summary="h stands.", clients=["a client without client_id at h"]))["headline"] == (
        "h stands"
    )
    assert told(found("some_rule", summary="It stands."))["headline"] == "It stands"


def test_a_storm_names_who_comes_again_and_again() -> None:
    storm = found("rebalance_storm", "g", group="g", clients=["a at h", "b at i"], comers={"b at i": 4}, kinds=["1"])
    row = told(storm)
    assert row["headline"] == "Group g keeps rebalancing (1 generation): b at i came 4 times"
    assert "whoever keeps joining (b at i came 4 times)" in row["immediate_action"]
    both = told(found("rebalance_storm", "g", group="g", clients=["a at h", "b at i"], kinds=["1"]))
    assert both["headline"].endswith(": a at h and b at i join again and again")


def test_what_stays_when_it_is_over_is_still_to_be_done() -> None:
    reset = found("offset_reset", "g/t", group="g", topic="t", state="resolved", skipped=40)
    assert told(reset)["immediate_action"] == "It is over, but what it did stays: stop it."
    refused = found("produce_refused", "t/app", topic="t", state="resolved", client_id="app", host="h")
    assert told(refused)["immediate_action"].startswith("It is over. If it comes again:")


def test_a_producer_that_came_back_under_another_id_does_not_end_what_it_left() -> None:
    left: dict[str, Any] = {"topic": "t", "client_id": "app", "address": "h:1", "transactional_id": "tx-1"}
    row = told(found("hanging_transaction", "tx-1", **left, came_back_as="tx-2"))
    assert row["headline"] == "app (h) came back as tx-2 and left transaction tx-1 open on t"
    assert "Start it once with transactional.id=tx-1" in row["immediate_action"]
    assert told(found("hanging_transaction", "tx-1", **left))["immediate_action"].startswith("Restart app (h)")


def test_a_member_that_hangs_is_named_with_what_it_holds() -> None:
    row = told(stopped(partitions=None, places=["t-0", "t-3"], members=["m"], clients=["app at h"], records_behind=70))
    assert row["headline"] == "app (h) of group g no longer commits t-0 and t-3: 70 records wait there"
    assert row["immediate_action"].startswith("Take a stack dump of app (h), then restart it")
    assert "70 records waiting in 2 partitions" in row["impact"]


def test_what_came_before_is_counted() -> None:
    row = told(found("commit_rejected", "g/app", group="g", topic="t", clients=["app at h"], times=4, recurrences=2))
    assert "4 times, came 2 times before" in row["impact"]


@pytest.mark.parametrize("name", ["'; rm -rf ~; '", "$(reboot)", "`reboot`", 'a"b', "a\nb", "ünï", "--help"])
def test_commands_hold_foreign_names_as_what_they_are(name: str) -> None:
    row = told(stopped(group=name, topic=name, partition=0))
    (command,) = [part for part in row["immediate_action"].split("`") if "kafka-consumer-groups.sh" in part] or [
        row["immediate_action"]
    ]
    if "`" not in name:
        assert name in shlex.split(command)
    parts = shlex.split(sql_command(name, row["sql"]))
    assert parts == ["wirelake", "sql", "--lake", name, row["sql"]]
    assert row["sql"].count(name.replace("'", "''")) == 2


MEMBER = "app-7-10b4ab53-2286-4e9c-a7d2-fd79143a828a"


def test_who_leaves_a_partition_out_is_named() -> None:
    row = told(found("partition_dropped_from_commits", "g/t-0", group="g", topic="t", partition=0, owner=MEMBER))
    assert row["headline"].startswith("app-7 of group g no longer commits t-0")
    assert row["immediate_action"].startswith(f"Take a stack dump of {MEMBER} (")


def test_a_producer_that_was_only_forgotten_lost_nothing() -> None:
    given: dict[str, Any] = {"topic": "t", "partition": 0, "clients": ["app at h"]}
    row = told(found("sequence_gap", "t-0/app", kinds=["UNKNOWN_PRODUCER_ID"], **given))
    assert "records are missing" not in row["headline"]
    assert row["immediate_action"].startswith("Nothing, if")
    assert "UNKNOWN_PRODUCER_ID is the broker's own answer" in row["reasoning"]
    row = told(found("sequence_gap", "t-0/app", kinds=["OUT_OF_ORDER_SEQUENCE_NUMBER"], **given))
    assert "records are missing" in row["headline"]
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER is the broker's own answer" in row["reasoning"]


def test_groups_are_set_back_only_where_they_stand_in_the_topic_that_is_gone() -> None:
    row = told(found("topic_recreated", "t", topic="t", committed_since=["billing"]))
    assert "those that committed since need nothing: billing" in row["immediate_action"]
    assert "Reset only a group whose offset was committed before" in row["immediate_action"]


def test_commands_name_the_broker_that_they_ask() -> None:
    """kafka-*.sh with options for a broker do not run without one; a name alone is no command."""
    pages = [path.read_text() for folder in (PIPELINE / "analysis", ROOT / "docs" / "rules") for path in _files(folder)]
    texts = [re.sub(r'"\s*\n\s*f?"', "", page) for page in pages]
    commands = [command for text in texts for command in re.findall(r"`(kafka-[a-z-]+\.sh[ \n][^`]*)`", text)]
    asking = [one for one in commands if not one.startswith("kafka-dump-log.sh")]
    assert len(asking) > 20
    assert [one for one in asking if "--bootstrap-server" not in one] == []


def _files(folder: Path) -> list[Path]:
    return [p for p in sorted(folder.rglob("*.*")) if p.suffix in (".py", ".md")]


def test_a_headline_names_what_else_it_is_about() -> None:
    def poisoned(partition: int) -> dict[str, Any]:
        summary = f"Life after life of g ends at 7 of t-{partition}. It is seen."
        place = {"group": "g", "topic": "t", "partition": partition}
        return found("poison_record", f"g/t-{partition}", partition, end=20, summary=summary, **place)

    assert told(poisoned(0))["headline"] == "Life after life of g ends at 7 of t-0"
    assert told(poisoned(0), poisoned(1), poisoned(2))["headline"].endswith(" ends at 7 of t-0 (also t-1 and t-2)")
    assert told(*map(poisoned, range(6)))["headline"].endswith(" (also t-1, t-2, t-3 and 2 more)")
