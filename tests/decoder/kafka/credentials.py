"""Where do Kafka's messages carry credentials? One message for each place."""

from __future__ import annotations

from typing import Any

from decoder.model import Direction
from tests.decoder.kafka.batches import batch, record

Body = tuple[Direction, int, int, dict[str, Any]]
"""Kind, api key, version and body of a message."""


def credentials(secret: bytes) -> dict[str, Body]:
    """A message for each field that holds credentials, with this secret in it; its name shows which."""
    text = secret.decode()
    return {
        "SaslAuthenticate request": ("request", 36, 2, {"authBytes": secret}),
        "SaslAuthenticate request, not flexible": ("request", 36, 0, {"authBytes": secret}),
        "SaslAuthenticate response": ("response", 36, 2, {"authBytes": secret}),
        "CreateDelegationToken response": ("response", 38, 3, {"tokenId": "token", "hmac": secret}),
        "RenewDelegationToken request": ("request", 39, 1, {"hmac": secret}),
        "ExpireDelegationToken request": ("request", 40, 2, {"hmac": secret}),
        "DescribeDelegationToken response": ("response", 41, 3, {"tokens": [{"tokenId": "t", "hmac": secret}] * 2}),
        "AlterUserScramCredentials request": (
            "request", 51, 0, {"upsertions": [{"name": "u", "salt": secret, "saltedPassword": secret}]},
        ),
        "AlterConfigs request": (
            "request", 33, 0, {"resources": [{"configs": [{"name": "sasl.jaas.config", "value": text}]}]},
        ),
        "AlterConfigs request, flexible": (
            "request", 33, 2, {"resources": [{"configs": [{"name": "ssl.key.password", "value": text}]}]},
        ),
        "IncrementalAlterConfigs request": (
            "request", 44, 1, {"resources": [{"configs": [{"name": "x", "value": text}]}]},
        ),
        "CreateTopics request": (
            "request", 19, 5, {"topics": [{"name": "t", "configs": [{"name": "x", "value": text}]}]},
        ),
        "CreateTopics response": (
            "response", 19, 7, {"topics": [{"name": "t", "configs": [{"name": "x", "value": text}]}]},
        ),
        "DescribeConfigs response": (
            "response", 32, 4, {"results": [{"configs": [
                {"name": "x", "value": text, "synonyms": [{"name": "y", "value": text}]}
            ]}]},
        ),
        "AlterConfigs response": ("response", 33, 2, {"responses": [{"errorCode": 40, "errorMessage": text}]}),
        "IncrementalAlterConfigs response": (
            "response", 44, 1, {"responses": [{"errorCode": 40, "errorMessage": text}]},
        ),
        "CreateTopics response that refuses": (
            "response", 19, 7, {"topics": [{"name": "t", "errorCode": 40, "errorMessage": text}]},
        ),
        "StreamsGroupHeartbeat response": (
            "response", 88, 0, {"status": [{"statusCode": 3, "statusDetail": text}]},
        ),
        "StreamsGroupHeartbeat request": (
            "request", 88, 0, {"topology": {"subtopologies": [
                {"repartitionSourceTopics": [{"name": "t", "topicConfigs": [{"key": "x", "value": text}]}],
                 "stateChangelogTopics": [{"name": "t", "topicConfigs": [{"key": "x", "value": text}]}]}
            ]}},
        ),
        "StreamsGroupDescribe response": (
            "response", 89, 0, {"groups": [{"topology": {"subtopologies": [
                {"repartitionSourceTopics": [{"name": "t", "topicConfigs": [{"key": "x", "value": text}]}],
                 "stateChangelogTopics": [{"name": "t", "topicConfigs": [{"key": "x", "value": text}]}]}
            ]}}]},
        ),
        "Envelope request": ("request", 58, 0, {"requestData": secret, "requestPrincipal": secret}),
        "Envelope response": ("response", 58, 0, {"responseData": secret}),
        "FetchSnapshot response": (
            "response", 59, 1, {"topics": [{"partitions": [{"unalignedRecords": batch([record(None, secret)])}]}]},
        ),
    }  # fmt: skip
