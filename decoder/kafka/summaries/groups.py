"""Groups and transactions, in words."""

from __future__ import annotations

from collections.abc import Iterator

from decoder.fields import Json, flag, integer, integers, items, struct, text, texts
from decoder.kafka.apis import ApiKey
from decoder.kafka.codec.embedded import ASSIGNMENT, SUBSCRIPTION
from decoder.kafka.summaries.pieces import (
    Exchange,
    answered,
    counted,
    joined,
    listed,
    member,
    named,
    of_topic,
    producer,
    verdict,
)
from decoder.model import Message


def join_group(exchange: Exchange) -> str:
    """``billing new member, payments (range) → gen 1, leads 2 members``."""
    asked, answer = exchange.asked, exchange.answer or {}
    protocols = [str(one.get("name")) for one in items(asked, "protocols")]
    topics = [topic for body in _embedded(exchange.request, SUBSCRIPTION) for topic in texts(body, "topics")]
    words = joined(
        text(asked, "groupId") or "",
        (member(text(asked, "memberId")).strip() or "new member") if asked else "",
        f"static {asked['groupInstanceId']}" if text(asked, "groupInstanceId") else "",
        f"wants {listed(list(dict.fromkeys(topics)))}" if topics else "",
        f"({listed(protocols)})" if protocols else "",
    )
    if code := integer(answer, "errorCode"):
        given = member(text(answer, "memberId")) if text(answer, "memberId") != text(asked, "memberId") else ""
        return words + answered(exchange, named(code) + (f", is{given}" if given else ""))
    own, leader = text(answer, "memberId"), text(answer, "leader")
    role = f"leads {counted(len(items(answer, 'members')), 'member')}" if own == leader else f"led by {leader}"
    new = member(own) if own != text(asked, "memberId") else ""
    result = f"gen {answer.get('generationId', '?')}{new}, {role}, {answer.get('protocolName') or 'no protocol'}"
    return words + answered(exchange, result)


def _embedded(message: Message | None, name: str) -> Iterator[Json]:
    return (struct(one, "body") for one in (message.embedded if message else ()) if one.get("name") == name)


def sync_group(exchange: Exchange) -> str:
    """``billing gen 1 → owns payments-0,1``; the leader's request says who gets how much."""
    asked, answer = exchange.asked, exchange.answer or {}
    assigned = [_owned(body) or "nothing" for body in _embedded(exchange.request, ASSIGNMENT)]
    given = [str(text(one, "memberId")) for one in items(asked, "assignments")]
    words = joined(text(asked, "groupId") or "", f"gen {asked['generationId']}" if "generationId" in asked else "")
    if given:
        pairs = list(zip(given, assigned, strict=False)) if len(given) == len(assigned) else []
        words += " assigns " + (
            listed(pairs, lambda one: f"{one[1]} to {one[0]}", "; ") or counted(len(given), "member")
        )
    if code := integer(answer, "errorCode"):
        return words + answered(exchange, named(code))
    owned = [_owned(body) for body in _embedded(exchange.response, ASSIGNMENT)]
    result = (
        f"owns {owned[0]}" if owned and owned[0] else "owns nothing" if owned or not answer.get("assignment") else "ok"
    )
    return words + answered(exchange, result)


def _owned(body: Json) -> str:
    topics = items(body, "assignedPartitions")
    return listed(topics, lambda topic: of_topic(text(topic, "topic") or "?", integers(topic, "partitions")))


def heartbeat(exchange: Exchange) -> str:
    """``billing gen 3 → ok``."""
    asked = exchange.asked
    words = joined(
        text(asked, "groupId") or "",
        f"gen {asked['generationId']}" if "generationId" in asked else "",
        member(text(asked, "memberId")).strip(),
    )
    return words + answered(exchange, named(integer(exchange.answer or {}, "errorCode")))


