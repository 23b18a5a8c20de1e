from __future__ import annotations

import struct

import pytest

from decoder import Codec, FrameFlags, Message
from decoder.errors import ErrorCode
from decoder.kafka.codec.program import compile_programs
from tests.decoder.kafka.batches import batch, control, damaged, message, record
from tests.decoder.kafka.encode import request, response

CODEC = Codec()
PRODUCE, FETCH, METADATA, SHUTDOWN, SASL, API_VERSIONS, SHARE_FETCH = 0, 1, 3, 7, 36, 18, 78
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"

ONE_BATCH = batch([record(b"k", b"v")], base_offset=40, producer=(4711, 3, 0))


def decode_response(frame: bytes, api_key: int, api_version: int, flags: int = 0) -> Message:
    return CODEC.decode(frame, direction="response", api_key=api_key, api_version=api_version, flags=flags)


def outcome(message: Message) -> tuple:
    return message.status, message.error_code, message.error_offset


class TestStatuses:
    def test_ok(self):
        decoded = CODEC.decode(request(METADATA, 9, {"topics": [{"name": "orders"}]}, client_id="billing"))
        assert outcome(decoded) == ("ok", None, None)
        assert (decoded.api_key, decoded.api_version, decoded.api_name) == (METADATA, 9, "Metadata")
        assert decoded.client_id == "billing"
        assert decoded.body["topics"] == [{"name": "orders"}]
        assert decoded.error_detail is None

    def test_partial_has_the_fields_before_the_error(self):
        raw = request(METADATA, 9, {"topics": [{"name": "orders"}]})
        decoded = CODEC.decode(raw[:-4])
        assert outcome(decoded) == ("partial", ErrorCode.BUFFER_UNDERFLOW, len(raw) - 4)
        assert decoded.body["topics"] == [{"name": "orders"}]

    def test_malformed_has_no_field_of_the_body(self):
        raw = struct.pack(">hhih", METADATA, 1, 7, -1) + struct.pack(">i", 99)
        decoded = CODEC.decode(raw)
        assert outcome(decoded) == ("malformed", ErrorCode.LENGTH_OVERRUN, 10)
        assert decoded.header["correlationId"] == 7
        assert decoded.body == {}

    @pytest.mark.parametrize("size", range(10))
    def test_less_than_a_header_is_malformed(self, size):
        decoded = CODEC.decode(struct.pack(">hhih", METADATA, 1, 7, -1)[:size])
        assert outcome(decoded) == ("malformed", ErrorCode.BUFFER_UNDERFLOW, [0, 0, 2, 2, 4, 4, 4, 4, 8, 8][size])

    def test_trailing_bytes_leave_a_message_ok(self):
        raw = request(METADATA, 9, {"topics": []})
        decoded = CODEC.decode(raw + b"\0\0")
        assert outcome(decoded) == ("ok", ErrorCode.TRAILING_BYTES, len(raw))
        assert decoded.error_detail == "MetadataRequest ended here, 2 bytes are left"
        assert decoded.body == CODEC.decode(raw).body

    @pytest.mark.parametrize(
        "doubt", [FrameFlags.AFTER_GAP, FrameFlags.CORRELATION_MISMATCH, FrameFlags.CONFLICT, "strict"]
    )
    def test_trailing_bytes_where_the_frame_may_be_none_leave_it_partial(self, doubt):
        raw = request(METADATA, 9, {"topics": []})
        given = {"strict": True} if doubt == "strict" else {"flags": doubt}
        assert outcome(CODEC.decode(raw + b"\0\0", **given)) == ("partial", ErrorCode.TRAILING_BYTES, len(raw))

    def test_unknown_api(self):
        decoded = CODEC.decode(struct.pack(">hhih", 999, 3, 7, 2) + b"me" + b"something")
        assert outcome(decoded) == ("unknown_api", ErrorCode.UNKNOWN_API, 0)
        assert (decoded.api_key, decoded.api_version, decoded.api_name) == (999, 3, None)
        assert decoded.header == {
            "requestApiKey": 999, "requestApiVersion": 3, "correlationId": 7, "clientId": "me",
        }  # fmt: skip
        assert decoded.body == {}

    def test_unknown_version(self):
        decoded = CODEC.decode(struct.pack(">hhih", METADATA, 99, 7, 2) + b"me" + b"\0something")
        assert outcome(decoded) == ("unknown_version", ErrorCode.UNKNOWN_VERSION, 2)
        assert (decoded.api_name, decoded.client_id) == ("Metadata", "me")
        assert decoded.error_detail == "no Kafka release has Metadata v99"

    def test_unknown_version_of_a_response(self):
        decoded = decode_response(struct.pack(">i", 7) + b"something", METADATA, 99)
        assert outcome(decoded) == ("unknown_version", ErrorCode.UNKNOWN_VERSION, 2)
        assert decoded.header == {"correlationId": 7}

    def test_an_unknown_request_whose_client_id_does_not_fit_keeps_its_correlation_id(self):
        decoded = CODEC.decode(struct.pack(">hhih", 999, 3, 7, 200) + b"me")
        assert decoded.status == "unknown_api"
        assert decoded.header["correlationId"] == 7

    def test_an_unknown_request_without_a_correlation_id_is_malformed(self):
        assert outcome(CODEC.decode(struct.pack(">hhh", 999, 3, 7))) == ("malformed", ErrorCode.BUFFER_UNDERFLOW, 4)

    @pytest.mark.parametrize(("key", "version"), [(None, None), (METADATA, None), (None, 9)])
    def test_orphan_response(self, key, version):
        decoded = decode_response(response(METADATA, 9, {}), key, version)
        assert outcome(decoded) == ("orphan_response", ErrorCode.MISSING_REQUEST, 4)
        assert decoded.header == {"correlationId": 7}
        assert decoded.body == {}

    def test_an_orphan_of_three_bytes_is_malformed(self):
        assert outcome(decode_response(b"\0\0\0", None, None)) == ("malformed", ErrorCode.BUFFER_UNDERFLOW, 0)


