"""Of the cluster's own metadata no record lands, under no policy."""

from __future__ import annotations

import struct
from typing import ClassVar, get_args

import pytest

from decoder import FrameFlags
from decoder.model import PayloadPolicy
from decoder.redact import redact
from tests.decoder.kafka.encode import response
from tests.decoder.kafka.landed import decode, landed
from tests.decoder.kafka.redaction.frames import (
    CANARY,
    FETCH,
    FIELD_HASH,
    V2,
    V2_GZIP,
    V2_NAMED,
    is_clean,
)


@pytest.mark.parametrize("policy", get_args(PayloadPolicy))
class TestMetadataOfTheCluster:
    """SCRAM keys, delegation tokens and configs are in its records."""

    BY_NAME: ClassVar = {"responses": [{"topic": "__cluster_metadata", "partitions": [{"records": V2 + V2_GZIP}]}]}
    BY_ID: ClassVar = {"responses": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [{"records": V2 + V2_GZIP}]}]}

    @pytest.mark.parametrize(("version", "body"), [(12, BY_NAME), (4, BY_NAME), (17, BY_ID)])
    def test_its_records_are_stored_under_no_policy(self, policy, version, body):
        data = response(FETCH, version, body)
        cleaned = redact(landed(data, "response", FETCH, version, policy=policy), FIELD_HASH)
        assert is_clean(cleaned)
        assert cleaned.flags & FrameFlags.PAYLOAD_REMOVED
        if policy != "none":
            verdicts = [batch["crcValid"] for batch in decode(cleaned).record_batches]
            assert verdicts == [True, True]

    @pytest.mark.parametrize(("version", "body"), [(12, BY_NAME), (17, BY_ID)])
    def test_cut_off_anywhere(self, policy, version, body):
        data = response(FETCH, version, body)
        for cut in range(len(data)):
            assert is_clean(redact(landed(data[:cut], "response", FETCH, version, policy=policy), FIELD_HASH))

    def test_with_bytes_behind_it_or_of_a_version_to_come(self, policy):
        for data, version in ((response(FETCH, 12, self.BY_NAME) + CANARY, 12), (struct.pack(">i", 7) + CANARY, 99)):
            assert is_clean(redact(landed(data, "response", FETCH, version, policy=policy), FIELD_HASH))

    def test_other_topics_beside_it_follow_the_policy(self, policy):
        topics = [{"topic": name, "partitions": [{"records": V2_NAMED}]} for name in ("__cluster_metadata", "orders")]
        cleaned = redact(
            landed(response(FETCH, 12, {"responses": topics}), "response", FETCH, 12, policy=policy), FIELD_HASH
        )
        assert cleaned.frame.count(CANARY) == (3 * 2 if policy == "full" else 0)
        assert is_clean(cleaned) == (policy != "full")
