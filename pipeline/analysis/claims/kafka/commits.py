"""Claims about commits and about how far groups are."""

from __future__ import annotations

from pipeline.analysis.claims.model import Claim, seen, silent

ACCEPTED = "len(error_codes) = 0 AND status = 'paired'"
REFUSED = "len(error_codes) > 0"
COMMITS = ("OffsetCommit", "TxnOffsetCommit")
AT_PLACE = ("group", "topic")
IN_GROUP = ("group",)
JOINS = ("JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat")
BEATS = ("Heartbeat", "ConsumerGroupHeartbeat")
_ENDS = ("Fetch", "Produce", "ListOffsets", "ShareFetch")
GROWTH = seen("responses that state the log's end, or records that were written", *_ENDS, names=("topic",),
               half="response")  # fmt: skip
NO_COMMIT = silent("no further commit on any connection of the group's members", *COMMITS, names=("group",))

STUCK_COMMIT = (
    Claim(
        r"is stuck on|sets group .* back to",
        "A client commits an old offset repeatedly, over newer commits.",
        (
            seen("accepted commits of the old offset and of newer ones", *COMMITS, names=AT_PLACE, where=ACCEPTED,
                 half="response", least=3),
        ),
    ),
    Claim(
        r"After a restart the group would read",
        "A restart would read records again.",
        (seen("the newer commits, or the position of fetches", *COMMITS, "Fetch", names=("topic",)),),
    ),
)  # fmt: skip

COMPETING_COMMITTERS = (
    Claim(
        r"by turns",
        "Clients commit one partition by turns, without a rebalance between.",
        (
            seen("accepted commits of both clients", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response",
                 least=3),
            silent("no rebalance on the connections of these clients", names=("client",)),
        ),
    ),
)  # fmt: skip

COMMIT_REGRESSED = (
    Claim(
        r"went back|sets group .* back",
        "A group's committed offset went back.",
        (
            seen("an accepted commit, and an earlier one of a higher offset", *COMMITS, names=AT_PLACE,
                 where=ACCEPTED, half="response", least=2),
        ),
    ),
)  # fmt: skip

COMMIT_REJECTED = (
    Claim(
        r"refused commits|refuses the commits",
        "The coordinator refused commits, and none (or not all) were made good.",
        (
            seen("commits with the coordinator's error", *COMMITS, names=AT_PLACE, where=REFUSED, half="response"),
            silent("no accepted commit of the client afterwards", *COMMITS, names=("group",)),
        ),
    ),
    Claim(
        r"without being a member",
        "A client commits for a group without being a member of it.",
        (seen("its commits with the coordinator's error", "OffsetCommit", names=IN_GROUP, where=REFUSED,
              half="response", least=2),),
    ),
    Claim(
        r"at \S+ joined by subscribe\(\)",
        "Others are members of the group.",
        (seen("their joins or heartbeats", *JOINS, *BEATS, names=IN_GROUP),),
    ),
)  # fmt: skip

