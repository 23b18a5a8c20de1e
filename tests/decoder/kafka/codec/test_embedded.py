"""Messages inside bytes fields, whatever the bytes; tests/oracle compares the good ones with Kafka."""

from __future__ import annotations

import base64
import json
import random
import struct
from typing import Any

import pytest

from decoder import Codec, FrameFlags, Message
from decoder.errors import ErrorCode
from decoder.kafka.codec.embedded import ASSIGNMENT, EMBEDDING_APIS, SUBSCRIPTION
from decoder.kafka.codec.program import compile_programs
from decoder.kafka.schema import table
from pipeline.commands.messages.messages import decoded_messages, ordered_frames
from tests.decoder.kafka.encode import consumer_protocol, request, response
from tests.hostile.invariants import nodes
from tests.paths import CAPTURES

CODEC = Codec()
JOIN_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, ENVELOPE, METADATA, CREATE_TOPICS = 11, 14, 15, 58, 3, 19


SUBSCRIBED = consumer_protocol(SUBSCRIPTION, 0, {"topics": ["orders"], "userData": None})
ASSIGNED = consumer_protocol(ASSIGNMENT, 0, {"assignedPartitions": [{"topic": "orders", "partitions": [0, 2]}]})
CONNECT = struct.pack(">hh", 1, 22) + b"http://worker-1:8083/x" + struct.pack(">q", 17)
"""ConnectProtocol's worker state: version, url, config offset."""


def joining(metadata: bytes, protocol_type: str = "consumer") -> Message:
    protocols = [{"name": "range", "metadata": metadata}]
    return CODEC.decode(request(JOIN_GROUP, 5, {"protocolType": protocol_type, "protocols": protocols}))


def answer(key: int, version: int, body: dict[str, Any]) -> Message:
    frame = response(key, version, body)
    return CODEC.decode(frame, direction="response", api_key=key, api_version=version)


class TestWhere:
    def test_a_join_request_lists_one_subscription_for_each_protocol(self):
        protocols = [{"name": name, "metadata": SUBSCRIBED} for name in ("range", "sticky")]
        message = CODEC.decode(request(JOIN_GROUP, 9, {"protocolType": "consumer", "protocols": protocols}))
        assert [each["path"] for each in message.embedded] == ["protocols/0/metadata", "protocols/1/metadata"]
        assert message.embedded[0] == {
            "path": "protocols/0/metadata", "name": SUBSCRIPTION, "version": 0, "status": "ok",
            "body": {"topics": ["orders"], "userData": None},
        }  # fmt: skip

    def test_the_body_stays_kafkas(self):
        (protocol,) = joining(SUBSCRIBED).body["protocols"]
        assert base64.b64decode(protocol["metadata"]) == SUBSCRIBED

    @pytest.mark.parametrize("version", [0, 6, 7, 9])
    def test_a_join_response_has_those_of_the_members(self, version):
        body: dict[str, Any] = {"members": [{"memberId": "a", "metadata": SUBSCRIBED}, {"memberId": "b"}]}
        if version >= 7:
            body["protocolType"] = "consumer"
        (found,) = answer(JOIN_GROUP, version, body).embedded
        assert (found["path"], found["name"], found["status"]) == ("members/0/metadata", SUBSCRIPTION, "ok")

    @pytest.mark.parametrize("version", range(6))
    def test_assignments_of_a_sync(self, version):
        type_ = {"protocolType": "consumer"} if version >= 5 else {}
        body = {"assignments": [{"memberId": "a", "assignment": ASSIGNED}], **type_}
        (asked,) = CODEC.decode(request(SYNC_GROUP, version, body)).embedded
        (answered,) = answer(SYNC_GROUP, version, {"assignment": ASSIGNED, **type_}).embedded
        assert (asked["path"], answered["path"]) == ("assignments/0/assignment", "assignment")
        partitions = [{"topic": "orders", "partitions": [0, 2]}]
        assert asked["body"]["assignedPartitions"] == answered["body"]["assignedPartitions"] == partitions

    def test_described_members_have_both(self):
        member = {"memberId": "a", "memberMetadata": SUBSCRIBED, "memberAssignment": ASSIGNED}
        groups = [{"protocolType": "consumer", "members": [member]}, {"protocolType": "", "members": []}]
        found = answer(DESCRIBE_GROUPS, 5, {"groups": groups}).embedded
        assert [(each["path"], each["name"]) for each in found] == [
            ("groups/0/members/0/memberMetadata", SUBSCRIPTION),
            ("groups/0/members/0/memberAssignment", ASSIGNMENT),
        ]

    def test_empty_fields_carry_nothing(self):
        assert joining(b"").embedded == []
        assert answer(SYNC_GROUP, 5, {"errorCode": 27, "assignment": b""}).embedded == []

    @pytest.mark.parametrize("key", sorted(set(compile_programs().api_names) - EMBEDDING_APIS))
    def test_only_the_apis_named_carry_messages(self, key):
        version = table.api_versions()[key][1]
        assert CODEC.decode(request(key, version, {})).embedded == []


