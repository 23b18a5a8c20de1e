"""Rule ``instance_id_shared``: two processes of one group.instance.id; a deploy and a restart are none."""

from __future__ import annotations

from typing import Any

import pytest

from decoder.kafka.apis import KafkaError
from tests.pipeline.analysis.rules.kafka.processes.story import Peer, Story

FENCED, UNRELEASED = int(KafkaError.FENCED_INSTANCE_ID), int(KafkaError.UNRELEASED_INSTANCE_ID)
RULE = "instance_id_shared"
REFUSE = {"beat": Story.beat, "commit": lambda *one, **more: Story.commit(*one, 5, **more)}


def fight(
    story: Story, first: Peer, second: Peer, *, rounds: int = 4, every_s: float = 20, by: str = "beat",
    names_it: bool = True,
) -> Story:  # fmt: skip
    """Each joins in turn, and the other is fenced at its next request."""
    instance = "w-0" if names_it else None
    peers = [first, second]
    story.join(0, first, "m0", instance="w-0")
    for number in range(1, rounds + 1):
        now = number * every_s
        taker, loser = peers[number % 2], peers[(number + 1) % 2]
        story.join(now, taker, f"m{number}", instance="w-0")
        REFUSE[by](story, now + 1, loser, f"m{number - 1}", instance=instance, code=FENCED)
        for beat in range(1, int(every_s / 4)):
            story.beat(now + 1 + 3 * beat, taker, f"m{number}", instance=instance)
    return story


def found(story: Story) -> list[dict[str, Any]]:
    return story.found(RULE)


@pytest.mark.parametrize("by", sorted(REFUSE))
@pytest.mark.parametrize("names_it", [True, False])
def test_two_hosts_that_fence_each_other_are_both_named(by: str, names_it: bool) -> None:
    story = Story()
    (row,) = found(fight(story, story.peer("w-0"), story.peer("w-0", "10.0.0.6"), by=by, names_it=names_it))
    assert (row["severity"], row["state"], row["subject"]) == ("critical", "ongoing", "orders-app/w-0")
    assert "10.0.0.5 and 10.0.0.6 both use group.instance.id w-0" in row["summary"]
    assert "fence each other" in row["summary"]


def test_two_processes_of_one_host_are_told_apart_by_port() -> None:
    story = Story()
    (row,) = found(fight(story, story.peer("w-0", port=1111), story.peer("w-0", port=2222)))
    assert "10.0.0.5:1111 and 10.0.0.5:2222 both use group.instance.id w-0" in row["summary"]


def test_processes_that_are_restarted_come_by_new_connections() -> None:
    story = Story()
    before = story.peer("w-0")
    story.join(0, before, "m0", instance="w-0")
    for number in range(1, 6):
        peer = story.peer("w-0", f"10.0.0.{5 + number % 2}", 40_000 + number)
        story.join(30 * number, peer, f"m{number}", instance="w-0")
        story.beat(30 * number + 2, before, f"m{number - 1}", instance="w-0", code=FENCED)
        before = peer
    (row,) = found(story)
    assert "10.0.0.5 and 10.0.0.6" in row["summary"]


def test_a_member_that_is_refused_for_ever_is_one_of_two() -> None:
    story = Story()
    old, new = story.peer("a"), story.peer("b", "10.0.0.6")
    story.join(0, old, "m0", instance="w-0")
    story.join(5, new, "m1", instance="w-0")
    for beat in range(10):
        story.beat(6 + 3 * beat, old, "m0", instance="w-0", code=FENCED)
        story.beat(6.5 + 3 * beat, new, "m1", instance="w-0")
    (row,) = found(story)
    assert "the coordinator refuses 10.0.0.5" in row["summary"]


def test_the_other_one_need_not_be_captured() -> None:
    story = Story()
    old = story.peer("a")
    for beat in range(20):
        story.beat(3 * beat, old, "m0", instance="w-0", code=FENCED)
    (row,) = found(story)
    assert (
        "a at 10.0.0.5 is refused in group orders-app: another process, which was not captured, uses "
        "group.instance.id w-0, too" in (row["summary"])
    )
    assert "--describe --group orders-app --members` shows where it runs" in row["advice"]


def test_who_is_fenced_and_ends_is_none() -> None:
    story = Story()
    old = story.peer("a")
    for beat in range(5):
        story.beat(3 * beat, old, "m0", instance="w-0")
    story.beat(15, old, "m0", instance="w-0", code=FENCED)
    story.beat(15.1, old, "m0", instance="w-0", code=FENCED)
    assert found(story) == []


def test_a_rejoin_with_the_old_member_id_is_refused() -> None:
    story = Story()
    old, new = story.peer("w"), story.peer("w", "10.0.0.6")
    story.join(0, old, "m0", instance="w-0")
    story.join(5, new, "m1", instance="w-0")
    for number in range(5):
        story.join(10 + 10 * number, old, "", old="m0", instance="w-0", code=FENCED)
    (row,) = found(story)
    assert "10.0.0.5 and 10.0.0.6" in row["summary"]


def test_the_consumer_protocol_refuses_whoever_comes_second() -> None:
    story = Story()
    first, second = story.peer("w"), story.peer("w", "10.0.0.6")
    story.modern(0, first, "m0", 0, instance="w-0")
    for number in range(1, 30):
        story.modern(5 * number, first, "m0", 1, instance="w-0")
        if number % 2:
            story.modern(5 * number + 1, second, f"n{number}", 0, instance="w-0", code=UNRELEASED)
    (row,) = found(story)
    assert "the coordinator refuses 10.0.0.6: UNRELEASED_INSTANCE_ID" in row["summary"]


def test_it_is_known_where_the_capture_begins_later() -> None:
    story = Story()
    old, new = story.peer("w"), story.peer("w", "10.0.0.6")
    for beat in range(10):
        story.beat(3 * beat, old, "m0", instance="w-0", code=FENCED)
        story.beat(3 * beat + 1, new, "m1", instance="w-0")
    (row,) = found(story)
    assert "10.0.0.5 and 10.0.0.6" in row["summary"]


def test_a_deploy_and_its_rollback_are_none() -> None:
    story = Story()
    assert found(fight(story, story.peer("w"), story.peer("w", "10.0.0.6"), rounds=2)) == []


def test_a_restart_is_none() -> None:
    story = Story()
    for number in range(8):
        peer = story.peer("w", port=40_000 + number)
        story.join(30 * number, peer, f"m{number}", instance="w-0")
        story.beat(30 * number + 5, peer, f"m{number}", instance="w-0")
    assert found(story) == []


def test_the_new_instance_waits_for_the_old_one_in_a_deploy() -> None:
    story = Story()
    old, new = story.peer("w"), story.peer("w", "10.0.0.6")
    story.modern(0, old, "m0", 0, instance="w-0")
    for number in range(8):
        story.modern(5 * number + 1, new, "n", 0, instance="w-0", code=UNRELEASED)
    story.modern(41, old, "m0", -2, instance="w-0")
    story.modern(42, new, "n", 0, instance="w-0")
    assert found(story) == []