def leave_group(exchange: Exchange) -> str:
    """``billing member billing-1-… → ok``."""
    asked, answer = exchange.asked, exchange.answer or {}
    several = items(asked, "members")
    who = [str(text(one, "groupInstanceId") or text(one, "memberId")) for one in several] or [
        text(asked, "memberId") or ""
    ]
    reasons = list(dict.fromkeys(str(one["reason"]) for one in several if one.get("reason")))
    words = joined(text(asked, "groupId") or "", "member", listed(who), f"({listed(reasons)})" if reasons else "")
    codes = [(str(text(one, "memberId")), integer(one, "errorCode")) for one in items(answer, "members")]
    return words + answered(
        exchange, named(integer(answer, "errorCode")) if integer(answer, "errorCode") else verdict(codes)
    )


_JOINS_LEAVES = {0: "joins", -1: "leaves", -2: "leaves for a while"}


def member_heartbeat(exchange: Exchange) -> str:
    """Of KIP-848 and its likes: ``counters member X epoch 0 joins, wants stock → epoch 2, owns stock-0,1``."""
    asked, answer = exchange.asked, exchange.answer or {}
    epoch = integer(asked, "memberEpoch")
    topics = texts(asked, "subscribedTopicNames")
    words = joined(
        text(asked, "groupId") or "",
        member(text(asked, "memberId")).strip(),
        "" if epoch is None else _JOINS_LEAVES.get(epoch, f"epoch {epoch}"),
        f"wants {listed(topics)}" if topics else "",
        f"wants {asked['subscribedTopicRegex']}" if text(asked, "subscribedTopicRegex") else "",
        f"has {_partitions(exchange, asked) or 'nothing'}" if asked.get("topicPartitions") is not None else "",
    )
    if code := integer(answer, "errorCode"):
        return words + answered(exchange, named(code))
    assignment = struct(answer, "assignment")
    result = f"epoch {answer.get('memberEpoch', '?')}"
    if assignment:
        result += f", owns {_partitions(exchange, assignment) or 'nothing'}"
    return words + answered(exchange, result)


def _partitions(exchange: Exchange, holder: Json) -> str:
    topics = items(holder, "topicPartitions")
    return listed(topics, lambda topic: of_topic(exchange.topic(topic), integers(topic, "partitions")))


def init_producer_id(exchange: Exchange) -> str:
    """``txn payout-tx → pid 0 epoch 0``."""
    asked, answer = exchange.asked, exchange.answer or {}
    name = text(asked, "transactionalId")
    words = joined(f"txn {name}" if name else "idempotent" if asked else "", producer(asked))
    return words + answered(
        exchange, named(integer(answer, "errorCode")) if integer(answer, "errorCode") else producer(answer)
    )


def add_partitions(exchange: Exchange) -> str:
    """``txn payout-tx pid 0 epoch 0: payouts-0 → ok``."""
    asked, answer = exchange.asked, exchange.answer or {}
    prefix = "v3AndBelow"
    old = {
        "transactionalId": asked.get(f"{prefix}TransactionalId"),
        "producerId": asked.get(f"{prefix}ProducerId"),
        "producerEpoch": asked.get(f"{prefix}ProducerEpoch"),
        "topics": asked.get(f"{prefix}Topics"),
    }
    several = items(asked, "transactions") or ([old] if old["transactionalId"] is not None else [])

    def transaction(one: Json) -> str:
        topics = items(one, "topics")
        places = listed(topics, lambda topic: of_topic(exchange.topic(topic), integers(topic, "partitions")))
        verify = " verifies" if one.get("verifyOnly") else ""
        return f"txn {one.get('transactionalId')} {producer(one)}{verify}: {places}"

    results = items(answer, "resultsByTopicV3AndBelow") + [
        topic for one in items(answer, "resultsByTransaction") for topic in items(one, "topicResults")
    ]
    codes = [
        (f"{exchange.topic(topic)}-{part.get('partitionIndex')}", integer(part, "partitionErrorCode"))
        for topic in results
        for part in items(topic, "resultsByPartition")
    ]
    whole = integer(answer, "errorCode")
    return listed(several, transaction, "; ") + answered(exchange, named(whole) if whole else verdict(codes))