STALLED = (
    Claim(
        r"makes no progress",
        "A group is alive, commits one offset repeatedly and fetches nothing beyond it, while records wait.",
        (
            seen("accepted commits of that offset", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response",
                 least=2),
            GROWTH,
            silent("no fetch beyond it on any connection of the members", *COMMITS, names=("group",)),
        ),
    ),
    Claim(
        r"(?:does|did) not move on",
        "A group fetches from one offset repeatedly, although the log goes further.",
        (
            seen("fetches from that offset", "Fetch", names=("topic",), least=2),
            seen("answers that state the log's end, or records that were written", *_ENDS, names=("topic",),
                 half="response"),
            silent("no fetch beyond it on any connection of the members", "Fetch", names=("topic",)),
        ),
    ),
    Claim(
        r"It committed \d+ \d+ times? meanwhile",
        "The group commits that offset meanwhile.",
        (seen("accepted commits of that offset", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response"),),
    ),
    Claim(
        r"it fetched further, but the group has not committed beyond",
        "The group fetched further at last, and has committed nothing beyond the offset.",
        (seen("a fetch beyond it", "Fetch", names=("topic",)), NO_COMMIT),
    ),
    Claim(
        r"it continued",
        "The group fetched further at last.",
        (seen("a fetch beyond it", "Fetch", names=("topic",)),),
    ),
    Claim(
        r"of no known group",
        "The client is no member of a group that is known.",
        (silent("no request of the client names a group", names=("client",)),),
    ),
)  # fmt: skip

LAG_GROWING = (
    Claim(
        r"falls further behind|consumes less than is written",
        "A group's lag grows although it commits.",
        (
            seen("accepted commits that advance", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response",
                 least=2),
            GROWTH,
        ),
    ),
)  # fmt: skip

REWOUND = (
    Claim(
        r"went back on|set group .* back",
        "A group went back and processes records again.",
        (
            seen("the commit that went back, and one before it", *COMMITS, names=AT_PLACE, where=ACCEPTED,
                 half="response", least=2),
        ),
    ),
    Claim(
        r"which is no member of it",
        "Who set the group back is none of its members.",
        (
            seen("a commit without a member id", "OffsetCommit", names=AT_PLACE, half="request",
                 where="json_extract_string(request_body, '$.memberId') = ''"),
        ),
    ),
    Claim(
        r"not back there yet",
        "The group has not reached the old offset again.",
        (NO_COMMIT,),
    ),
    Claim(
        r"has never committed",
        "A group finds no commit at any of its starts, and reads again what it had read.",
        (
            seen("answers to OffsetFetch without an offset", "OffsetFetch", names=("group",), half="response", least=3),
            seen("fetches of what was read before", "Fetch", names=("topic",), least=2),
            NO_COMMIT,
        ),
    ),
    Claim(
        r"In all .* read again",
        "How many records were read again.",
        (seen("fetches of what was read before", "Fetch", names=("topic",)),),
    ),
)  # fmt: skip

OFFSET_RESET = (
    Claim(
        r"was at offset .* no longer exists",
        "A group's position was outside the log, and it continued elsewhere.",
        (
            seen("OFFSET_OUT_OF_RANGE in a Fetch response", "Fetch", names=("topic",), half="response",
                 where="list_contains(error_names, 'OFFSET_OUT_OF_RANGE')"),
        ),
    ),
    Claim(
        r"had no commit",
        "A group had no committed offset.",
        (seen("the coordinator's response without an offset", "OffsetFetch", names=AT_PLACE, half="response"),),
    ),
    Claim(
        r"deleted before the group read them|skipped that are still there|read again",
        "Records were deleted, skipped or are read again.",
        (seen("a response that states where the log begins or ends", "ListOffsets", "Fetch", names=("topic",),
              half="response"),),
    ),
    Claim(
        r"(?:is|was) beyond the end of the log",
        "A group's committed offset is beyond the end of the log.",
        (
            seen("an accepted commit of it, or the answer to OffsetFetch that states it", "OffsetCommit", "OffsetFetch",
                 names=AT_PLACE, half="response"),
            seen("a response that states the log's end afterwards", "Fetch", "ListOffsets", names=("topic",),
                 half="response"),
        ),
    ),
    Claim(
        r"restart (?:reads? all again|beg[ia]ns? at the end)",
        "Where the group continues when its commit is beyond the end.",
        (seen("a fetch from there", "Fetch", names=("topic",)),),
    ),
    Claim(
        r"OFFSET_OUT_OF_RANGE was answered",
        "Fetches of the group were refused, since its position is beyond the end.",
        (
            seen("the refused fetches", "Fetch", names=("topic",), half="response",
                 where="list_contains(error_names, 'OFFSET_OUT_OF_RANGE')"),
        ),
    ),
    Claim(
        r"committed (?:it at|inside the log)",
        "Who committed beyond the end, and that the group committed inside the log since.",
        (seen("the accepted commit", "OffsetCommit", names=AT_PLACE, where=ACCEPTED, half="response"),),
    ),
    Claim(
        r"states an older commit of group|No captured request set the group back",
        "A coordinator states an older commit than it accepted last, and no captured request set it back.",
        (
            seen("the accepted commit", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response"),
            seen("the later answer that states an older one", "OffsetFetch", names=AT_PLACE, half="response"),
            silent("no other commit on any connection of the group's members", *COMMITS, names=("group",)),
        ),
    ),
    Claim(
        r"records? come again",
        "The group fetches again what is between.",
        (seen("a fetch from there", "Fetch", names=("topic",)),),
    ),
    Claim(
        r"it committed so far again",
        "The group is where it was.",
        (seen("the accepted commit", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response"),),
    ),
)  # fmt: skip
