"""Claims about members of groups."""

from __future__ import annotations

from pipeline.analysis.claims.kafka.commits import ACCEPTED, REFUSED
from pipeline.analysis.claims.model import Claim, seen, silent

_JOINS = ("JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat")
_BEATS = ("Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
_IN_GROUP = ("group",)
_FURTHER = silent("nothing further on the client's connections", names=("group",))

CLAIMS = (
    Claim(
        "rebalance_storm",
        r"went through|keeps rebalancing",
        "A group rebalances repeatedly.",
        (seen("joins, and the generations in their responses", *_JOINS, names=_IN_GROUP, half="response", least=3),),
    ),
    Claim(
        "rebalance_storm",
        r"comes? \d+ times|came \d+ times|comes to group|It did so \d+ times? before",
        "A client joins repeatedly.",
        (seen("its joins", *_JOINS, names=_IN_GROUP, half="request", least=2),),
    ),
    Claim(
        "rebalance_storm",
        r"members? came or went",
        "The rebalances follow from members that came or went.",
        (seen("their joins and departures", *_JOINS, "LeaveGroup", names=_IN_GROUP, least=2),),
    ),
    Claim(
        "slow_rebalance",
        r"waited .* for an assignment",
        "A group waited for an assignment.",
        (seen("a join whose response took so long", "JoinGroup", "SyncGroup", names=_IN_GROUP, half="request"),),
    ),
    Claim(
        "slow_rebalance",
        r"joined at .* only",
        "A member joined late.",
        (seen("its join", "JoinGroup", names=("group", "client"), half="request"),),
    ),
    Claim(
        "slow_rebalance",
        r"was silent since",
        "A member was silent and had not left.",
        (
            seen("what the member did before", names=("client",)),
            silent("nothing on the member's connections", names=("client",)),
        ),
    ),
    Claim(
        "poll_interval_exceeded",
        r"exceeded max.poll.interval.ms",
        "A member exceeded max.poll.interval.ms and was removed from its group.",
        (
            seen("a join or heartbeat that states the interval", *_JOINS, names=_IN_GROUP, half="request"),
            seen("its departure, or the coordinator's refusal", "LeaveGroup", *_BEATS, "OffsetCommit", "SyncGroup",
                 names=_IN_GROUP),
        ),
    ),
    Claim(
        "poll_interval_exceeded",
        r"at work on offsets",
        "What the member was working on.",
        (seen("the fetch that delivered it", "Fetch", names=("topic",), half="response"),),
    ),
    Claim(
        "poll_interval_exceeded",
        r"It was back",
        "The member joined again.",
        (seen("its join", *_JOINS, names=_IN_GROUP, half="request", least=2),),
    ),
    Claim("poll_interval_exceeded", r"It is not back", "The member did not join again.", (_FURTHER,)),
    Claim(
        "poll_interval_exceeded",
        r"commits? of it w",
        "Commits of the member were refused meanwhile.",
        (seen("these responses", "OffsetCommit", names=_IN_GROUP, where=REFUSED, half="response"),),
    ),
    Claim(
        "zombie_member",
        r"went on as a member|kept working for group",
        "A client kept working after it was removed from its group.",
        (seen("the coordinator's refusals", "OffsetCommit", "TxnOffsetCommit", *_BEATS, "SyncGroup", "JoinGroup",
              names=_IN_GROUP, where=REFUSED, half="response", least=2),),
    ),
    Claim(
        "join_refused",
        r"refused to let",
        "The coordinator refused to let a client into a group.",
        (seen("the coordinator's error", "FindCoordinator", *_JOINS, *_BEATS, names=_IN_GROUP, where=REFUSED,
              half="response"),),
    ),
    Claim(
        "join_refused",
        r"Then it was let in",
        "The client was let in afterwards.",
        (seen("an accepted join", *_JOINS, "ShareGroupHeartbeat", names=_IN_GROUP, where=ACCEPTED, half="response"),),
    ),
    Claim(
        "join_refused",
        r"It reads nothing of the group",
        "The client reads nothing of the group.",
        (silent("no accepted join on the client's connections", names=_IN_GROUP),),
    ),
    Claim(
        "poison_record",
        r"is stuck at offset",
        "Members read on at an offset and end before they commit.",
        (
            seen("fetches from there", "Fetch", names=("topic",), half="response", least=2),
            seen("joins of the members", *_JOINS, names=_IN_GROUP, least=2),
            silent("no commit beyond on any connection of the members", names=_IN_GROUP),
        ),
    ),
    Claim(
        "poison_record",
        r"The record that ends them",
        "Which record it can be.",
        (seen("the batches that were fetched last", "Fetch", names=("topic",), half="response"),),
    ),
    Claim(
        "poison_record",
        r"Its other partitions get on",
        "The group's other partitions get on.",
        (seen("accepted commits of other partitions", "OffsetCommit", "TxnOffsetCommit", names=_IN_GROUP,
              where=ACCEPTED, half="response"),),
    ),
    Claim("poison_record", r"It is unknown since", "The group did not try again.", (_FURTHER,)),
    Claim(
        "poison_record",
        r"share group .* up to \d+ times",
        "A record was delivered repeatedly to a share group.",
        (seen("its deliveries", "ShareFetch", names=_IN_GROUP, half="response", least=2),),
    ),
    Claim(
        "poison_record",
        r"released and not delivered again",
        "The record was released and not delivered again.",
        (
            seen("its release", "ShareAcknowledge", "ShareFetch", names=_IN_GROUP, half="request"),
            silent("no further delivery on the members' connections", "ShareFetch", names=_IN_GROUP),
        ),
    ),
)  # fmt: skip