class TestVersions:
    @pytest.mark.parametrize("written", [4, 99, 32767])
    def test_a_newer_one_is_read_as_the_newest_known(self, written):
        raw = consumer_protocol(SUBSCRIPTION, 3, {"topics": ["t"], "rackId": "r1"}, written=written) + b"new field"
        (found,) = joining(raw).embedded
        assert (found["version"], found["readAsVersion"], found["status"]) == (written, 3, "ok")
        assert found["trailingBytes"] == 9
        assert found["body"]["rackId"] == "r1"

    def test_one_below_zero_is_refused_as_kafka_does(self):
        (found,) = joining(consumer_protocol(SUBSCRIPTION, 0, {}, written=-1)).embedded
        assert (found["status"], found["error_code"], found["body"]) == ("unknown_version", "unknown_version", {})

    def test_bytes_after_the_last_field_are_allowed(self):
        (found,) = joining(SUBSCRIBED + b"\1\2\3").embedded
        assert (found["status"], found["trailingBytes"]) == ("ok", 3)


class TestOtherProtocols:
    def test_are_left_raw(self):
        (found,) = joining(CONNECT, "connect").embedded
        assert found == {
            "path": "protocols/0/metadata", "name": None, "version": None, "status": "raw", "body": None,
            "protocolType": "connect",
        }  # fmt: skip

    def test_are_recognised_where_the_type_is_not_named(self):
        (found,) = answer(JOIN_GROUP, 5, {"members": [{"memberId": "a", "metadata": CONNECT}]}).embedded
        assert (found["status"], found["name"], found["body"]) == ("raw", None, None)

    @pytest.mark.parametrize("cut", range(1, len(ASSIGNED)))
    def test_so_is_what_does_not_decode_there(self, cut):
        (found,) = answer(SYNC_GROUP, 4, {"assignment": ASSIGNED[:cut]}).embedded
        assert found["status"] == "raw"


class TestEnvelope:
    FORWARDED = request(CREATE_TOPICS, 7, {"topics": [{"name": "orders", "numPartitions": 3}]}, client_id="admin")

    def envelope(self, data: bytes, flags: int = 0) -> dict[str, Any]:
        frame = request(ENVELOPE, 0, {"requestData": data, "clientHostAddress": b"\x7f\0\0\1"})
        message = CODEC.decode(frame, flags=flags)
        assert message.status == ("redacted" if flags & FrameFlags.REDACTED else "ok")
        (found,) = message.embedded
        return found

    def test_holds_a_whole_request(self):
        found = self.envelope(self.FORWARDED)
        assert (found["path"], found["name"], found["version"]) == ("requestData", "CreateTopicsRequest", 7)
        assert (found["status"], found["header"]["clientId"]) == ("ok", "admin")
        assert found["body"]["topics"][0]["numPartitions"] == 3

    def test_of_an_unknown_api(self):
        found = self.envelope(struct.pack(">hhih", 999, 1, 7, -1))
        assert (found["name"], found["status"], found["header"]["requestApiKey"]) == (None, "unknown_api", 999)

    def test_inside_an_envelope_is_not_opened(self):
        found = self.envelope(request(ENVELOPE, 0, {"requestData": self.FORWARDED}))
        assert (found["name"], found["status"]) == ("EnvelopeRequest", "ok")
        assert "embedded" not in found

    def test_whose_content_the_agent_removed(self):
        found = self.envelope(bytes(40), FrameFlags.REDACTED)
        assert (found["status"], found["name"], found["body"]) == ("redacted", None, None)

    def test_responses_do_not_name_their_api(self):
        (found,) = answer(ENVELOPE, 0, {"responseData": b"\0\0\0\7abc"}).embedded
        assert (found["path"], found["status"]) == ("responseData", "raw")
        assert answer(ENVELOPE, 0, {"responseData": None, "errorCode": 41}).embedded == []


