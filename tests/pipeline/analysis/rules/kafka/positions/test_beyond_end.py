"""A commit beyond the end of the log is reported by what is known of both."""

from __future__ import annotations

from pipeline.analysis.rules.kafka.positions.beyond_end import COMMITTED_BEYOND
from tests.pipeline.analysis.rules.kafka.positions.beyond_stages import GROUP, beyond, commits_beyond
from tests.pipeline.analysis.rules.kafka.positions.stage import Client

RESET = ("offset_reset", f"{GROUP}/orders")


def test_each_restart_reads_all_again() -> None:
    row = beyond().findings()[RESET]
    assert (row["severity"], row["state"], row["details"]["cause"]) == ("warning", "ongoing", COMMITTED_BEYOND)
    assert "its committed offset 5000 on orders-0 is beyond the end of the log, 55" in row["summary"]
    assert "each restart reads all again, from offset 0 on (55 records)" in row["summary"]
    assert "OFFSET_OUT_OF_RANGE was answered 3 times" in row["summary"]


def test_the_refusal_need_not_be_seen() -> None:
    row = beyond(refused=False, starts=1).findings()[RESET]
    assert "each restart reads all again" in row["summary"]
    assert row["details"]["refusals"] == 0


def test_a_start_that_is_reset_to_the_end() -> None:
    row = beyond(reads_from=55).findings()[RESET]
    assert "each restart begins at the end, offset 55" in row["summary"]


def test_who_commits_it_and_how_often() -> None:
    row = commits_beyond().findings()[RESET]
    assert (row["state"], row["details"]["commits"]) == ("ongoing", 12)
    assert "the log, 180: a restart begins where auto.offset.reset says. worker at 10.0.0.5 committed" in row["summary"]
    assert "one of 12 commits beyond the end" in row["summary"]
    assert row["details"]["clients"] == ["worker at 10.0.0.5"]


def test_who_asks_for_its_commit_and_reads_on_has_not_begun_anew() -> None:
    stage = commits_beyond()
    stage.offset_fetch(40.9, Client("worker", GROUP, 42_000, "worker-1"), {0: 5_120})
    assert stage.findings()[RESET]["details"]["went_on_at"] is None


def test_it_is_over_once_the_group_commits_inside_the_log() -> None:
    row = commits_beyond(heals=True).findings()[RESET]
    assert row["state"] == "resolved"
    assert "the group committed inside the log" in row["summary"]


def test_a_commit_is_compared_with_later_ends_alone() -> None:
    """Who commits in the last moment what others had written since is well."""
    stage = commits_beyond(ahead=0)
    stage.commit(61, Client("worker", GROUP, 42_000, "worker-1"), {0: 5_000})
    assert RESET not in stage.findings()
    assert RESET not in commits_beyond(ahead=0).findings()


def test_a_log_that_reached_so_far_got_shorter() -> None:
    stage = beyond()
    stage.produce(0.01, 0, 4_999, 1)
    assert stage.findings().get(RESET, {}).get("details", {}).get("cause") != COMMITTED_BEYOND
