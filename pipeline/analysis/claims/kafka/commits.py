"""Claims about commits and about how far groups are."""

from __future__ import annotations

from pipeline.analysis.claims.model import Claim, seen, silent

ACCEPTED = "len(error_codes) = 0 AND status = 'paired'"
REFUSED = "len(error_codes) > 0"
COMMITS = ("OffsetCommit", "TxnOffsetCommit")
AT_PLACE = ("group", "topic")
_ENDS = ("Fetch", "Produce", "ListOffsets", "ShareFetch")
_GROWTH = seen("responses that state the log's end, or records that were written", *_ENDS, names=("topic",),
               half="response")  # fmt: skip
NO_COMMIT = silent("no further commit on any connection of the group's members", *COMMITS, names=("group",))

CLAIMS = (
    Claim(
        "stuck_commit",
        r"is stuck on|sets group .* back to",
        "A client commits an old offset repeatedly, over newer commits.",
        (
            seen("accepted commits of the old offset and of newer ones", *COMMITS, names=AT_PLACE, where=ACCEPTED,
                 half="response", least=3),
        ),
    ),
    Claim(
        "stuck_commit",
        r"After a restart the group would read",
        "A restart would read records again.",
        (seen("the newer commits, or the position of fetches", *COMMITS, "Fetch", names=("topic",)),),
    ),
    Claim(
        "competing_committers",
        r"by turns",
        "Clients commit one partition by turns, without a rebalance between.",
        (
            seen("accepted commits of both clients", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response",
                 least=3),
            silent("no rebalance on the connections of these clients", names=("client",)),
        ),
    ),
    Claim(
        "commit_regressed",
        r"went back|sets group .* back",
        "A group's committed offset went back.",
        (
            seen("an accepted commit, and an earlier one of a higher offset", *COMMITS, names=AT_PLACE,
                 where=ACCEPTED, half="response", least=2),
        ),
    ),
    Claim(
        "commit_rejected",
        r"refused commits|refuses the commits",
        "The coordinator refused commits, and none (or not all) were made good.",
        (
            seen("commits with the coordinator's error", *COMMITS, names=AT_PLACE, where=REFUSED, half="response"),
            silent("no accepted commit of the client afterwards", *COMMITS, names=("group",)),
        ),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"out of its commits|no longer commits",
        "A group leaves a partition out of its commits while other partitions of the topic are committed.",
        (
            seen("accepted commits of the topic's other partitions", *COMMITS, names=AT_PLACE, where=ACCEPTED,
                 half="response", least=2),
            _GROWTH,
            NO_COMMIT,
        ),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"still fetche[sd]",
        "The group fetches the partition that it does not commit.",
        (seen("fetches of the partition", "Fetch", names=("topic",), least=2),),
    ),
    Claim(
        "stopped",
        r"committed nothing|no longer commits|has stopped committing",
        "A group stopped committing while records came to wait.",
        (
            seen("accepted commits before", *COMMITS, names=("group",), where=ACCEPTED, half="response"),
            _GROWTH,
            NO_COMMIT,
        ),
    ),
    Claim(
        "stopped",
        r"still fetche[sd]",
        "The group fetches what it does not commit.",
        (seen("fetches of the topic", "Fetch", names=("topic",), least=2),),
    ),
    Claim(
        "stopped",
        r"acknowledged nothing",
        "A share group acknowledged nothing while records came to wait.",
        (
            seen("acknowledgements before", "ShareFetch", "ShareAcknowledge", names=("group",)),
            silent("no acknowledgement on any connection of the members", "ShareFetch", "ShareAcknowledge",
                   names=("group",)),
        ),
    ),
    Claim(
        "stopped",
        r"still sent heartbeats",
        "The member is alive.",
        (seen("heartbeats of the member", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat",
              names=("group",), half="request"),),
    ),
    Claim(
        "stopped",
        r"The coordinator answered it last",
        "The coordinator answered the member.",
        (seen("the answer", "Heartbeat", "ConsumerGroupHeartbeat", "JoinGroup", "SyncGroup", names=("group",),
              half="response"),),
    ),
    Claim(
        "stopped",
        r"hanging in what they got last",
        "The member has records in hand.",
        (seen("their delivery", "ShareFetch", names=("group",), half="response"),),
    ),
    Claim(
        "stalled",
        r"makes no progress",
        "A group is alive, commits one offset repeatedly and fetches nothing beyond it, while records wait.",
        (
            seen("accepted commits of that offset", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response",
                 least=2),
            _GROWTH,
            silent("no fetch beyond it on any connection of the members", *COMMITS, names=("group",)),
        ),
    ),
    Claim(
        "stalled",
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
        "stalled",
        r"It committed \d+ \d+ times? meanwhile",
        "The group commits that offset meanwhile.",
        (seen("accepted commits of that offset", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response"),),
    ),
    Claim(
        "stalled",
        r"it fetched further, but the group has not committed beyond",
        "The group fetched further at last, and has committed nothing beyond the offset.",
        (seen("a fetch beyond it", "Fetch", names=("topic",)), NO_COMMIT),
    ),
    Claim(
        "stalled",
        r"it went on",
        "The group fetched further at last.",
        (seen("a fetch beyond it", "Fetch", names=("topic",)),),
    ),
    Claim(
        "lag_growing",
        r"falls further behind|consumes less than is written",
        "A group's lag grows although it commits.",
        (
            seen("accepted commits that advance", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response",
                 least=2),
            _GROWTH,
        ),
    ),
    Claim(
        "rewound",
        r"went back on|set group .* back",
        "A group went back and processes records again.",
        (
            seen("the commit that went back, and one before it", *COMMITS, names=AT_PLACE, where=ACCEPTED,
                 half="response", least=2),
        ),
    ),
    Claim(
        "rewound",
        r"which is no member of it",
        "Who set the group back is none of its members.",
        (
            seen("a commit without a member id", "OffsetCommit", names=AT_PLACE, half="request",
                 where="json_extract_string(request_body, '$.memberId') = ''"),
        ),
    ),
    Claim(
        "rewound",
        r"not back there yet",
        "The group has not reached the old offset again.",
        (NO_COMMIT,),
    ),
    Claim(
        "offset_reset",
        r"stood at offset .* no longer exists",
        "A group's position was outside the log, and it went on elsewhere.",
        (
            seen("OFFSET_OUT_OF_RANGE in a Fetch response", "Fetch", names=("topic",), half="response",
                 where="list_contains(error_names, 'OFFSET_OUT_OF_RANGE')"),
        ),
    ),
    Claim(
        "offset_reset",
        r"had no commit",
        "A group had no committed offset.",
        (seen("the coordinator's response without an offset", "OffsetFetch", names=AT_PLACE, half="response"),),
    ),
    Claim(
        "offset_reset",
        r"deleted before the group read them|skipped that are still there|read again",
        "Records were deleted, skipped or are read again.",
        (seen("a response that states where the log begins or ends", "ListOffsets", "Fetch", names=("topic",),
              half="response"),),
    ),
    Claim(
        "offset_reset",
        r"lies beyond the end of the log",
        "A group's committed offset lies beyond the end of the log.",
        (
            seen("an accepted commit of it, or the answer to OffsetFetch that states it", "OffsetCommit", "OffsetFetch",
                 names=AT_PLACE, half="response"),
            seen("a response that states the log's end afterwards", "Fetch", "ListOffsets", names=("topic",),
                 half="response"),
        ),
    ),
    Claim(
        "offset_reset",
        r"restart (?:reads? all again|beg[ia]ns? at the end)",
        "Where the group goes on when its commit lies beyond the end.",
        (seen("a fetch from there", "Fetch", names=("topic",)),),
    ),
    Claim(
        "offset_reset",
        r"OFFSET_OUT_OF_RANGE was answered",
        "Fetches of the group were refused, since its position lies beyond the end.",
        (
            seen("the refused fetches", "Fetch", names=("topic",), half="response",
                 where="list_contains(error_names, 'OFFSET_OUT_OF_RANGE')"),
        ),
    ),
    Claim(
        "offset_reset",
        r"committed (?:it at|inside the log)",
        "Who committed beyond the end, and that the group committed inside the log since.",
        (seen("the accepted commit", "OffsetCommit", names=AT_PLACE, where=ACCEPTED, half="response"),),
    ),
    Claim(
        "offset_reset",
        r"states an older commit of group|No captured request set the group back",
        "A coordinator states an older commit than it accepted last, and no captured request set it back.",
        (
            seen("the accepted commit", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response"),
            seen("the later answer that states an older one", "OffsetFetch", names=AT_PLACE, half="response"),
            silent("no other commit on any connection of the group's members", *COMMITS, names=("group",)),
        ),
    ),
    Claim(
        "offset_reset",
        r"records? come again",
        "The group fetches again what lies between.",
        (seen("a fetch from there", "Fetch", names=("topic",)),),
    ),
    Claim(
        "offset_reset",
        r"it committed so far again",
        "The group is where it was.",
        (seen("the accepted commit", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response"),),
    ),
)  # fmt: skip