def check(outer: Message, size: int) -> None:
    """Whatever is inside, the outer message is what it was, and the inner one shows what is wrong."""
    assert outer.status == "ok"
    assert outer.error_code is None
    json.dumps(outer.embedded)
    for found in outer.embedded:
        assert found["error_code"] != ErrorCode.INTERNAL if "error_code" in found else found["status"] in ("ok", "raw")
        assert 0 <= found.get("error_offset", 0) <= size
        assert nodes(found) <= 4 * size + 64


class TestHostile:
    RICH = consumer_protocol(
        SUBSCRIPTION, 3,
        {"topics": ["a", "topic-é"], "userData": b"\1\2\3", "generationId": 7, "rackId": "r",
         "ownedPartitions": [{"topic": "a", "partitions": [0, 1]}]},
    )  # fmt: skip

    @pytest.mark.parametrize("cut", range(1, len(RICH)))
    def test_cut_off_at_every_byte(self, cut):
        message = joining(self.RICH[:cut])
        check(message, cut)
        (found,) = message.embedded
        assert found["status"] in ("malformed", "partial")
        if cut >= 2:
            assert found["version"] == 3

    def test_every_byte_changed(self):
        statuses = set()
        for raw, decode in ((self.RICH, joining), (TestEnvelope.FORWARDED, self.wrapped)):
            for place in range(len(raw)):
                for change in (1, 0x7F, 0x80, 0xFF):
                    data = bytearray(raw)
                    data[place] = (data[place] + change) % 256
                    message = decode(bytes(data))
                    check(message, len(data))
                    statuses.add(message.embedded[0]["status"])
        assert {"ok", "partial", "malformed", "unknown_version", "unknown_api"} <= statuses

    @staticmethod
    def wrapped(data: bytes) -> Message:
        return CODEC.decode(request(ENVELOPE, 0, {"requestData": data}))

    @pytest.mark.parametrize("decode", [joining, wrapped])
    def test_any_bytes(self, decode):
        source = random.Random(1)
        for size in range(1, 400):
            check(decode(source.randbytes(size)), size)

    def test_a_length_of_two_billion(self):
        (found,) = joining(struct.pack(">hi", 0, 2**31 - 1)).embedded
        assert (found["status"], found["error_code"], found["error_offset"]) == ("malformed", "length_overrun", 2)

    def test_a_fault_of_ours_costs_only_the_inner_message(self, monkeypatch):
        monkeypatch.delitem(compile_programs().data, (SUBSCRIPTION, 3))
        monkeypatch.setattr("decoder.kafka.codec.embedded.BodyReader", None)
        message = joining(SUBSCRIBED)
        assert (message.status, message.embedded[0]["error_code"]) == ("ok", "internal")

    def test_of_a_frame_that_was_cut_off_what_is_whole_is_read(self):
        protocols = [{"name": name, "metadata": SUBSCRIBED} for name in ("range", "sticky")]
        raw = request(JOIN_GROUP, 5, {"protocolType": "consumer", "protocols": protocols})
        message = CODEC.decode(raw[:-3], flags=FrameFlags.TRUNCATED)
        assert message.status == "truncated"
        assert [each["path"] for each in message.embedded] == ["protocols/0/metadata"]


def test_recorded_assignments_name_their_topics():
    found = [
        (item.frame.direction, each)
        for item in decoded_messages(ordered_frames([str(CAPTURES / "stuck_commit.pcap")]))
        for each in item.message.embedded
    ]
    assert {each["status"] for _, each in found} == {"ok"}
    subscribed = {topic for _, each in found if each["name"] == SUBSCRIPTION for topic in each["body"]["topics"]}
    assigned = [
        (part["topic"], tuple(part["partitions"]))
        for direction, each in found
        if each["name"] == ASSIGNMENT and direction == "response"
        for part in each["body"]["assignedPartitions"]
    ]
    assert subscribed == {"payments"}
    assert sorted(assigned) == [("payments", (0, 1)), ("payments", (0, 1, 2, 3)), ("payments", (2, 3))]
