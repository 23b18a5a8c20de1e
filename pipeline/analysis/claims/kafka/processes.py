"""Claims about processes, and about logs that lost records."""

from __future__ import annotations

from pipeline.analysis.claims.kafka.commits import BEATS, IN_GROUP, JOINS, REFUSED
from pipeline.analysis.claims.model import Claim, seen, silent

_NAMING = (*JOINS, "Heartbeat", "OffsetCommit", "TxnOffsetCommit", "LeaveGroup")
_ENDS = ("Produce", "Fetch", "ListOffsets")

INSTANCE_ID_SHARED = (
    Claim(
        r"both use group\.instance\.id \S+",
        "Two processes use one group.instance.id and are put out by each other.",
        (
            seen("requests that name it", *_NAMING, names=IN_GROUP, half="request", least=2),
            seen("the coordinator's refusals", *_NAMING, names=IN_GROUP, where=REFUSED, half="response", least=3),
        ),
    ),
    Claim(
        r"another process, which was not captured, uses group\.instance\.id \S+",
        "Another process, which was not captured, has the group.instance.id of a process that is refused.",
        (
            seen("the coordinator's refusals", *_NAMING, names=IN_GROUP, where=REFUSED, half="response", least=3),
            silent("no accepted request that names it, of the group's other connections", *_NAMING, names=IN_GROUP),
        ),
    ),
)  # fmt: skip

FROZEN_PROCESS = (
    Claim(
        r"sent nothing on any of its connections|stood still for",
        "A process sent nothing for longer than its session timeout and was put out of its group.",
        (
            seen("joins, heartbeats or commits of it", *JOINS, *BEATS, "OffsetCommit", names=IN_GROUP, least=2),
            silent("nothing on the client's connections", names=("client",)),
        ),
    ),
    Claim(
        r"It was back",
        "The process was in its group again.",
        (seen("its join or heartbeat", *JOINS, *BEATS, "OffsetCommit", names=IN_GROUP, least=2),),
    ),
)  # fmt: skip

RECORDS_GONE = (
    Claim(
        r"(is|are) gone: the log end fell",
        "Acknowledged records are no longer in a partition's log.",
        (seen("an acknowledged end of the log, and a lower one after it", *_ENDS, names=("topic",), half="response",
              least=2),),
    ),
    Claim(
        r"Written by ",
        "Who wrote what is gone.",
        (seen("the batches", "Produce", names=("topic",), half="request"),),
    ),
    Claim(
        r"Read by ",
        "Who had read what is gone.",
        (seen("fetches or commits beyond the log's new end", "Fetch", "OffsetCommit", names=("topic",)),),
    ),
)  # fmt: skip
