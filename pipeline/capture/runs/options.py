"""How an agent reads, and how its frames land: keyword arguments that every kind of capture run takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from decoder.field_hash import FieldHash
    from decoder.model import PayloadPolicy
    from pipeline.capture.tcp.work_limits import WorkLimits


class AgentOptions(TypedDict, total=False):
    """How an agent reads; the defaults are those of :class:`pipeline.capture.runs.agent.Agent`.

    Attributes:
        agent_id: name of the agent; part of the connection ids. What a ring has been read of is remembered under it.
        payload_policy: what of record keys and values stays in the frames.
        field_hash: what the policy ``hash`` hashes with.
        idle_us: a connection without a packet for so long (µs of capture time) is taken to have ended.
        work: what reading connections may cost; where packets do not wait that is less than of a file.
    """

    agent_id: str
    payload_policy: PayloadPolicy
    field_hash: FieldHash | None
    idle_us: int
    work: WorkLimits | None


class RunOptions(AgentOptions, total=False):
    """And how its frames land; the defaults are those of :class:`pipeline.capture.runs.run.CaptureRun`.

    Attributes:
        publish_every_s: rows land at the latest so long after they came, s; None: when a file is full.
        store_timeout_s: how long to wait for a landing zone that is full or out of reach, s.
        are_read_once: whether landing files go after they were read: they take less time and more space.
    """

    publish_every_s: float | None
    store_timeout_s: float
    are_read_once: bool