class TestFlagsOfTheAgent:
    def test_truncated_whatever_could_be_read(self):
        raw = request(METADATA, 9, {"topics": [{"name": "orders"}]})
        for cut in range(len(raw) + 1):
            decoded = CODEC.decode(raw[:cut], flags=FrameFlags.TRUNCATED)
            assert (decoded.status, decoded.error_code) == ("truncated", ErrorCode.FRAME_TRUNCATED)
            assert decoded.error_offset <= cut
        assert decoded.body["topics"] == [{"name": "orders"}]

    def test_redacted_frames_still_decode(self):
        raw = request(SASL, 2, {"authBytes": bytes(12)})
        decoded = CODEC.decode(raw, flags=FrameFlags.REDACTED)
        assert outcome(decoded) == ("redacted", ErrorCode.CREDENTIALS_REDACTED, 0)
        assert decoded.body == {"authBytes": "AAAAAAAAAAAAAAAA"}

    def test_a_sasl_token_has_neither_header_nor_body(self):
        decoded = CODEC.decode(bytes(40), flags=FrameFlags.SASL_TOKEN | FrameFlags.REDACTED)
        assert outcome(decoded) == ("redacted", ErrorCode.CREDENTIALS_REDACTED, 0)
        assert (decoded.header, decoded.body, decoded.api_key) == ({}, {}, None)

    @pytest.mark.parametrize(
        ("flags", "valid"),
        [
            (0, None),
            (FrameFlags.CRC_CHECKED, True),
            (FrameFlags.CRC_CHECKED | FrameFlags.CRC_MISMATCH, False),
        ],
    )
    def test_when_payload_was_removed_the_agents_verdict_counts(self, flags, valid):
        zeroed = ONE_BATCH[:61] + bytes(len(ONE_BATCH) - 61)
        raw = request(PRODUCE, 9, {"topicData": [{"name": "t", "partitionData": [{"index": 0, "records": zeroed}]}]})
        assert CODEC.decode(raw).record_batches[0]["crcValid"] is False
        decoded = CODEC.decode(raw, flags=FrameFlags.PAYLOAD_REMOVED | flags)
        assert decoded.record_batches[0]["crcValid"] is valid
        assert decoded.body["topicData"][0]["partitionData"][0]["recordBatches"][0]["crcValid"] is valid

    def test_the_verdict_is_not_for_batches_that_still_show_theirs_or_have_none(self):
        zeroed = ONE_BATCH[:61] + bytes(len(ONE_BATCH) - 61)
        partition = {"partitionIndex": 0, "records": control(1) + zeroed + ONE_BATCH[:-1]}
        raw = response(FETCH, 12, {"responses": [{"topic": "t", "partitions": [partition]}]})
        flags = FrameFlags.PAYLOAD_REMOVED | FrameFlags.CRC_CHECKED | FrameFlags.CRC_MISMATCH
        decoded = decode_response(raw, FETCH, 12, flags)
        assert [b["crcValid"] for b in decoded.record_batches] == [True, False, None]


