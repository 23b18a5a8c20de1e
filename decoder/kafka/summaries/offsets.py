"""Produce, Fetch, commits and what else speaks of offsets, in words."""

from __future__ import annotations

from decoder.fields import Json, integer, integers, items, natural, struct, text
from decoder.kafka.apis import ApiKey
from decoder.kafka.extractors.offsets import offset_span
from decoder.kafka.summaries.pieces import (
    Exchange,
    Part,
    answered,
    counted,
    joined,
    listed,
    member,
    named,
    of_topic,
    parts,
    producer,
    span,
    throttled,
    verdict,
)

_ACKS = {-1: "acks all", 0: "acks 0, no answer expected"}
_TIMES = {-1: "latest", -2: "earliest", -3: "max timestamp", -4: "earliest local", -5: "latest tiered"}
_MAGIC = 2
"""Of record batches (KIP-98); message sets before them have 0 or 1."""
_INCOMPLETE = ("truncated", "partial", "malformed")
"""Statuses of answers that may say less than was sent."""


def produce(exchange: Exchange) -> str:
    """``payments-2 4 records, acks all → @0..3``."""
    asked = exchange.asked
    sent = list(parts(exchange, asked, "topicData", "partitionData", "index"))
    acks = integer(asked, "acks")
    words = [listed(sent, _sent)] if sent else []
    if transaction := text(asked, "transactionalId"):
        words.append(f"txn {transaction}")
    if acks is not None:
        words.append(_ACKS.get(acks, f"acks {acks}"))
    sizes = {part.place: _offsets_of(items(part.fields, "recordBatches")) for part in sent}
    found = list(parts(exchange, exchange.answer, "responses", "partitionResponses", "index"))

    def given(part: Part) -> str:
        code, base, size = integer(part.fields, "errorCode"), natural(part.fields, "baseOffset"), sizes.get(part.place)
        where = f"{part.place} " if len(found) > 1 else ""
        if code or base is None:
            return f"{where}{named(code)}"
        return where + span(base, base + size - 1 if size else None)

    return ", ".join(words) + answered(exchange, listed(found, given) or "ok")


def _sent(part: Part) -> str:
    batches = items(part.fields, "recordBatches")
    first = batches[0] if batches else {}
    count = [integer(batch, "recordsCount") for batch in batches]
    size = integer(part.fields, "recordsSizeInBytes")
    amount = f"{size} B" if None in count or (not batches and size) else counted(sum(n or 0 for n in count), "record")
    sequence = natural(first, "baseSequence")
    origin = joined(_old_format(batches), producer(first), "" if sequence is None else f"seq {sequence}")
    return f"{part.place} {amount}" + (f" ({origin})" if origin else "")


def _old_format(batches: list[Json]) -> str:
    """``format v1``: of batches that are in a format older than that of Kafka 0.11, the oldest; else empty."""
    magics = [magic for batch in batches if (magic := integer(batch, "magic")) is not None]
    return f"format v{min(magics)}" if min(magics, default=_MAGIC) < _MAGIC else ""


def _offsets_of(batches: list[Json]) -> int | None:
    sizes = [offset_span(batch) for batch in batches]
    return None if None in sizes or not sizes else sum(size or 0 for size in sizes)


def fetch(exchange: Exchange) -> str:
    """``payments-2 from 124, 0 records, HW 132 LSO 124``."""
    asked, answer = exchange.asked, exchange.answer or {}
    wanted = {
        part.place: integer(part.fields, "fetchOffset")
        for part in parts(exchange, asked, "topics", "partitions", "partition")
    }
    replica = natural(asked if "replicaId" in asked else struct(asked, "replicaState"), "replicaId")
    forgotten = [
        of_topic(exchange.topic(topic), integers(topic, "partitions")) for topic in items(asked, "forgottenTopicsData")
    ]
    rest = [
        f"no longer {listed(forgotten)}" if forgotten else "",
        joined("" if replica is None else f"follower {replica}", _session(asked)),
    ]
    failed = integer(answer, "errorCode")
    if exchange.answer is None or failed:
        question = listed(list(wanted.items()), lambda one: f"{one[0]} from {one[1]}")
        words = "; ".join(word for word in (question, *rest) if word)
        return words + (answered(exchange, named(failed)) if failed else "")
    found = list(parts(exchange, answer, "responses", "partitions", "partitionIndex"))
    found.sort(key=lambda part: not (integer(part.fields, "recordsSizeInBytes") or integer(part.fields, "errorCode")))
    places = {part.place for part in found}
    silent = [(place, offset) for place, offset in wanted.items() if place not in places]
    news = [listed(found, lambda part: _fetched(part, wanted.get(part.place)), "; ")] if found else []
    if silent:
        is_whole = exchange.response is None or exchange.response.status not in _INCOMPLETE
        begin = "nothing new of" if is_whole else "no complete answer for"
        news.append(f"{begin} {listed(silent, lambda one: f'{one[0]} from {one[1]}')}")
    return "; ".join(word for word in (*(news or ["nothing new"]), *rest) if word) + throttled(exchange.answer)


