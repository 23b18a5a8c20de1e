"""What a client asks before it reads and writes (versions, metadata, coordinators), and what administrators do."""

from __future__ import annotations

from decoder.fields import Json, integer, items, natural, text, texts
from decoder.kafka.apis import ApiKey
from decoder.kafka.summaries.pieces import Exchange, answered, counted, joined, listed, named, topic_name, verdict

_KEYS = {0: "group", 1: "txn", 2: "share"}


def api_versions(exchange: Exchange) -> str:
    """``apache-kafka-java 4.4.0 → 61 apis``."""
    asked, answer = exchange.asked, exchange.answer or {}
    words = joined(text(asked, "clientSoftwareName") or "", text(asked, "clientSoftwareVersion") or "")
    code = integer(answer, "errorCode")
    return words + answered(exchange, named(code) if code else counted(len(items(answer, "apiKeys")), "api"))


def metadata(exchange: Exchange) -> str:
    """``payments → 1 broker, payments 4 partitions``."""
    asked, answer = exchange.asked, exchange.answer or {}
    topics = items(asked, "topics")
    if "topics" not in asked:
        words = ""
    elif asked["topics"] is None or (not topics and exchange.version == 0):
        words = "all topics"
    else:
        words = listed(topics, lambda topic: topic_name(topic, exchange.names) or "?") or "brokers only"
    found = sorted(items(answer, "topics"), key=lambda topic: not integer(topic, "errorCode"))

    def of_topic(topic: Json) -> str:
        name = topic_name(topic, exchange.names) or "?"
        if code := integer(topic, "errorCode"):
            return f"{name} {named(code)}"
        partitions = items(topic, "partitions")
        wrong = [
            (str(integer(one, "partitionIndex")), code) for one in partitions if (code := integer(one, "errorCode"))
        ]
        troubled = f" ({listed(wrong, lambda one: f'{one[0]} {named(one[1])}')})" if wrong else ""
        return f"{name} {counted(len(partitions), 'partition')}{troubled}"

    if code := integer(answer, "errorCode"):
        return words + answered(exchange, named(code))
    brokers = counted(len(items(answer, "brokers")), "broker")
    is_wrong = bool(found) and bool(integer(found[0], "errorCode"))
    parts = [brokers, listed(found, of_topic)][:: -1 if is_wrong else 1]
    return words + answered(exchange, ", ".join(part for part in parts if part))


def describe_cluster(exchange: Exchange) -> str:
    """``3 brokers, controller 1``."""
    answer = exchange.answer or {}
    code = integer(answer, "errorCode")
    result = named(code) if code else counted(len(items(answer, "brokers")), "broker")
    if not code and "controllerId" in answer:
        result += f", controller {answer['controllerId']}"
    return answered(exchange, result).strip()


def find_coordinator(exchange: Exchange) -> str:
    """``group billing → broker 1 at 127.0.0.1:9092``."""
    asked, answer = exchange.asked, exchange.answer or {}
    keys = texts(asked, "coordinatorKeys") or [*filter(None, [text(asked, "key")])]
    kind = 0 if exchange.version == 0 else integer(asked, "keyType")
    words = joined(_KEYS.get(-1 if kind is None else kind, "") if keys else "", listed(keys))
    found = items(answer, "coordinators") or ([answer] if answer else [])

    def coordinator(one: Json) -> str:
        where = f"{one.get('key')} " if len(found) > 1 else ""
        if code := integer(one, "errorCode"):
            return where + named(code)
        return f"{where}broker {one.get('nodeId', '?')} at {one.get('host', '?')}:{one.get('port', '?')}"

    return words + answered(exchange, listed(found, coordinator))


def create_topics(exchange: Exchange) -> str:
    """``entries 2 partitions x1 → ok``."""

    def wanted(topic: Json) -> str:
        count, copies = natural(topic, "numPartitions"), natural(topic, "replicationFactor")
        size = "" if count is None else counted(count, "partition")
        return joined(text(topic, "name") or "?", size, f"x{copies}" if copies else "")

    tries = " (validate only)" if exchange.asked.get("validateOnly") else ""
    return listed(items(exchange.asked, "topics"), wanted) + tries + answered(exchange, _each(exchange, "topics"))


def delete_topics(exchange: Exchange) -> str:
    """``drafts → ok``."""
    asked = exchange.asked
    names = texts(asked, "topicNames") or [topic_name(one, exchange.names) or "?" for one in items(asked, "topics")]
    return listed(names) + answered(exchange, _each(exchange, "responses"))


def create_partitions(exchange: Exchange) -> str:
    """``entries to 4 partitions → ok``."""
    topics = items(exchange.asked, "topics")
    words = listed(topics, lambda one: f"{one.get('name')} to {counted(natural(one, 'count') or 0, 'partition')}")
    return words + answered(exchange, _each(exchange, "results"))


def _each(exchange: Exchange, results: str) -> str:
    found = items(exchange.answer, results)
    return verdict([(exchange.topic(one), integer(one, "errorCode")) for one in found])


_RESOURCES = {2: "topic", 4: "broker", 8: "logger", 16: "metrics of", 32: "group"}


def configs(exchange: Exchange) -> str:
    """``topic payments: retention.ms → ok``. Names of settings, not their values."""
    asked, answer = exchange.asked, exchange.answer or {}

    def resource(one: Json) -> str:
        kind = _RESOURCES.get(integer(one, "resourceType") or -1, "resource")
        keys = texts(one, "configurationKeys") or [str(c.get("name")) for c in items(one, "configs")]
        return f"{kind} {one.get('resourceName')}" + (f": {listed(keys)}" if keys else "")

    results = items(answer, "results") or items(answer, "responses")
    codes = [(str(text(one, "resourceName")), integer(one, "errorCode")) for one in results]
    return listed(items(asked, "resources"), resource, "; ") + answered(exchange, verdict(codes))


def sasl_handshake(exchange: Exchange) -> str:
    """``PLAIN → ok``."""
    answer = exchange.answer or {}
    offers = texts(answer, "mechanisms")
    result = named(integer(answer, "errorCode")) + (
        f", offers {listed(offers)}" if integer(answer, "errorCode") else ""
    )
    return (text(exchange.asked, "mechanism") or "") + answered(exchange, result)


DESCRIPTIONS = {
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.METADATA: metadata,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.DESCRIBE_CONFIGS: configs,
    ApiKey.ALTER_CONFIGS: configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs,
    ApiKey.SASL_HANDSHAKE: sasl_handshake,
}
