"""Claims about members of groups."""

from __future__ import annotations

from pipeline.analysis.claims.kafka.commits import ACCEPTED, IN_GROUP, JOINS, REFUSED
from pipeline.analysis.claims.model import Claim, seen, silent

_BEATS = ("Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
_FURTHER = silent("nothing further on the client's connections", names=("group",))

REBALANCE_STORM = (
    Claim(
        r"went through|keeps rebalancing",
        "A group rebalances repeatedly.",
        (seen("joins, and the generations in their responses", *JOINS, names=IN_GROUP, half="response", least=3),),
    ),
    Claim(
        r"comes? \d+ times|came \d+ times|comes to group|It did so \d+ times? before",
        "A client joins repeatedly.",
        (seen("its joins", *JOINS, names=IN_GROUP, half="request", least=2),),
    ),
    Claim(
        r"members? came or went",
        "The rebalances follow from members that came or went.",
        (seen("their joins and departures", *JOINS, "LeaveGroup", names=IN_GROUP, least=2),),
    ),
)  # fmt: skip

SLOW_REBALANCE = (
    Claim(
        r"waited .* for an assignment",
        "A group waited for an assignment.",
        (seen("a join whose response took so long", "JoinGroup", "SyncGroup", names=IN_GROUP, half="request"),),
    ),
    Claim(
        r"joined at .* only",
        "A member joined late.",
        (seen("its join", "JoinGroup", names=("group", "client"), half="request"),),
    ),
    Claim(
        r"was silent since",
        "A member was silent and had not left.",
        (
            seen("what the member did before", names=("client",)),
            silent("nothing on the member's connections", names=("client",)),
        ),
    ),
)  # fmt: skip

POLL_INTERVAL_EXCEEDED = (
    Claim(
        r"exceeded max.poll.interval.ms",
        "A member exceeded max.poll.interval.ms and was removed from its group.",
        (
            seen("a join or heartbeat that states the interval", *JOINS, names=IN_GROUP, half="request"),
            seen("its departure, or the coordinator's refusal", "LeaveGroup", *_BEATS, "OffsetCommit", "SyncGroup",
                 names=IN_GROUP),
        ),
    ),
    Claim(
        r"at work on offsets",
        "What the member was working on.",
        (seen("the fetch that delivered it", "Fetch", names=("topic",), half="response"),),
    ),
    Claim(
        r"It was back",
        "The member joined again.",
        (seen("its join", *JOINS, names=IN_GROUP, half="request", least=2),),
    ),
    Claim(r"It is not back", "The member did not join again.", (_FURTHER,)),
    Claim(
        r"commits? of it w",
        "Commits of the member were refused meanwhile.",
        (seen("these responses", "OffsetCommit", names=IN_GROUP, where=REFUSED, half="response"),),
    ),
)  # fmt: skip

ZOMBIE_MEMBER = (
    Claim(
        r"continued as a member|kept working for group",
        "A client kept working after it was removed from its group.",
        (seen("the coordinator's refusals", "OffsetCommit", "TxnOffsetCommit", *_BEATS, "SyncGroup", "JoinGroup",
              names=IN_GROUP, where=REFUSED, half="response", least=2),),
    ),
)  # fmt: skip

JOIN_REFUSED = (
    Claim(
        r"refused to let",
        "The coordinator refused to let a client into a group.",
        (seen("the coordinator's error", "FindCoordinator", *JOINS, *_BEATS, names=IN_GROUP, where=REFUSED,
              half="response"),),
    ),
    Claim(
        r"Then it was let in",
        "The client was let in afterwards.",
        (seen("an accepted join", *JOINS, "ShareGroupHeartbeat", names=IN_GROUP, where=ACCEPTED, half="response"),),
    ),
    Claim(
        r"It reads nothing of the group",
        "The client reads nothing of the group.",
        (silent("no accepted join on the client's connections", names=IN_GROUP),),
    ),
)  # fmt: skip

POISON_RECORD = (
    Claim(
        r"is stuck at offset",
        "Members read on at an offset and end before they commit.",
        (
            seen("fetches from there", "Fetch", names=("topic",), half="response", least=2),
            seen("joins of the members", *JOINS, names=IN_GROUP, least=2),
            silent("no commit beyond on any connection of the members", names=IN_GROUP),
        ),
    ),
    Claim(
        r"The record that ends them",
        "Which record it can be.",
        (seen("the batches that were fetched last", "Fetch", names=("topic",), half="response"),),
    ),
    Claim(
        r"Its other partitions get on",
        "The group's other partitions get on.",
        (seen("accepted commits of other partitions", "OffsetCommit", "TxnOffsetCommit", names=IN_GROUP,
              where=ACCEPTED, half="response"),),
    ),
    Claim(r"It is unknown since", "The group did not try again.", (_FURTHER,)),
    Claim(
        r"share group .* up to \d+ times",
        "A record was delivered repeatedly to a share group.",
        (seen("its deliveries", "ShareFetch", names=IN_GROUP, half="response", least=2),),
    ),
    Claim(
        r"released and not delivered again",
        "The record was released and not delivered again.",
        (
            seen("its release", "ShareAcknowledge", "ShareFetch", names=IN_GROUP, half="request"),
            silent("no further delivery on the members' connections", "ShareFetch", names=IN_GROUP),
        ),
    ),
)  # fmt: skip
