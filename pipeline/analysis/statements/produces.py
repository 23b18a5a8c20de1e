"""What many Produce exchanges state, in columns: as :mod:`decoder.kafka.extractors` reads it of one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from decoder.columns import Bools, Ints
from decoder.kernel.leaves import Level, leaves
from pipeline.analysis.columns.nullable import Numbers, at_places, chosen, error_names, text_array
from pipeline.analysis.statements.batch_rows import RECORD_BATCHES, BatchesOf
from pipeline.analysis.statements.partitions import Topics, found_in, numbers, repeated
from pipeline.analysis.statements.stated import Exchanges, Stated

_REQUEST = Level(
    texts=("transactionalId",),
    levels=(
        Level(
            "topicData",
            texts=("name", "topicId"),
            levels=(Level("partitionData", integers=("index",), levels=(RECORD_BATCHES,)),),
        ),
    ),
)
_RESPONSE = Level(
    levels=(
        Level(
            "responses",
            texts=("name", "topicId"),
            levels=(Level("partitionResponses", integers=("index", "errorCode", "baseOffset", "logStartOffset")),),
        ),
    ),
)
_PRODUCED, _REJECTED = range(2)
_KINDS = ("produced", "produce_rejected")
_MOST_OFFSETS = 2**40
"""That a batch takes: what states more is read one by one, so that no sum is too large here."""


def produced(exchanges: Exchanges) -> Stated:
    """Events and batches of Produce exchanges."""
    (root, topic_rows, rows, batch_rows), asked_back = leaves(_REQUEST, exchanges.requests)
    (_, answer_topics, answer_rows), back = leaves(_RESPONSE, exchanges.responses)
    topics = Topics((topic_rows, "name", "topicId"), (answer_topics, "name", "topicId"))
    asked = topics.listed(0, rows, "index")
    answered = topics.listed(1, answer_rows, "index")
    is_given_back = asked_back | back
    is_given_back[repeated(asked, answered)] = True

    answer = Numbers.all_known(answered.rows).at(found_in(asked, answered))
    answers = np.where(answer.known, answer.values, -1)
    code = numbers(answer_rows, "errorCode").at(answers)
    base = numbers(answer_rows, "baseOffset").natural.at(answers)
    offset = base.where(code.equal(0))
    batches = BatchesOf.of(asked, rows, batch_rows)
    spans = batches.spans
    is_large = spans.known & (spans.values > _MOST_OFFSETS) & (batches.owners >= 0)
    is_given_back[asked.exchanges[batches.owners[is_large]]] = True
    is_one = batches.owners >= 0
    span = batches.sums(spans, is_one)
    last = batches.last(is_one)
    int32, int64 = pa.int32(), pa.int64()
    events = {
        "topic": at_places(topics.names, asked.topics),
        "topic_id": at_places(topics.ids, asked.topics),
        "partition": Numbers.all_known(asked.partitions).arrow(int32),
        "kind": chosen(_KINDS, np.where(code.known & (code.values != 0), _REJECTED, _PRODUCED)),
        "ordinal": Numbers.all_known(np.zeros(len(asked.rows), np.int64)).arrow(int32),
        "offset": offset.arrow(int64),
        "next_offset": offset.plus(span).arrow(int64),
        "records": batches.sums(numbers(batch_rows, "recordsCount").count, is_one).arrow(int64),
        "log_start_offset": numbers(answer_rows, "logStartOffset").natural.at(answers).arrow(int64),
        "error_code": code.arrow(int32),
        "error_name": error_names(code),
        "producer_id": numbers(batch_rows, "producerId").natural.at(last).arrow(int64),
        "producer_epoch": numbers(batch_rows, "producerEpoch").natural.at(last).arrow(int32),
        "transactional_id": at_places(text_array(root.text("transactionalId")), asked.exchanges),
    }
    first, end = _offsets(batches, base, spans)
    return Stated(
        is_given_back,
        {
            "event": (asked.exchanges, events),
            "batch": batches.columns("produce", topics, first, Numbers(end.values - 1, end.known)),
        },
    )


def _offsets(batches: BatchesOf, base: Numbers, spans: Numbers) -> tuple[Numbers, Numbers]:
    """Where each batch begins and ends (exclusive): the broker numbers the records of one request in a row."""
    rows = np.flatnonzero(batches.owners >= 0)
    if not len(rows):
        return Numbers.none(len(batches.owners)), Numbers.none(len(batches.owners))
    counted: Bools = (batches.owners >= 0) & ~batches.status_is("removed")
    starts: Ints = np.zeros(len(batches.listed.rows), np.int64)
    starts[batches.owners[rows[::-1]]] = rows[::-1]  # of each partition its first batch

    def before(values: Ints) -> Ints:
        """By batch the sum over those of its partition that come before it."""
        earlier = np.cumsum(values) - values
        since_start: Ints = earlier - earlier[starts][batches.owners]
        return since_start

    shift = before(np.where(counted & spans.known, spans.values, 0))
    is_lost = before((counted & ~spans.known).astype(np.int64)) > 0
    begin = base.at(batches.owners).plus(Numbers(shift, ~is_lost))
    return begin, begin.plus(spans)