def _session(asked: Json) -> str:
    number, epoch = integer(asked, "sessionId"), integer(asked, "sessionEpoch")
    if epoch == 0:
        return "new session"
    if not number or epoch is None:
        return ""
    return f"session {number}" + (f" epoch {epoch}" if epoch > 0 else " ends")


def _fetched(part: Part, asked: int | None) -> str:
    fields = part.fields
    begin = part.place if asked is None else f"{part.place} from {asked}"
    if code := integer(fields, "errorCode"):
        return f"{begin}, {named(code)}"
    batches = items(fields, "recordBatches")
    data = [batch for batch in batches if not batch.get("isControlBatch")]
    counts = [integer(batch, "recordsCount") for batch in data]
    size = integer(fields, "recordsSizeInBytes") or 0
    amount = f"{size} B" if None in counts else counted(sum(n or 0 for n in counts), "record")
    if old := _old_format(data):
        amount += f" ({old})"
    markers = [text(batch, "controlType") or "control" for batch in batches if batch.get("isControlBatch")]
    if markers:
        amount += f" and {listed(markers)} marker"
    ends = [batch["lastOffset"] for batch in batches if integer(batch, "lastOffset") is not None]
    if ends:
        first = integer(batches[0], "baseOffset")
        amount += f" to @{ends[-1]}" if asked is not None or first is None else f" {span(first, ends[-1])}"
    high, stable = natural(fields, "highWatermark"), natural(fields, "lastStableOffset")
    marks = joined("" if high is None else f"HW {high}", "" if stable is None or stable == high else f"LSO {stable}")
    return f"{begin}, {amount}" + (f", {marks}" if marks else "")


def offset_commit(exchange: Exchange) -> str:
    """``billing payments-2 @24 gen 3 → ok``."""
    asked = exchange.asked
    sent = list(parts(exchange, asked, "topics", "partitions", "partitionIndex"))
    name = "generationIdOrMemberEpoch" if "generationIdOrMemberEpoch" in asked else "generationId"
    generation = natural(asked, name)
    transaction = text(asked, "transactionalId")
    words = joined(
        text(asked, "groupId") or "",
        listed(sent, lambda part: f"{part.place} @{part.fields.get('committedOffset', '?')}"),
        "" if generation is None else f"gen {generation}",
        f"txn {transaction}" if transaction else "",
    )
    return words + answered(exchange, verdict(_codes(exchange, "topics", "partitions", "partitionIndex")))


def _codes(exchange: Exchange, topics: str, partitions: str, index: str) -> list[tuple[str, int | None]]:
    found = parts(exchange, exchange.answer, topics, partitions, index)
    return [(part.place, integer(part.fields, "errorCode")) for part in found]


def offset_fetch(exchange: Exchange) -> str:
    """``billing payments-0,1 → payments-0 @6, payments-1 none``."""
    questions = _groups(exchange.asked)
    answers = _groups(exchange.answer or {})
    words = listed(questions, lambda group: joined(text(group, "groupId") or "", _asked_topics(exchange, group)))
    several = len(answers) > 1
    found = [
        (f"{group.get('groupId')} " if several else "") + _committed(part)
        for group in answers
        for part in parts(exchange, group, "topics", "partitions", "partitionIndex")
    ]
    wrong = [named(code) for group in answers if (code := integer(group, "errorCode"))]
    return words + answered(exchange, listed(wrong) if wrong else listed(found) or "nothing committed")


def _groups(body: Json) -> list[Json]:
    """KIP-709: several groups; before it the body is that of the only one."""
    return items(body, "groups") or ([body] if "groupId" in body or "topics" in body else [])


def _asked_topics(exchange: Exchange, group: Json) -> str:
    if group.get("topics", ()) is None:
        return "all"
    return listed(
        items(group, "topics"), lambda topic: of_topic(exchange.topic(topic), integers(topic, "partitionIndexes"))
    )


def _committed(part: Part) -> str:
    if code := integer(part.fields, "errorCode"):
        return f"{part.place} {named(code)}"
    offset = natural(part.fields, "committedOffset")
    return f"{part.place} none" if offset is None else f"{part.place} @{offset}"


