"""Claims about commits and about how far groups are."""

from __future__ import annotations

from pipeline.analysis.claims.model import Claim, seen, silent

ACCEPTED = "len(error_codes) = 0 AND status = 'paired'"
REFUSED = "len(error_codes) > 0"
_COMMITS = ("OffsetCommit", "TxnOffsetCommit")
_AT_PLACE = ("group", "topic")
_ENDS = ("Fetch", "Produce", "ListOffsets", "ShareFetch")
_GROWTH = seen("responses that state the log's end, or records that were written", *_ENDS, names=("topic",),
               half="response")  # fmt: skip
_NOT_FETCHED_SINCE = (
    seen("the assignment", "SyncGroup", "ConsumerGroupHeartbeat", names=("group",), half="response"),
    seen("the refused commit or OffsetFetch", "OffsetCommit", "OffsetFetch", names=("group",), where=REFUSED,
         half="response"),
    seen("records that were written", "Produce", names=("topic",), half="response"),
    silent("no fetch of it on any connection of the client", "Fetch", names=("client",)),
)  # fmt: skip
_HEARTBEATS = seen("heartbeats of the member", "Heartbeat", "ConsumerGroupHeartbeat", names=("group",))
_NO_COMMIT = silent("no further commit on any connection of the group's members", *_COMMITS, names=("group",))

