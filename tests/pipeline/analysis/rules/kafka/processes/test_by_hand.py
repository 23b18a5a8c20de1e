"""``commit_rejected`` of a client that commits without being a member of a group that has members."""

from __future__ import annotations

from decoder.kafka.apis import KafkaError
from tests.pipeline.analysis.rules.kafka.processes.story import Story

UNKNOWN = int(KafkaError.UNKNOWN_MEMBER_ID)


def refused(member: str, generation: int) -> Story:
    story = Story()
    owner, own = story.peer("owner"), story.peer("flink", "10.0.0.6")
    story.join(0, owner, "m0")
    for number in range(30):
        story.beat(3 * number, owner, "m0")
        story.commit(3 * number + 1, owner, "m0", number)
        story.commit(3 * number + 2, own, member, 100 + number, code=UNKNOWN, generation=generation)
    return story


def test_it_is_told_from_the_members_of_the_group() -> None:
    (row,) = refused("", -1).found("commit_rejected")
    assert row["severity"] == "critical"
    assert "flink at 10.0.0.6 commits offsets of group orders-app without being a member (assign())" in row["summary"]
    assert "owner at 10.0.0.5 joined by subscribe()" in row["summary"]
    assert "group.id of its own" in row["advice"]


def test_a_member_that_was_put_out_is_not_meant() -> None:
    (row,) = refused("old-member", 3).found("commit_rejected")
    assert "assign()" not in row["summary"]
