"""What many Fetch exchanges state, in columns: as :mod:`decoder.kafka.extractors` reads it of one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from decoder.columns import Bools, Ints
from decoder.kafka.extractors.offsets import ISOLATION
from decoder.kernel.leaves import Level, Rows, leaves
from pipeline.analysis.columns.nullable import Numbers, at_places, chosen, error_names, together
from pipeline.analysis.statements.batch_rows import RECORD_BATCHES, BatchesOf
from pipeline.analysis.statements.partitions import Topics, flags, found_in, numbers, repeated
from pipeline.analysis.statements.stated import Exchanges, Stated

_REQUEST = Level(
    integers=("replicaId", "replicaState/replicaId", "isolationLevel", "sessionId", "sessionEpoch"),
    levels=(
        Level(
            "topics",
            texts=("topic", "topicId"),
            levels=(Level("partitions", integers=("partition", "fetchOffset", "currentLeaderEpoch")),),
        ),
        Level("forgottenTopicsData", texts=("topic", "topicId"), levels=(Level("partitions", of_integers=True),)),
    ),
)
_RESPONSE = Level(
    integers=("errorCode", "sessionId"),
    levels=(
        Level(
            "responses",
            texts=("topic", "topicId"),
            levels=(
                Level(
                    "partitions",
                    integers=("partitionIndex", "errorCode", "highWatermark", "lastStableOffset", "logStartOffset"),
                    levels=(RECORD_BATCHES,),
                ),
            ),
        ),
    ),
)
_HAS_ERROR, _HAS_ISOLATION = 7, 4
"""Versions since which a Fetch response has an error code of its own, and a request an isolation level."""
_ISOLATIONS = [ISOLATION[number] for number in range(len(ISOLATION))]
_LARGEST = 2**63 - 1
_FETCHED, _REJECTED, _FORGOTTEN = range(3)
_KINDS = ("fetched", "fetch_rejected", "fetch_forgotten")


def fetched(exchanges: Exchanges) -> Stated:
    """Events, batches and states of Fetch exchanges."""
    (asked_root, asked_topics, asked_rows, forgotten_topics, forgotten_rows), asked_back = leaves(
        _REQUEST, exchanges.requests
    )
    (root, topics_rows, rows, batch_rows), back = leaves(_RESPONSE, exchanges.responses)
    topics = Topics(
        (topics_rows, "topic", "topicId"), (asked_topics, "topic", "topicId"), (forgotten_topics, "topic", "topicId")
    )
    answered = topics.listed(0, rows, "partitionIndex")
    asked = topics.listed(1, asked_rows, "partition")
    forgotten = topics.listed(2, forgotten_rows, "")
    is_given_back = asked_back | back
    is_given_back[repeated(answered, asked, forgotten)] = True

    isolation = _isolation(asked_root, exchanges)
    code = numbers(root, "errorCode")
    code = _zero_where(exchanges.versions < _HAS_ERROR).or_else(code).where(exchanges.has_response)
    is_refused = code.known & (code.values != 0)
    batches = BatchesOf.of(answered, rows, batch_rows)
    records, end, last_data = _read(batches)

    question = found_in(answered, asked)
    unanswered = np.flatnonzero(found_in(asked, answered) < 0)
    sources = np.concatenate([answered.exchanges, asked.exchanges[unanswered], forgotten.exchanges])
    order = np.argsort(sources, kind="stable")
    own_code = numbers(rows, "errorCode").at(answered.rows)
    kinds = np.concatenate(
        [
            np.where(own_code.known & (own_code.values != 0), _REJECTED, _FETCHED),
            np.where(is_refused[asked.exchanges[unanswered]], _REJECTED, _FETCHED),
            np.full(len(forgotten.rows), _FORGOTTEN),
        ]
    )

    def of_answer(values: Numbers) -> Numbers:
        nothing = Numbers.none(len(unanswered) + len(forgotten.rows))
        return together(values, nothing).at(order)

    def of_question(name: str) -> Numbers:
        values = numbers(asked_rows, name).natural.at(asked.rows)
        return together(values.at(question), values.at(unanswered), Numbers.none(len(forgotten.rows))).at(order)

    def in_rows(name: str) -> Numbers:
        return of_answer(numbers(rows, name).natural.at(answered.rows))

    def of_last(name: str) -> Numbers:
        return of_answer(numbers(batch_rows, name).natural.at(last_data))

    session = _session(asked_root, root)
    sources = sources[order]
    indices = np.concatenate([answered.partitions, asked.partitions[unanswered], forgotten.partitions])
    where = np.concatenate([answered.topics, asked.topics[unanswered], forgotten.topics])[order]
    codes = together(own_code, code.at(asked.exchanges[unanswered]), code.at(forgotten.exchanges)).at(order)
    int32, int64 = pa.int32(), pa.int64()
    events = {
        "topic": at_places(topics.names, where),
        "topic_id": at_places(topics.ids, where),
        "partition": Numbers.all_known(indices[order]).arrow(int32),
        "kind": chosen(_KINDS, kinds[order]),
        "ordinal": Numbers.all_known(np.zeros(len(order), np.int64)).arrow(int32),
        "offset": of_question("fetchOffset").arrow(int64),
        "next_offset": of_answer(end).arrow(int64),
        "records": of_answer(records).arrow(int64),
        "high_watermark": in_rows("highWatermark").arrow(int64),
        "last_stable_offset": in_rows("lastStableOffset").arrow(int64),
        "log_start_offset": in_rows("logStartOffset").arrow(int64),
        "leader_epoch": of_question("currentLeaderEpoch").arrow(int32),
        "isolation_level": chosen(_ISOLATIONS, isolation[sources]),
        "error_code": codes.arrow(int32),
        "error_name": error_names(codes),
        "producer_id": of_last("producerId").arrow(int64),
        "producer_epoch": of_last("producerEpoch").arrow(int32),
        "session_id": session[0].at(sources).arrow(int32),
        "session_epoch": session[1].at(sources).arrow(int32),
    }
    first, last = numbers(batch_rows, "baseOffset"), numbers(batch_rows, "lastOffset")
    return Stated(
        is_given_back,
        {
            "event": (sources, events),
            "batch": batches.columns("fetch", topics, first, last),
            "state": _states(asked_root, session, code),
        },
    )


def _isolation(request: Rows, exchanges: Exchanges) -> Ints:
    """Of each exchange the place of its isolation level in _ISOLATIONS, -1 without one: followers fetch with none."""
    replica = numbers(request, "replicaId").or_else(numbers(request, "replicaState/replicaId"))
    level = _zero_where(exchanges.versions < _HAS_ISOLATION).or_else(numbers(request, "isolationLevel"))
    is_level = level.natural.known & (level.values < len(_ISOLATIONS)) & ~replica.natural.known
    return np.where(is_level, level.values, -1)


def _zero_where(condition: Bools) -> Numbers:
    return Numbers(np.zeros(len(condition), np.int64), condition)


def _read(batches: BatchesOf) -> tuple[Numbers, Numbers, Ints]:
    """By partition the records that came, where they end (exclusive), and the last batch that is no control batch."""
    last_offset = numbers(batches.rows, "lastOffset")
    is_whole = last_offset.natural.known & (batches.status_is("ok") | ~batches.has_status())
    is_data = is_whole & ~flags(batches.rows, "isControlBatch").equal(1)
    is_removed = Numbers.all_known(batches.last(batches.status_is("removed"))).at(batches.owners).natural.known
    records = batches.sums(numbers(batches.rows, "recordsCount").count, is_data | is_removed)
    last = last_offset.at(batches.last(is_whole))
    end = Numbers(last.values + 1, last.known & (last.values < _LARGEST))
    return records, end, batches.last(is_data)


def _session(request: Rows, response: Rows) -> tuple[Numbers, Numbers]:
    """Session and epoch, see :func:`decoder.kafka.extractors.offsets.session_of`."""
    asked, begun = (_not_zero(numbers(rows, "sessionId")) for rows in (request, response))
    epoch = numbers(request, "sessionEpoch")
    begins, goes_on = epoch.equal(0), epoch.known & (epoch.values > 0)
    session = begun.where(begins).or_else(asked.where(goes_on))
    return session, Numbers(epoch.values, session.known)


def _not_zero(numbers_: Numbers) -> Numbers:
    return numbers_.where(numbers_.values != 0)


def _states(request: Rows, session: tuple[Numbers, Numbers], code: Numbers) -> tuple[Ints, dict[str, pa.Array]]:
    """Sessions that end, and those that begin or continue."""
    (now, epoch), asked = session, _not_zero(numbers(request, "sessionId"))
    is_over = asked.known & numbers(request, "sessionEpoch").known & ~(now.known & (now.values == asked.values))
    over, on = np.flatnonzero(is_over), np.flatnonzero(now.known)
    sources = np.concatenate([over, on])
    order = np.argsort(sources, kind="stable")
    epochs = together(Numbers.all_known(np.full(len(over), -1)), epoch.at(on)).at(order)
    ordinals = np.concatenate([np.zeros(len(over), np.int64), is_over[on].astype(np.int64)])[order]
    codes = code.at(sources[order])
    int32 = pa.int32()
    return sources[order], {
        "kind": chosen(["fetch_session"], np.zeros(len(order), np.int64)),
        "ordinal": Numbers.all_known(ordinals).arrow(int32),
        "session_id": together(asked.at(over), now.at(on)).at(order).arrow(int32),
        "session_epoch": epochs.arrow(int32),
        "error_code": codes.arrow(int32),
        "error_name": error_names(codes),
    }
