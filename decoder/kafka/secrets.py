"""Which fields of Kafka's messages hold secrets? They are stored under no payload policy."""

from __future__ import annotations

from decoder.model import Direction

_CONFIG_MESSAGES: dict[tuple[int, Direction], frozenset[str]] = {
    (19, "request"): frozenset({"topics/configs/value"}),
    (19, "response"): frozenset({"topics/configs/value"}),
    (32, "response"): frozenset({"results/configs/value", "results/configs/synonyms/value"}),
    (33, "request"): frozenset({"resources/configs/value"}),
    (33, "response"): frozenset({"responses/errorMessage"}),
    (44, "request"): frozenset({"resources/configs/value"}),
    (44, "response"): frozenset({"responses/errorMessage"}),
    (88, "request"): frozenset(
        {
            "topology/subtopologies/repartitionSourceTopics/topicConfigs/value",
            "topology/subtopologies/stateChangelogTopics/topicConfigs/value",
        }
    ),
    (89, "response"): frozenset(
        {
            "groups/topology/subtopologies/repartitionSourceTopics/topicConfigs/value",
            "groups/topology/subtopologies/stateChangelogTopics/topicConfigs/value",
        }
    ),
}
"""Config values (CreateTopics, DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, StreamsGroupHeartbeat and
-Describe): any may be a password or a JAAS line, and the broker alone knows which are sensitive. Its complaint about a
value that it refuses may quote it."""

SECRET_FIELDS: dict[tuple[int, Direction], frozenset[str]] = {
    **_CONFIG_MESSAGES,
    (36, "request"): frozenset({"authBytes"}),
    (36, "response"): frozenset({"authBytes"}),
    (38, "response"): frozenset({"hmac"}),
    (39, "request"): frozenset({"hmac"}),
    (40, "request"): frozenset({"hmac"}),
    (41, "response"): frozenset({"tokens/hmac"}),
    (51, "request"): frozenset({"upsertions/salt", "upsertions/saltedPassword"}),
    (58, "request"): frozenset({"requestData", "requestPrincipal"}),
    (58, "response"): frozenset({"responseData"}),
    (59, "response"): frozenset({"topics/partitions/unalignedRecords"}),
}
"""By api key and direction: names of the fields from the root of the body, without array indexes. Beside config values:
SaslAuthenticate, delegation tokens (38 to 41), AlterUserScramCredentials, Envelope (which wraps any other request),
FetchSnapshot (a piece of the cluster's metadata)."""

SECRET_TOPICS = frozenset({"__cluster_metadata", "AAAAAAAAAAAAAAAAAAAAAQ"})
"""Topics whose records hold SCRAM keys, delegation tokens and configs of the whole cluster, by name and, from Fetch v13
on, by id (Uuid.METADATA_TOPIC_ID, 00000000-0000-0000-0000-000000000001)."""
