"""Claims about groups that read without commits, start over each time, or do not read what they hold."""

from __future__ import annotations

from pipeline.analysis.claims.kafka.commits import ACCEPTED, AT_PLACE, COMMITS, GROWTH, NO_COMMIT, REFUSED
from pipeline.analysis.claims.model import Claim, seen, silent

_ASSIGNED = seen("the assignment", "SyncGroup", "ConsumerGroupHeartbeat", names=("group",), half="response")
_WRITTEN = seen("records that were written", "Produce", names=("topic",), half="response")
_REFUSED_FETCH = seen("the refused fetch", "Fetch", names=("topic",), half="response", where=REFUSED)
_NOT_FETCHED_SINCE = (
    _ASSIGNED,
    seen("the refused commit or OffsetFetch", "OffsetCommit", "OffsetFetch", names=("group",), where=REFUSED,
         half="response"),
    _WRITTEN,
    silent("no fetch of it on any connection of the client", "Fetch", names=("client",)),
)  # fmt: skip
_HEARTBEATS = seen("heartbeats of the member", "Heartbeat", "ConsumerGroupHeartbeat", names=("group",))

PARTITION_DROPPED_FROM_COMMITS = (
    Claim(
        r"out of its commits|no longer commits",
        "A group leaves a partition out of its commits while other partitions of the topic are committed.",
        (
            seen("accepted commits of the topic's other partitions", *COMMITS, names=AT_PLACE, where=ACCEPTED,
                 half="response", least=2),
            GROWTH,
            NO_COMMIT,
        ),
    ),
    Claim(
        r"still fetche[sd]",
        "The group fetches the partition that it does not commit.",
        (seen("fetches of the partition", "Fetch", names=("topic",), least=2),),
    ),
    Claim(
        r"keeps reading .* without committing (?:it|them)",
        "A client keeps reading a partition without committing it, while it commits others.",
        (
            seen("fetches of the partition", "Fetch", names=("topic",), least=2),
            seen("accepted commits of other partitions", *COMMITS, names=("group",), where=ACCEPTED, half="response",
                 least=2),
            NO_COMMIT,
        ),
    ),
    Claim(
        r"No commit of it is known|as OffsetFetch states",
        "The group's commit of the partition as OffsetFetch states it.",
        (seen("the answer to OffsetFetch", "OffsetFetch", names=("group",), half="response"),),
    ),
    Claim(
        r"Its last commit is older than the capture",
        "No commit of the partition was captured.",
        (seen("fetches of the partition", "Fetch", names=("topic",), least=2), NO_COMMIT),
    ),
    Claim(
        r"Its last commit, at ",
        "The group's last commit of the partition.",
        (seen("that commit", *COMMITS, names=AT_PLACE, where=ACCEPTED, half="response"),),
    ),
    Claim(
        r"After a restart it would read",
        "A restart would read the records again.",
        (seen("the position of fetches", "Fetch", names=("topic",)),),
    ),
    Claim(
        r"OFFSET_OUT_OF_RANGE",
        "A partition was refused with OFFSET_OUT_OF_RANGE, and is not read since.",
        (
            _REFUSED_FETCH,
            silent("no fetch of it on any connection of the client", "Fetch", names=("topic",)),
        ),
    ),
    Claim(
        r"It asked for offset|wait there\.",
        "Where the client was, and what waits there.",
        (seen("the refused fetch", "Fetch", names=("topic",), half="request", where=REFUSED),),
    ),
    Claim(
        r"and never fetched it",
        "A member holds a partition and has never fetched it, while it fetches others.",
        (
            _ASSIGNED,
            _WRITTEN,
            silent("no fetch of it on any connection of the client", "Fetch", names=("topic",)),
        ),
    ),
    Claim(
        r"has not fetched .* since its",
        "A member has not fetched a partition since a request of it was refused, while it fetches others.",
        _NOT_FETCHED_SINCE,
    ),
    Claim(
        r"nothing of it was seen on any connection|was not seen since|the capture shows nothing of it|"
        r"works where the capture does not see it",
        "A member was given a partition, and neither a request of it nor a fetch of the partition was seen since.",
        (
            seen("what the leader gives", "SyncGroup", names=("group",)),
            _WRITTEN,
            silent("no request of the member at the coordinator, and no fetch of the partition", names=("group",)),
            silent("no fetch of the partition", "Fetch", names=("topic",)),
        ),
    ),
    Claim(
        r"although it continues reading others|has never asked for",
        "A reader that is no member does not fetch a partition, while it reads others of that broker.",
        (
            seen("fetches of the other partitions", "Fetch", names=("topic",), least=5),
            _WRITTEN,
            silent("no fetch of it on any connection of the client", "Fetch", names=("client",)),
        ),
    ),
    Claim(
        r"it last committed there at|it asked for its commit there at",
        "What shows that the client means to read the partition.",
        (seen("the commit, or the question for it", "OffsetCommit", "OffsetFetch", names=("group",)),),
    ),
    Claim(
        r"and is no member|of no known group",
        "The client is no member of a group.",
        (silent("no JoinGroup and no heartbeat on any connection of the client", names=("client",)),),
    ),
    Claim(
        r"No other captured reader",
        "No other client reads the partition.",
        (silent("no fetch of it by anybody else", "Fetch", names=("topic",)),),
    ),
    Claim(
        r"Its heartbeats continue",
        "The member is alive.",
        (_HEARTBEATS,),
    ),
)  # fmt: skip