CLAIMS = (
    Claim(
        "stuck_commit",
        r"is stuck on|sets group .* back to",
        "A client commits an old offset repeatedly, over newer commits.",
        (
            seen("accepted commits of the old offset and of newer ones", *_COMMITS, names=_AT_PLACE, where=ACCEPTED,
                 half="response", least=3),
        ),
    ),
    Claim(
        "stuck_commit",
        r"After a restart the group would read",
        "A restart would read records again.",
        (seen("the newer commits, or the position of fetches", *_COMMITS, "Fetch", names=("topic",)),),
    ),
    Claim(
        "competing_committers",
        r"by turns",
        "Clients commit one partition by turns, without a rebalance between.",
        (
            seen("accepted commits of both clients", *_COMMITS, names=_AT_PLACE, where=ACCEPTED, half="response",
                 least=3),
            silent("no rebalance on the connections of these clients", names=("client",)),
        ),
    ),
    Claim(
        "commit_regressed",
        r"went back|sets group .* back",
        "A group's committed offset went back.",
        (
            seen("an accepted commit, and an earlier one of a higher offset", *_COMMITS, names=_AT_PLACE,
                 where=ACCEPTED, half="response", least=2),
        ),
    ),
    Claim(
        "commit_rejected",
        r"refused commits|refuses the commits",
        "The coordinator refused commits, and none (or not all) were made good.",
        (
            seen("commits with the coordinator's error", *_COMMITS, names=_AT_PLACE, where=REFUSED, half="response"),
            silent("no accepted commit of the client afterwards", *_COMMITS, names=("group",)),
        ),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"out of its commits|no longer commits",
        "A group leaves a partition out of its commits while other partitions of the topic are committed.",
        (
            seen("accepted commits of the topic's other partitions", *_COMMITS, names=_AT_PLACE, where=ACCEPTED,
                 half="response", least=2),
            _GROWTH,
            _NO_COMMIT,
        ),
    ),
    Claim(
        "stopped",
        r"committed nothing|no longer commits|has stopped committing",
        "A group stopped committing while records came to wait.",
        (
            seen("accepted commits before", *_COMMITS, names=("group",), where=ACCEPTED, half="response"),
            _GROWTH,
            _NO_COMMIT,
        ),
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
        r"hanging in what they got last",
        "The member has records in hand.",
        (seen("their delivery", "ShareFetch", names=("group",), half="response"),),
    ),
    Claim(
        "stalled",
        r"stands still",
        "A group is alive, commits one offset repeatedly and fetches nothing beyond it, while records wait.",
        (
            seen("accepted commits of that offset", *_COMMITS, names=_AT_PLACE, where=ACCEPTED, half="response",
                 least=2),
            _GROWTH,
            silent("no fetch beyond it on any connection of the members", *_COMMITS, names=("group",)),
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
        (seen("accepted commits of that offset", *_COMMITS, names=_AT_PLACE, where=ACCEPTED, half="response"),),
    ),
    Claim(
        "stalled",
        r"it fetched further, but the group has not committed beyond",
        "The group fetched further at last, and has committed nothing beyond the offset.",
        (seen("a fetch beyond it", "Fetch", names=("topic",)), _NO_COMMIT),
    ),
    Claim(
        "stalled",
        r"it went on",
        "The group fetched further at last.",
        (seen("a fetch beyond it", "Fetch", names=("topic",)),),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"and commits nothing of it",
        "A client reads a partition on and commits nothing of it, while it commits others.",
        (
            seen("fetches of the partition", "Fetch", names=("topic",), least=2),
            seen("accepted commits of other partitions", *_COMMITS, names=("group",), where=ACCEPTED, half="response",
                 least=2),
            _NO_COMMIT,
        ),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"No commit of it is known|as OffsetFetch states",
        "The group's commit of the partition as OffsetFetch states it.",
        (seen("the answer to OffsetFetch", "OffsetFetch", names=("group",), half="response"),),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"Its last commit is older than the capture",
        "No commit of the partition was captured.",
        (seen("fetches of the partition", "Fetch", names=("topic",), least=2), _NO_COMMIT),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"Its last commit, at ",
        "The group's last commit of the partition.",
        (seen("that commit", *_COMMITS, names=_AT_PLACE, where=ACCEPTED, half="response"),),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"After a restart it would read",
        "A restart would read the records again.",
        (seen("the position of fetches", "Fetch", names=("topic",)),),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"OFFSET_OUT_OF_RANGE",
        "A partition was refused with OFFSET_OUT_OF_RANGE, and is not read since.",
        (
            seen("the refused fetch", "Fetch", names=("topic",), half="response", where=REFUSED),
            silent("no fetch of it on any connection of the client", "Fetch", names=("topic",)),
        ),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"It asked for offset|wait there\.",
        "Where the client stood, and what waits there.",
        (seen("the refused fetch", "Fetch", names=("topic",), half="request", where=REFUSED),),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"has never fetched it",
        "A member holds a partition and has never fetched it, while it fetches others.",
        (
            seen("the assignment", "SyncGroup", "ConsumerGroupHeartbeat", names=("group",), half="response"),
            seen("records that were written", "Produce", names=("topic",), half="response"),
            silent("no fetch of it on any connection of the client", "Fetch", names=("topic",)),
        ),
    ),
    Claim(
        "partition_dropped_from_commits",
        r"has not fetched .* since its",
        "A member has not fetched a partition since a request of it was refused, while it fetches others.",
        _NOT_FETCHED_SINCE,
    ),
    Claim(
        "partition_dropped_from_commits",
        r"Its heartbeats go on",
        "The member is alive.",
        (_HEARTBEATS,),
    ),
    Claim(
        "stopped",
        r"has not fetched .* since its|(?:reads nothing of .*|fetch(?:es)? nothing) any more since the",
        "A member has fetched nothing since a request of it was refused.",
        _NOT_FETCHED_SINCE,
    ),
    Claim(
        "stopped",
        r"for the offsets of group",
        "A client asked for its offsets, was refused, and reads nothing since.",
        (
            seen("the refused OffsetFetch", "OffsetFetch", names=("group",), half="response", where=REFUSED),
            silent("no fetch and no further OffsetFetch of the client", names=("client",)),
        ),
    ),
    Claim(
        "stopped",
        r"It is alive: its last request",
        "The client is alive.",
        (seen("a later request of the client", names=("client",), half="request"),),
    ),
    Claim(
        "stopped",
        r"commits nothing: ",
        "A group reads on and commits nothing, and no commit of it is known.",
        (seen("fetches of what comes", "Fetch", names=("topic",), least=5), _NO_COMMIT),
    ),
    Claim(
        "stopped",
        r"as OffsetFetch states: a restart|OffsetFetch states no commit",
        "The group's commit as OffsetFetch states it, from which a restart would read.",
        (seen("the answer to OffsetFetch", "OffsetFetch", names=("group",), half="response"),),
    ),
    Claim(
        "stopped",
        r"This time (?:that was|it began)",
        "Where the group began to read without a commit.",
        (seen("its first fetch", "Fetch", names=("topic",)),),
    ),
    Claim(
        "stopped",
        r"Its heartbeats go on",
        "The client is a member of the group.",
        (_HEARTBEATS,),
    ),
    Claim(
        "stopped",
        r"It is no member of the group",
        "The client reads without being a member.",
        (
            seen("its requests that name the group", "OffsetFetch", names=("group",)),
            silent("no heartbeat on any connection of the client", names=("client",)),
        ),
    ),
    Claim(
        "stopped",
        r"It began before the capture, or did not ask",
        "No answer states the group's commit.",
        (
            seen("fetches of what comes", "Fetch", names=("topic",), least=5),
            silent("no OffsetFetch on any connection of the group's members", "Heartbeat", names=("group",)),
        ),
    ),
    Claim(
        "rewound",
        r"has never committed",
        "A group finds no commit at any of its starts, and reads again what it had read.",
        (
            seen("answers to OffsetFetch without an offset", "OffsetFetch", names=("group",), half="response", least=3),
            seen("fetches of what was read before", "Fetch", names=("topic",), least=2),
            _NO_COMMIT,
        ),
    ),
    Claim(
        "rewound",
        r"In all .* read again",
        "How many records were read again.",
        (seen("fetches of what was read before", "Fetch", names=("topic",)),),
    ),
    Claim(
        "lag_growing",
        r"falls further behind|takes less than is written",
        "A group's lag grows although it commits.",
        (
            seen("accepted commits that advance", *_COMMITS, names=_AT_PLACE, where=ACCEPTED, half="response",
                 least=2),
            _GROWTH,
        ),
    ),
    Claim(
        "rewound",
        r"went back on|set group .* back",
        "A group went back and processes records again.",
        (
            seen("the commit that went back, and one before it", *_COMMITS, names=_AT_PLACE, where=ACCEPTED,
                 half="response", least=2),
        ),
    ),
    Claim(
        "rewound",
        r"which is no member of it",
        "Who set the group back is none of its members.",
        (
            seen("a commit without a member id", "OffsetCommit", names=_AT_PLACE, half="request",
                 where="json_extract_string(request_body, '$.memberId') = ''"),
        ),
    ),
    Claim(
        "rewound",
        r"not back there yet",
        "The group has not reached the old offset again.",
        (_NO_COMMIT,),
    ),
    Claim(
        "offset_reset",
        r"stood at offset .* not there any more",
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
        (seen("the coordinator's response without an offset", "OffsetFetch", names=_AT_PLACE, half="response"),),
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
                 names=_AT_PLACE, half="response"),
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
        (seen("the accepted commit", "OffsetCommit", names=_AT_PLACE, where=ACCEPTED, half="response"),),
    ),
)  # fmt: skip
