"""What many OffsetCommit and Heartbeat exchanges state, in columns; :mod:`decoder.kafka.extractors` reads one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from decoder.columns import Ints
from decoder.kernel.leaves import Level, Rows, leaves
from pipeline.analysis.columns.nullable import Numbers, at_places, chosen, error_names, text_array
from pipeline.analysis.statements.partitions import Topics, found_in, numbers, repeated
from pipeline.analysis.statements.stated import Exchanges, Stated

_TOPIC = ("name", "topicId")
_COMMIT = Level(
    integers=("generationIdOrMemberEpoch",),
    texts=("groupId", "memberId"),
    levels=(
        Level(
            "topics",
            texts=_TOPIC,
            levels=(
                Level(
                    "partitions",
                    integers=("partitionIndex", "committedOffset", "committedLeaderEpoch"),
                    texts=("committedMetadata",),
                ),
            ),
        ),
    ),
)
_VERDICTS = Level(
    levels=(Level("topics", texts=_TOPIC, levels=(Level("partitions", integers=("partitionIndex", "errorCode")),)),)
)
_HEARTBEAT = Level(integers=("generationId",), texts=("groupId", "memberId"))
_ERROR = Level(integers=("errorCode",))
_COMMITTED, _REJECTED = range(2)
_KINDS = ("committed", "commit_rejected")
_INT32, _INT64 = pa.int32(), pa.int64()


def committed(exchanges: Exchanges) -> Stated:
    """Events and states of OffsetCommit exchanges."""
    (root, topic_rows, rows), asked_back = leaves(_COMMIT, exchanges.requests)
    (_, verdict_topics, verdict_rows), back = leaves(_VERDICTS, exchanges.responses)
    topics = Topics((topic_rows, *_TOPIC), (verdict_topics, *_TOPIC))
    asked, answered = topics.listed(0, rows, "partitionIndex"), topics.listed(1, verdict_rows, "partitionIndex")
    is_given_back = asked_back | back
    is_given_back[repeated(asked, answered)] = True

    verdicts = numbers(verdict_rows, "errorCode").at(answered.rows).at(found_in(asked, answered))
    shown = np.flatnonzero(verdicts.known)  # without a verdict a commit shows nothing
    codes, sources, where, at = verdicts.at(shown), asked.exchanges[shown], asked.topics[shown], asked.rows[shown]
    group, member = (text_array(root.text(name)) for name in ("groupId", "memberId"))
    events = {
        "topic": at_places(topics.names, where),
        "topic_id": at_places(topics.ids, where),
        "partition": Numbers.all_known(asked.partitions[shown]).arrow(_INT32),
        "kind": chosen(_KINDS, np.where(codes.values != 0, _REJECTED, _COMMITTED)),
        "ordinal": Numbers.all_known(np.zeros(len(shown), np.int64)).arrow(_INT32),
        "offset": numbers(rows, "committedOffset").natural.at(at).arrow(_INT64),
        "leader_epoch": numbers(rows, "committedLeaderEpoch").natural.at(at).arrow(_INT32),
        "group_id": at_places(group, sources),
        "member_id": at_places(member, sources),
        "generation": numbers(root, "generationIdOrMemberEpoch").natural.at(sources).arrow(_INT32),
        "error_code": codes.arrow(_INT32),
        "error_name": error_names(codes),
        "metadata": at_places(text_array(rows.text("committedMetadata")), at),
    }
    return Stated(is_given_back, {"event": (sources, events), "state": _in_the_name_of("group", root)})


def kept_alive(exchanges: Exchanges) -> Stated:
    """States of Heartbeat exchanges."""
    (root,), asked_back = leaves(_HEARTBEAT, exchanges.requests)
    (answer,), back = leaves(_ERROR, exchanges.responses)
    codes = numbers(answer, "errorCode")
    sources, columns = _in_the_name_of("heartbeat", root)
    columns |= {
        "generation": numbers(root, "generationId").arrow(_INT32),
        "group_protocol": chosen(["classic"], np.zeros(len(root), np.int64)),
        "error_code": codes.arrow(_INT32),
        "error_name": error_names(codes),
    }
    return Stated(asked_back | back, {"state": (sources, columns)})


def _in_the_name_of(kind: str, root: Rows) -> tuple[Ints, dict[str, pa.Array]]:
    """A state of each request, with its group and member."""
    nothing = np.zeros(len(root), np.int64)
    return np.arange(len(root)), {
        "kind": chosen([kind], nothing),
        "ordinal": Numbers.all_known(nothing).arrow(_INT32),
        "group_id": text_array(root.text("groupId")),
        "member_id": text_array(root.text("memberId")),
    }