def list_offsets(exchange: Exchange) -> str:
    """``payments-3 earliest → @0``."""
    asked = list(parts(exchange, exchange.asked, "topics", "partitions", "partitionIndex"))
    found = list(parts(exchange, exchange.answer, "topics", "partitions", "partitionIndex"))

    def wanted(part: Part) -> str:
        time = integer(part.fields, "timestamp")
        return f"{part.place} {'?' if time is None else _TIMES.get(time) or f'at {time} ms'}"

    def given(part: Part) -> str:
        where = f"{part.place} " if len(found) > 1 else ""
        old = integers(part.fields, "oldStyleOffsets")
        offset = old[0] if old else integer(part.fields, "offset")
        if code := integer(part.fields, "errorCode"):
            return where + named(code)
        return where + ("none" if offset is None or offset < 0 else f"@{offset}")

    return listed(asked, wanted) + answered(exchange, listed(found, given))


def offset_for_leader_epoch(exchange: Exchange) -> str:
    """``payments-0 epoch 3 → epoch 3 ends @99``."""
    asked = list(parts(exchange, exchange.asked, "topics", "partitions", "partition"))
    found = list(parts(exchange, exchange.answer, "topics", "partitions", "partition"))

    def given(part: Part) -> str:
        where = f"{part.place} " if len(found) > 1 else ""
        if code := integer(part.fields, "errorCode"):
            return where + named(code)
        return f"{where}epoch {part.fields.get('leaderEpoch', '?')} ends @{part.fields.get('endOffset', '?')}"

    question = listed(asked, lambda part: f"{part.place} epoch {part.fields.get('leaderEpoch', '?')}")
    return question + answered(exchange, listed(found, given))


def delete_records(exchange: Exchange) -> str:
    """``payments-0 below @12 → begins @12``."""
    asked = list(parts(exchange, exchange.asked, "topics", "partitions", "partitionIndex"))
    found = list(parts(exchange, exchange.answer, "topics", "partitions", "partitionIndex"))

    def given(part: Part) -> str:
        code = integer(part.fields, "errorCode")
        return f"{part.place} {named(code) if code else 'begins @' + str(part.fields.get('lowWatermark', '?'))}"

    question = listed(asked, lambda part: f"{part.place} below @{part.fields.get('offset', '?')}")
    return question + answered(exchange, listed(found, given))


def share_fetch(exchange: Exchange) -> str:
    """``workers orders-0 acknowledges @3..5 accept → orders-0 acquired @6..9``; ShareAcknowledge as well (KIP-932)."""
    asked = exchange.asked
    sent = list(parts(exchange, asked, "topics", "partitions", "partitionIndex"))
    found = list(parts(exchange, exchange.answer, "responses", "partitions", "partitionIndex"))
    epoch = integer(asked, "shareSessionEpoch")
    session = {0: "new share session", -1: "share session ends"}.get(epoch if epoch is not None else 1, "")
    words = joined(text(asked, "groupId") or "", member(text(asked, "memberId")), listed(sent, _acknowledged), session)
    answer = exchange.answer or {}
    if code := integer(answer, "errorCode"):
        return words + answered(exchange, named(code))
    return words.replace("  ", " ") + answered(exchange, listed([_acquired(part) for part in found]) or "ok")


_TYPES = {0: "gap", 1: "accept", 2: "release", 3: "reject", 4: "renew"}


def _acknowledged(part: Part) -> str:
    batches = items(part.fields, "acknowledgementBatches")
    ranges = listed(
        batches,
        lambda batch: (
            span(integer(batch, "firstOffset"), integer(batch, "lastOffset"))
            + " "
            + "/".join(_TYPES.get(kind, str(kind)) for kind in dict.fromkeys(integers(batch, "acknowledgeTypes")))
        ),
    )
    return f"{part.place} acknowledges {ranges}" if ranges else part.place


def _acquired(part: Part) -> str:
    fields = part.fields
    for name in ("errorCode", "acknowledgeErrorCode"):
        if code := integer(fields, name):
            return f"{part.place} {named(code)}"
    ranges = items(fields, "acquiredRecords")
    if not ranges:
        return f"{part.place} ok"
    words = listed(ranges, lambda one: span(integer(one, "firstOffset"), integer(one, "lastOffset")) + _delivery(one))
    return f"{part.place} acquired {words}"


def _delivery(acquired: Json) -> str:
    count = integer(acquired, "deliveryCount") or 1
    return f" (delivery {count})" if count > 1 else ""


DESCRIPTIONS = {
    ApiKey.PRODUCE: produce,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.OFFSET_COMMIT: offset_commit,
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.TXN_OFFSET_COMMIT: offset_commit,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
    ApiKey.DELETE_RECORDS: delete_records,
    ApiKey.SHARE_FETCH: share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: share_fetch,
}
