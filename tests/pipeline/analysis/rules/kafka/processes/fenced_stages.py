"""A member that another process fences, and one that commits to a broker which does not coordinate its group."""

from __future__ import annotations

from tests.pipeline.analysis.rules.kafka.positions.stage import HEARTBEAT, Client, Stage, records

GROUP = "orders-app"
FENCED, NOT_COORDINATOR = 82, 16


def fenced(*, seconds: int = 60) -> Stage:
    """Each heartbeat of a static member is refused; the process that has its id is not captured."""
    stage, worker = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    asked = {"groupId": GROUP, "generationId": 1, "memberId": "worker-1", "groupInstanceId": "w-0"}
    for second in range(0, seconds, 3):
        stage.say(second, worker, HEARTBEAT, asked, {"errorCode": FENCED})
    return stage


def commits_elsewhere(*, seconds: int = 150, well: int = 20) -> Stage:
    """After some seconds a member's commits go to a broker that is not the coordinator, its heartbeats do not."""
    stage, worker = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    stage.join(0.1, worker, [0])
    for second in range(seconds):
        base, end = 3 * second, 3 * (second + 1)
        stage.produce(second + 0.3, 0, base, 3)
        stage.fetch(second + 0.5, worker, (0, base, end, records(base, 3)))
        if second % 5 == 4:
            stage.commit(second + 0.7, worker, {0: end}, error=NOT_COORDINATOR if second > well else 0)
        stage.heartbeat(second + 0.8, worker)
    return stage
