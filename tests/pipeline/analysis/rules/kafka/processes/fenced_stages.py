"""Members that another process fences, that commit to another broker, and whose SyncGroup is refused."""

from __future__ import annotations

from collections.abc import Iterable

from tests.pipeline.analysis.rules.kafka.positions.stage import HEARTBEAT, JOIN, SYNC, Client, Stage, records

GROUP = "orders-app"
FENCED, NOT_COORDINATOR, REBALANCING = 82, 16, 27


def fenced(*, seconds: int = 60) -> Stage:
    """Each heartbeat of a static member is refused; the process that has its id is not captured."""
    stage, worker = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    asked = {"groupId": GROUP, "generationId": 1, "memberId": "worker-1", "groupInstanceId": "w-0"}
    for second in range(0, seconds, 3):
        stage.say(second, worker, HEARTBEAT, asked, {"errorCode": FENCED})
    return stage


def commits_elsewhere(*, seconds: int = 150, well: int = 20, code: int = NOT_COORDINATOR) -> Stage:
    """After some seconds a coordinator refuses a member's commits, as one that it is not, and not its heartbeats."""
    stage, worker = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    stage.join(0.1, worker, [0])
    for second in range(seconds):
        base, end = 3 * second, 3 * (second + 1)
        stage.produce(second + 0.3, 0, base, 3)
        stage.fetch(second + 0.5, worker, (0, base, end, records(base, 3)))
        if second % 5 == 4:
            stage.commit(second + 0.7, worker, {0: end}, error=code if second > well else 0)
        stage.heartbeat(second + 0.8, worker)
    return stage


def cannot_begin(
    *, members: int = 1, times: int = 60, every_s: int = 1, code: int = REBALANCING, refused: Iterable[int] = (0, 1, 2),
    accepted: int | None = None,
) -> Stage:  # fmt: skip
    """All members of a group join at once, again and again, and SyncGroup is refused.

    Args:
        refused: members whose SyncGroup is refused.
        accepted: from this time on that of all is accepted; None: never.
    """
    stage = Stage()
    workers = [
        Client(f"worker-{number}", GROUP, 42_000, f"worker-{number}", host=f"10.0.0.{20 + number}")
        for number in range(members)
    ]
    for turn in range(times):
        at, generation = turn * every_s, turn + 1
        for worker in workers:
            asked = {"groupId": GROUP, "sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 300_000,
                     "memberId": worker.member, "protocolType": "consumer",
                     "protocols": [{"name": "range", "metadata": b""}]}  # fmt: skip
            named = [{"memberId": one.member, "metadata": b""} for one in workers if worker is workers[0]]
            answer = {"generationId": generation, "protocolName": "range", "leader": workers[0].member,
                      "memberId": worker.member, "members": named}  # fmt: skip
            stage.say(at, worker, JOIN, asked, answer)
        for number, worker in enumerate(workers):
            error = code if number in refused and (accepted is None or turn < accepted) else 0
            asked = {"groupId": GROUP, "generationId": generation, "memberId": worker.member}
            stage.say(at + 0.02, worker, SYNC, asked, {"errorCode": error})
    return stage