STOPPED = (
    Claim(
        r"committed nothing|no longer commits|has stopped committing",
        "A group stopped committing while records came to wait.",
        (
            seen("accepted commits before", *COMMITS, names=("group",), where=ACCEPTED, half="response"),
            GROWTH,
            NO_COMMIT,
        ),
    ),
    Claim(
        r"still fetche[sd]",
        "The group fetches what it does not commit.",
        (seen("fetches of the topic", "Fetch", names=("topic",), least=2),),
    ),
    Claim(
        r"acknowledged nothing",
        "A share group acknowledged nothing while records came to wait.",
        (
            seen("acknowledgements before", "ShareFetch", "ShareAcknowledge", names=("group",)),
            silent("no acknowledgement on any connection of the members", "ShareFetch", "ShareAcknowledge",
                   names=("group",)),
        ),
    ),
    Claim(
        r"still sent heartbeats",
        "The member is alive.",
        (seen("heartbeats of the member", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat",
              names=("group",), half="request"),),
    ),
    Claim(
        r"The coordinator answered it last",
        "The coordinator answered the member.",
        (seen("the answer", "Heartbeat", "ConsumerGroupHeartbeat", "JoinGroup", "SyncGroup", names=("group",),
              half="response"),),
    ),
    Claim(
        r"hanging in what they got last",
        "The member has records in hand.",
        (seen("their delivery", "ShareFetch", names=("group",), half="response"),),
    ),
    Claim(
        r"has not fetched .* since its|ha(?:s|ve) (?:read nothing of .*|fetched nothing) since the",
        "A member has fetched nothing since a request of it was refused.",
        _NOT_FETCHED_SINCE,
    ),
    Claim(
        r"has fetched nothing at all",
        "A member was given partitions, and has fetched nothing at all since.",
        (
            _ASSIGNED,
            _WRITTEN,
            silent("no fetch on any connection of the client", "Fetch", names=("topic",)),
        ),
    ),
    Claim(
        r"OFFSET_OUT_OF_RANGE|It asked for offset|wait there\.",
        "A member was refused with OFFSET_OUT_OF_RANGE, and has fetched nothing since.",
        (
            _REFUSED_FETCH,
            silent("no fetch on any connection of the client", "Fetch", names=("topic",)),
        ),
    ),
    Claim(
        r"for the offsets of group",
        "A client asked for its offsets, was refused, and reads nothing since.",
        (
            seen("the refused OffsetFetch", "OffsetFetch", names=("group",), half="response", where=REFUSED),
            silent("no fetch and no further OffsetFetch of the client", names=("client",)),
        ),
    ),
    Claim(
        r"It is alive: its last request",
        "The client is alive.",
        (seen("a later request of the client", names=("client",), half="request"),),
    ),
    Claim(
        r"commits nothing: ",
        "A group reads on and commits nothing, and no commit of it is known.",
        (seen("fetches of what comes", "Fetch", names=("topic",), least=5), NO_COMMIT),
    ),
    Claim(
        r"as OffsetFetch states: a restart|OffsetFetch states no commit",
        "The group's commit as OffsetFetch states it, from which a restart would read.",
        (seen("the answer to OffsetFetch", "OffsetFetch", names=("group",), half="response"),),
    ),
    Claim(
        r"This time (?:that was|it began)",
        "Where the group began to read without a commit.",
        (seen("its first fetch", "Fetch", names=("topic",)),),
    ),
    Claim(
        r"Its heartbeats continue",
        "The client is a member of the group.",
        (_HEARTBEATS,),
    ),
    Claim(
        r"It is no member of the group",
        "The client reads without being a member.",
        (
            seen("its requests that name the group", "OffsetFetch", names=("group",)),
            silent("no heartbeat on any connection of the client", names=("client",)),
        ),
    ),
    Claim(
        r"It began before the capture, or did not ask",
        "No answer states the group's commit.",
        (
            seen("fetches of what comes", "Fetch", names=("topic",), least=5),
            silent("no OffsetFetch on any connection of the group's members", "Heartbeat", names=("group",)),
        ),
    ),
)  # fmt: skip
