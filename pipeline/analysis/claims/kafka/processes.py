"""Claims about processes, and about logs that lost records."""

from __future__ import annotations

from pipeline.analysis.claims.kafka.commits import REFUSED
from pipeline.analysis.claims.model import Claim, seen, silent

_IN_GROUP = ("group",)
_JOINS = ("JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat")
_BEATS = ("Heartbeat", "ConsumerGroupHeartbeat")
_NAMING = (*_JOINS, "Heartbeat", "OffsetCommit", "TxnOffsetCommit", "LeaveGroup")
_ENDS = ("Produce", "Fetch", "ListOffsets")

CLAIMS = (
    Claim(
        "instance_id_shared",
        r"both use group\.instance\.id \S+",
        "Two processes use one group.instance.id and are put out by each other.",
        (
            seen("requests that name it", *_NAMING, names=_IN_GROUP, half="request", least=2),
            seen("the coordinator's refusals", *_NAMING, names=_IN_GROUP, where=REFUSED, half="response", least=3),
        ),
    ),
    Claim(
        "instance_id_shared",
        r"another process, which was not captured, uses group\.instance\.id \S+",
        "Another process, which was not captured, has the group.instance.id of a process that is refused.",
        (
            seen("the coordinator's refusals", *_NAMING, names=_IN_GROUP, where=REFUSED, half="response", least=3),
            silent("no accepted request that names it, of the group's other connections", *_NAMING, names=_IN_GROUP),
        ),
    ),
    Claim(
        "frozen_process",
        r"sent nothing on any of its connections|stood still for",
        "A process sent nothing for longer than its session timeout and was put out of its group.",
        (
            seen("joins, heartbeats or commits of it", *_JOINS, *_BEATS, "OffsetCommit", names=_IN_GROUP, least=2),
            silent("nothing on the client's connections", names=("client",)),
        ),
    ),
    Claim(
        "frozen_process",
        r"It was back",
        "The process was in its group again.",
        (seen("its join or heartbeat", *_JOINS, *_BEATS, "OffsetCommit", names=_IN_GROUP, least=2),),
    ),
    Claim(
        "commit_rejected",
        r"without being a member",
        "A client commits for a group of which it is no member.",
        (seen("its commits with the coordinator's error", "OffsetCommit", names=_IN_GROUP, where=REFUSED,
              half="response", least=2),),
    ),
    Claim(
        "commit_rejected",
        r"at \S+ joined by subscribe\(\)",
        "Others are members of the group.",
        (seen("their joins or heartbeats", *_JOINS, *_BEATS, names=_IN_GROUP),),
    ),
    Claim(
        "records_gone",
        r"(is|are) gone: the log end fell",
        "Acknowledged records are no longer in a partition's log.",
        (seen("an acknowledged end of the log, and a lower one after it", *_ENDS, names=("topic",), half="response",
              least=2),),
    ),
    Claim(
        "records_gone",
        r"Written by ",
        "Who wrote what is gone.",
        (seen("the batches", "Produce", names=("topic",), half="request"),),
    ),
    Claim(
        "records_gone",
        r"Read by ",
        "Who had read what is gone.",
        (seen("fetches or commits beyond the log's new end", "Fetch", "OffsetCommit", names=("topic",)),),
    ),
)  # fmt: skip