def _transaction(exchange: Exchange, what: str) -> str:
    asked, answer = exchange.asked, exchange.answer or {}
    name = text(asked, "transactionalId")
    words = joined(f"txn {name}" if name else "", producer(asked), what)
    return words + answered(exchange, named(integer(answer, "errorCode")))


def add_offsets(exchange: Exchange) -> str:
    """``txn relay-tx pid 0 epoch 0 group relays → ok``."""
    group = text(exchange.asked, "groupId")
    return _transaction(exchange, f"group {group}" if group else "")


def end_transaction(exchange: Exchange) -> str:
    """``txn payout-tx pid 0 epoch 0 commits → ok``."""
    committed = flag(exchange.asked, "committed")
    return _transaction(exchange, "" if committed is None else "commits" if committed else "aborts")


def write_markers(exchange: Exchange) -> str:
    """``pid 0 epoch 0 commit payouts-0 → ok``."""

    def marker(one: Json) -> str:
        places = listed(
            items(one, "topics"), lambda topic: of_topic(exchange.topic(topic), integers(topic, "partitionIndexes"))
        )
        result = flag(one, "transactionResult")
        return joined(producer(one), "" if result is None else "commit" if result else "abort", places)

    codes = [
        (f"{exchange.topic(topic)}-{part.get('partitionIndex')}", integer(part, "errorCode"))
        for one in items(exchange.answer, "markers")
        for topic in items(one, "topics")
        for part in items(topic, "partitions")
    ]
    return listed(items(exchange.asked, "markers"), marker, "; ") + answered(exchange, verdict(codes))


def describe_groups(exchange: Exchange) -> str:
    """``billing → Stable, 2 members``."""
    asked = exchange.asked
    names = texts(asked, "groups") or texts(asked, "groupIds") or texts(asked, "groupsNames")
    found = items(exchange.answer, "groups") or items(exchange.answer, "results")

    def state_of(group: Json) -> str:
        where = f"{group.get('groupId')} " if len(found) > 1 else ""
        if code := integer(group, "errorCode"):
            return where + named(code)
        state = text(group, "groupState")
        return where + (f"{state}, {counted(len(items(group, 'members')), 'member')}" if state else "ok")

    return listed(names) + answered(exchange, listed(found, state_of, "; "))


def list_groups(exchange: Exchange) -> str:
    """``all → 3 groups: billing, …``."""
    answer = exchange.answer or {}
    names = [str(text(group, "groupId")) for group in items(answer, "groups")]
    if code := integer(answer, "errorCode"):
        return answered(exchange, named(code)).strip()
    found = counted(len(names), "group")
    return answered(exchange, f"{found}: {listed(names)}" if names else found).strip()


DESCRIPTIONS = {
    ApiKey.JOIN_GROUP: join_group,
    ApiKey.SYNC_GROUP: sync_group,
    ApiKey.HEARTBEAT: heartbeat,
    ApiKey.LEAVE_GROUP: leave_group,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: member_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: member_heartbeat,
    ApiKey.STREAMS_GROUP_HEARTBEAT: member_heartbeat,
    ApiKey.DESCRIBE_GROUPS: describe_groups,
    ApiKey.CONSUMER_GROUP_DESCRIBE: describe_groups,
    ApiKey.SHARE_GROUP_DESCRIBE: describe_groups,
    ApiKey.DELETE_GROUPS: describe_groups,
    ApiKey.LIST_GROUPS: list_groups,
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: add_offsets,
    ApiKey.END_TXN: end_transaction,
    ApiKey.WRITE_TXN_MARKERS: write_markers,
}