class TestTheRequestsOwnHeader:
    def test_is_believed_over_the_arguments(self):
        raw = request(METADATA, 9, {"topics": []})
        assert CODEC.decode(raw, api_key=PRODUCE, api_version=3) == CODEC.decode(raw)

    def test_controlled_shutdown_v0_has_no_client_id(self):
        decoded = CODEC.decode(struct.pack(">hhii", SHUTDOWN, 0, 7, 1001))
        assert outcome(decoded) == ("ok", None, None)
        assert decoded.header == {"requestApiKey": SHUTDOWN, "requestApiVersion": 0, "correlationId": 7}
        assert decoded.body == {"brokerId": 1001}
        assert decoded.client_id is None

    def test_a_null_client_id(self):
        decoded = CODEC.decode(request(METADATA, 1, {"topics": None}, client_id=None))
        assert decoded.status == "ok"
        assert decoded.header["clientId"] is None
        assert decoded.body == {"topics": None}

    @pytest.mark.parametrize("correlation_id", [-1, -(2**31), 2**31 - 1])
    def test_any_correlation_id_will_do(self, correlation_id):
        assert CODEC.decode(request(METADATA, 9, {}, correlation_id=correlation_id)).status == "ok"
        decoded = decode_response(response(METADATA, 9, {}, correlation_id=correlation_id), METADATA, 9)
        assert decoded.header == {"correlationId": correlation_id}


class TestApiVersionsInVersion0:
    """A broker that does not know the version asked for answers in v0, whose header has no tags (KIP-511)."""

    V0 = response(API_VERSIONS, 0, {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]})
    OLD = response(API_VERSIONS, 0, {"errorCode": 35, "apiKeys": []})

    @pytest.mark.parametrize("asked", [0, 3, 4, 5, 99])
    @pytest.mark.parametrize("raw", [V0, OLD])
    def test_whatever_was_asked(self, asked, raw):
        decoded = decode_response(raw, API_VERSIONS, asked)
        assert outcome(decoded) == ("ok", None, None)
        assert decoded.body["errorCode"] == 35
        assert "throttleTimeMs" not in decoded.body
        assert (decoded.api_name, decoded.api_version) == ("ApiVersions", asked)

    @pytest.mark.parametrize("version", range(5))
    def test_an_answer_in_the_version_asked_for_has_header_0_too(self, version):
        keys = [{"apiKey": 1, "minVersion": 4, "maxVersion": 18}]
        decoded = decode_response(response(API_VERSIONS, version, {"apiKeys": keys}), API_VERSIONS, version)
        assert outcome(decoded) == ("ok", None, None)
        assert decoded.body["apiKeys"] == keys
        assert ("throttleTimeMs" in decoded.body) == (version >= 1)

    def test_only_if_v0_fits_to_the_last_byte(self):
        assert decode_response(self.V0 + b"\0", API_VERSIONS, 3).status == "partial"
        assert decode_response(self.V0 + b"\0", API_VERSIONS, 99).status == "unknown_version"

    def test_not_for_requests(self):
        assert CODEC.decode(request(API_VERSIONS, 0, {})).status == "ok"
        unknown = struct.pack(">hhih", API_VERSIONS, 99, 7, -1) + self.V0[4:]
        assert CODEC.decode(unknown).status == "unknown_version"


class TestRecordBatches:
    def test_of_a_produce_request(self):
        partitions = [{"index": 2, "records": ONE_BATCH + ONE_BATCH}, {"index": 3, "records": None}]
        raw = request(PRODUCE, 9, {"topicData": [{"name": "orders", "partitionData": partitions}]})
        decoded = CODEC.decode(raw)
        assert decoded.status == "ok"
        first, null = decoded.body["topicData"][0]["partitionData"]
        assert first["recordsSizeInBytes"] == 2 * len(ONE_BATCH)
        assert [b["baseOffset"] for b in first["recordBatches"]] == [40, 40]
        assert null == {"index": 3, "records": None}
        found = decoded.record_batches
        assert [(b["topic"], b["topicId"], b["partition"]) for b in found] == [("orders", None, 2)] * 2
        assert {**found[0], "topic": None, "topicId": None, "partition": None} == {
            **first["recordBatches"][0], "topic": None, "topicId": None, "partition": None,
        }  # fmt: skip

    def test_topics_by_id_in_produce_13(self):
        topics = [{"topicId": TOPIC_ID, "partitionData": [{"index": 0, "records": ONE_BATCH}]}]
        (found,) = CODEC.decode(request(PRODUCE, 13, {"topicData": topics})).record_batches
        assert (found["topic"], found["topicId"]) == (None, TOPIC_ID)

    @pytest.mark.parametrize(
        ("version", "topic", "expected"),
        [
            (0, {"topic": "t"}, ("t", None)),
            (12, {"topic": "t"}, ("t", None)),
            (18, {"topicId": TOPIC_ID}, (None, TOPIC_ID)),
        ],
    )
    def test_of_a_fetch_response_in_any_format(self, version, topic, expected):
        records = message(b"k", b"v", magic=0) + damaged(ONE_BATCH) + control(1) + ONE_BATCH[:50]
        partitions = [{"partitionIndex": 5, "records": records}]
        raw = response(FETCH, version, {"responses": [{**topic, "partitions": partitions}]})
        decoded = decode_response(raw, FETCH, version)
        assert decoded.status == "ok"
        found = decoded.record_batches
        assert {(b["topic"], b["topicId"], b["partition"]) for b in found} == {(*expected, 5)}
        assert [b["status"] for b in found] == ["ok", "ok", "ok", "partial"]
        assert [b.get("crcValid") for b in found] == [True, False, True, None]

    def test_of_a_share_fetch_response(self):
        partitions = [{"partitionIndex": 1, "records": ONE_BATCH}]
        raw = response(SHARE_FETCH, 1, {"responses": [{"topicId": TOPIC_ID, "partitions": partitions}]})
        (found,) = decode_response(raw, SHARE_FETCH, 1).record_batches
        assert (found["topicId"], found["partition"], found["producerId"]) == (TOPIC_ID, 1, 4711)

    def test_those_before_an_error_stay(self):
        partitions = [{"index": 0, "records": ONE_BATCH}, {"index": 1, "records": ONE_BATCH}]
        raw = request(PRODUCE, 9, {"topicData": [{"name": "t", "partitionData": partitions}]})
        decoded = CODEC.decode(raw[: -len(ONE_BATCH)])
        assert decoded.status == "partial"
        assert [b["partition"] for b in decoded.record_batches] == [0]

    def test_acks_0_and_null_transactional_id(self):
        # the acks are behind the transactional id: a short cut to them reads the wrong bytes
        decoded = CODEC.decode(request(PRODUCE, 9, {"transactionalId": None, "acks": 0, "timeoutMs": 1500}))
        assert decoded.body == {"transactionalId": None, "acks": 0, "timeoutMs": 1500, "topicData": []}


def test_throttle_time_stands_last_in_a_produce_response():
    decoded = decode_response(response(PRODUCE, 9, {"throttleTimeMs": 77}), PRODUCE, 9)
    assert list(decoded.body) == ["responses", "throttleTimeMs"]
    assert decoded.body["throttleTimeMs"] == 77


def test_node_endpoints_of_a_fetch_response_are_tagged():
    endpoints = [{"nodeId": 1, "host": "b1", "port": 9092, "rack": None}]
    decoded = decode_response(response(FETCH, 16, {"nodeEndpoints": endpoints}), FETCH, 16)
    assert (decoded.status, decoded.body["nodeEndpoints"]) == ("ok", endpoints)


class TestWhatNoTableKnows:
    """Newer than every release we know: the number stays, and so do the bytes."""

    @pytest.mark.parametrize("code", [-2, 137, 9999, 2**15 - 1, -(2**15)])
    def test_an_error_code(self, code):
        topics = [{"errorCode": code, "name": "orders", "partitions": []}]
        decoded = decode_response(response(METADATA, 9, {"topics": topics}), METADATA, 9)
        assert (decoded.status, decoded.body["topics"][0]["errorCode"]) == ("ok", code)

    @pytest.mark.parametrize("version", [-1, 14, 2**15 - 1])
    def test_a_version_of_a_response(self, version):
        decoded = decode_response(response(METADATA, 9, {}), METADATA, version)
        assert (decoded.status, decoded.header, decoded.body) == ("unknown_version", {"correlationId": 7}, {})


class TestHeaders:
    """ApiMessageTypeGenerator: 2 and 1 for flexible versions, 1 and 0 for the others, and two exceptions."""

    @pytest.mark.parametrize("key", sorted(compile_programs().api_names))
    def test_of_each_api_are_flexible_when_the_body_is(self, key):
        for (api, version), entry in compile_programs().requests.items():
            if api != key:
                continue
            tags = b"\1\7\0" if entry.flexible else b""  # one unknown tag of the header
            head = struct.pack(">hhi", key, version, 7) + (b"" if (key, version) == (SHUTDOWN, 0) else b"\0\2me")
            body = request(key, version, {}, client_id="me")[len(head) + entry.flexible :]
            decoded = CODEC.decode(head + tags + body)
            assert decoded.status == "ok"
            assert ("unknownTaggedFields" in decoded.header) == entry.flexible
            flexible_answer = entry.flexible and key != API_VERSIONS
            answer = response(key, version, {})
            raw = answer[:4] + b"\1\7\0" + answer[5:] if flexible_answer else answer
            decoded = decode_response(raw, key, version)
            assert (decoded.status, "unknownTaggedFields" in decoded.header) == ("ok", flexible_answer)
