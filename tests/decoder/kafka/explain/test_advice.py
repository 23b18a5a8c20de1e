"""The advice on a message that does not decode. Each sample is built byte by byte."""

from __future__ import annotations

import struct
from typing import ClassVar

import pytest

from decoder import Codec
from decoder.explain.frame import explain
from decoder.kafka.codec.bodies import TAGGED_SECTION, FieldSpan
from decoder.kafka.explain.advice import advise
from decoder.kafka.explain.guess import guess_response
from decoder.kafka.explain.prefix import split_length_prefix
from decoder.kafka.explain.repair import find_repair, path_text
from tests.decoder.kafka.encode import request, response

CODEC = Codec()
METADATA, FETCH, HEARTBEAT = 3, 1, 12


def metadata(name_length: bytes, *, name: bytes = b"orders", client: bytes = b"app") -> bytes:
    """A Metadata v12 request for one topic."""
    return b"".join(
        [
            struct.pack(">hhi", METADATA, 12, 42),  # api key, version, correlation id
            struct.pack(">h", len(client)) + client,  # client id: an int16 length, in flexible versions too
            b"\0",  # no tagged fields in the header
            b"\2",  # one topic: a compact length is one larger
            bytes(16),  # no topic id
            name_length + name,
            b"\0",  # no tagged fields in the topic
            b"\1\0",  # allowAutoTopicCreation, includeTopicAuthorizedOperations
            b"\0",  # no tagged fields
        ]
    )


def advice(frame: bytes, declared: int | None = None) -> list[str]:
    explanation = explain(frame)
    return advise(explanation, frame, "request", None, None, declared=declared)


class TestLengthPrefix:
    def test_28_where_37_bytes_follow(self):
        frame = metadata(b"\3", name=b"t1", client=b"me")
        assert len(frame) == 37
        split = split_length_prefix(struct.pack(">i", 28) + frame)
        assert (split.frame, split.declared, split.rest) == (frame, 28, 0)
        assert split.remark == (
            "the length prefix (00 00 00 1c) says 28 bytes, but 37 follow. The message needs all 37, its prefix must "
            "be 00 00 00 25: a reader that believes 28 takes the last 9 for the next"
        )
        assert CODEC.decode(split.frame).body["topics"][0]["name"] == "t1"

    def test_more_than_follow(self):
        frame = metadata(b"\7")
        assert split_length_prefix(struct.pack(">i", 99) + frame).remark == (
            f"the length prefix (00 00 00 63) says 99 bytes, but {len(frame)} follow. The message needs all "
            f"{len(frame)}, its prefix must be 00 00 00 2a: a reader that believes 99 waits for 57 more"
        )

    def test_of_a_paste_that_is_cut_off(self):
        frame = metadata(b"\7")
        remark = split_length_prefix(struct.pack(">i", len(frame)) + frame[:-5]).remark
        assert remark.endswith("but 37 follow: 5 bytes are missing from what was pasted, or the prefix is wrong")

    def test_of_two_messages(self):
        frame = metadata(b"\7")
        prefixed = struct.pack(">i", len(frame)) + frame
        split = split_length_prefix(prefixed * 2)
        assert (split.frame, split.rest) == (frame, len(prefixed))
        assert split.remark == "46 bytes follow the message that the length prefix announces: the next one begins there"

    def test_that_agrees_or_is_not_there(self):
        frame = metadata(b"\7")
        split = split_length_prefix(struct.pack(">i", len(frame)) + frame)
        assert (split.frame, split.declared, split.remark) == (frame, len(frame), None)
        for data in (frame, b"\0\0\0\3", b""):
            split = split_length_prefix(data)
            assert (split.frame, split.declared, split.remark) == (data, None, None)

    def test_of_a_response(self):
        frame = response(METADATA, 12, {"clusterId": "abc"})
        split = split_length_prefix(struct.pack(">i", 9) + frame, "response", METADATA, 12)
        assert split.frame == frame
        assert "says 9 bytes" in split.remark

    def test_together_with_a_wrong_length_inside(self):
        frame = metadata(b"\x0d")
        assert advice(frame, declared=28)[-1] == (
            "The message is then 42 bytes long: its length prefix must be 00 00 00 2a, not 28."
        )
        assert "length prefix" not in " ".join(advice(frame, declared=42))


class TestLengths:
    def test_a_compact_length_beyond_the_end(self):
        assert advice(metadata(b"\xc8\x07")) == [
            "The length of topics[0].name (c8 07 at byte 31) says 967 bytes, written one larger as compact lengths "
            "are; 10 bytes follow it.",
            "With 6 instead of 967 as the length of topics[0].name (07 instead of c8 07 at byte 31) the message "
            "decodes to its last byte, and topics[0].name is 'orders'.",
        ]

    def test_a_compact_length_that_is_too_long_by_some(self):
        lines = advice(metadata(b"\x0d"))
        assert lines[0].startswith("The length of topics[0].name (0d at byte 31) says 12 bytes")
        assert lines[0].endswith("; 10 bytes follow it.")
        assert lines[1].startswith("With 6 instead of 12 as the length of topics[0].name (07 instead of 0d at byte 31)")

    @pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9])
    def test_one_that_fits_but_is_wrong_is_found_behind_it(self, size):
        lines = advice(metadata(bytes([size + 1])))
        assert lines[-1].startswith(
            f"With 6 instead of {size} as the length of topics[0].name (07 instead of 0{size + 1:x}"
        )

    def test_a_compact_length_without_the_one(self):
        """The usual mistake: N instead of N + 1."""
        assert "With 6 instead of 5 as the length of topics[0].name (07 instead of 06" in advice(metadata(b"\6"))[-1]

    def test_an_int16_where_a_compact_length_belongs(self):
        assert advice(metadata(b"\0\6")) == [
            "topics[0].name has its length as int16 (00 06 at byte 31: 6); Metadata v12 wants a compact length, 07: "
            "with that the message decodes to its last byte, and topics[0].name is 'orders'."
        ]

    def test_a_compact_length_where_an_int16_belongs(self):
        frame = struct.pack(">hhih", HEARTBEAT, 0, 7, -1) + b"\6group" + struct.pack(">ih", 1, 1) + b"m"
        assert advice(frame)[-1].startswith(
            "groupId has its length as unsigned varint (06 at byte 10: 5); Heartbeat v0 wants a fixed one, 00 05: "
        )

    def test_a_count_of_elements(self):
        frame = bytearray(request(METADATA, 1, {"topics": [{"name": "a"}, {"name": "b"}]}))
        frame[frame.index(b"\0\0\0\2") + 3] = 3
        assert (
            "With 2 elements instead of 3 as the length of topics (00 00 00 02 instead of 00 00 00 03"
            in (advice(bytes(frame))[-1])
        )

    def test_null_where_it_is_not_allowed(self):
        raw = struct.pack(">hhih", HEARTBEAT, 0, 7, -1) + b"\xff\xffgroup" + struct.pack(">ih", 1, 1) + b"m"
        assert "With 5 instead of null as the length of groupId (00 05 instead of ff ff" in advice(raw)[-1]

    def test_a_large_frame_is_given_up_in_time(self):
        body = {"topics": [{"name": "t" * 200} for _ in range(2000)]}
        frame = request(METADATA, 12, body)
        assert find_repair(frame[:-1000] + b"\xff" * 500, "request", None, None) is None


class TestOtherErrors:
    def test_unknown_versions_and_apis(self):
        assert advice(struct.pack(">hhih", METADATA, 99, 7, -1))[0] == "Metadata has versions 0 to 13."
        assert advice(struct.pack(">hhih", 999, 0, 7, -1))[0] == "Api keys go from 0 to 94."

    def test_a_message_cut_off(self):
        frame = request(METADATA, 12, {"topics": [{"name": "orders"}, {"name": "payments"}]})
        assert advice(frame[:-9])

    def test_there_is_no_advice_on_a_message_that_decodes(self):
        assert advice(metadata(b"\7")) == []

    def test_a_response_taken_for_a_request(self):
        body = {"brokers": [{"nodeId": 1, "host": "b1", "port": 9092}], "topics": [{"name": "orders"}]}
        lines = advice(response(METADATA, 12, body))
        assert lines[-1] == (
            "As a response it would fit Metadata v12: if it is one, add --direction response --api-key 3 "
            "--api-version 12."
        )

    def test_a_response_whose_request_is_unknown(self):
        frame = response(METADATA, 12, {"topics": [{"name": "orders"}]})
        explanation = explain(frame, "response")
        (line,) = advise(explanation, frame, "response", None, None)
        assert line.startswith("By its bytes it may be of Metadata v12")

    def test_the_field_is_named(self):
        message = CODEC.decode(metadata(b"\xc8\x07"))
        assert message.error_path == "topics/0/name"
        assert path_text(message.error_path) == path_text(("topics", 0, "name")) == "topics[0].name"
        assert CODEC.decode(metadata(b"\7") + b"\0").error_path is None


class TestGuesses:
    def test_the_right_one_comes_first(self):
        partitions = [{"partitionIndex": 0, "highWatermark": 7}]
        body = {"responses": [{"topic": "orders", "partitions": partitions}]}
        samples = {
            METADATA: (9, {"brokers": [{"nodeId": 1, "host": "b1", "port": 9092}], "topics": [{"name": "orders"}]}),
            FETCH: (11, body),
            18: (3, {"apiKeys": [{"apiKey": 1, "minVersion": 4, "maxVersion": 18}]}),
            10: (4, {"coordinators": [{"key": "group", "nodeId": 1, "host": "b1", "port": 9092}]}),
        }
        for key, (version, content) in samples.items():
            best = guess_response(response(key, version, content))[0]
            assert (best.api_key, version in best.versions, best.doubts) == (key, True, 0)

    def test_nothing_fits_noise(self):
        assert guess_response(b"\xff" * 40) == []
        assert guess_response(b"") == []


class TestHabits:
    """Encoders that leave a byte out or add one, in each place of a kind."""

    CONFIGS: ClassVar = [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]
    BODY: ClassVar = {"resources": [{"resourceType": 2, "resourceName": "foo", "configs": CONFIGS}]}
    RAW = request(33, 2, BODY, client_id="cli")
    TAGS = "the message decodes to its last byte"

    def tags(self) -> list[int]:
        spans: list[FieldSpan] = []
        CODEC.decode(self.RAW, trace=spans.append)
        return [span.start for span in spans if span.type == TAGGED_SECTION]

    def without(self, places: list[int]) -> bytes:
        return bytes(byte for at, byte in enumerate(self.RAW) if at not in places)

    def test_a_tag_buffer_left_out(self):
        header, first, _, _, last = self.tags()
        for at, place in (
            (header, f"at the end of the request header (byte {header})"),
            (first, f"after resources[0].configs[0] (byte {first})"),
            (last, f"at the end of the message (byte {last})"),
        ):
            texts = advice(self.without([at]))
            assert any("tag buffer (one byte 00) is missing" in text and self.TAGS in text for text in texts), texts
            if at != last:  # zeros in a row: which of them is missing shows in nothing
                assert f"The empty tag buffer (one byte 00) is missing {place}: with it {self.TAGS}." in texts

    def test_the_only_element_lacks_it(self):
        raw = bytes.fromhex(
            "0021 0002 0000007b 0003666f6f 00 02 02 04666f6f 02 0b7365676d656e742e6d73 0531303030 00 00 00"
        )
        assert advice(raw) == [
            "The empty tag buffer (one byte 00) is missing after resources[0].configs[0] (byte 37): with it the "
            "message decodes to its last byte."
        ]

    def test_each_is_left_out(self):
        header, *body = self.tags()
        assert advice(self.without(body))[-1] == (
            f"The empty tag buffer (one byte 00) is missing after resources[0].configs[0] (byte {body[0]}) and at 3 "
            "other places: with it the message decodes to its last byte."
        )
        assert "request header" in advice(self.without([header, *body]))[-1]

    def test_a_byte_too_many(self):
        header, first, *_, last = self.tags()
        for at, place in ((header, "at the end of the request header"), (first, "after resources[0].configs[0]")):
            texts = advice(self.RAW[:at] + b"\0" + self.RAW[at:])
            assert f"One byte 00 too many is {place} (byte {at + 1}): without it {self.TAGS}." in texts
        assert "One byte 00 too many" in advice(self.RAW[:last] + b"\0" + self.RAW[last:])[0]

    def test_the_header_of_a_response(self):
        for version, change in ((12, lambda raw: raw[:4] + raw[5:]), (8, lambda raw: raw[:4] + b"\0" + raw[4:])):
            raw = change(response(METADATA, version, {"clusterId": "abc", "topics": [{"name": "orders"}]}))
            texts = advise(explain(raw, "response", METADATA, version), raw, "response", METADATA, version)
            assert any("at the end of the response header (byte 4)" in text for text in texts), texts

    @pytest.mark.parametrize(("written", "stated", "form"), [(1, 2, "fixed"), (2, 1, "compact")])
    def test_every_length_in_the_other_form(self, written, stated, form):
        raw = bytearray(request(33, written, self.BODY, client_id="cli"))
        raw[3] = stated
        text = advice(bytes(raw))[-1]
        assert text.startswith(f"The message writes its lengths in the {form} form")
        assert text.endswith(self.TAGS + ".")

    def test_bytes_too_many_where_no_length_is_written(self):
        raw = response(HEARTBEAT, 3, {"throttleTimeMs": 0, "errorCode": 0})
        raw = raw[:4] + b"\0" + raw[4:] + b"\0"
        assert advise(explain(raw, "response", HEARTBEAT, 3), raw, "response", HEARTBEAT, 3) == [
            "One byte 00 too many is at the end of the response header (byte 4) and at 1 other place: without it "
            "the message decodes to its last byte."
        ]

    def test_the_prefix_must_agree_then(self):
        raw = self.without([self.tags()[1]])
        assert advice(raw, declared=len(raw))[-1] == (
            f"The message is then {len(raw) + 1} bytes long: its length prefix must be "
            f"{(len(raw) + 1).to_bytes(4, 'big').hex(' ')}, not {len(raw)}."
        )


def test_a_version_far_from_all_releases_is_no_message():
    texts = advice(bytes.fromhex("00004600 08000700 00000900"))
    assert texts[0] == "Produce has versions 0 to 13."
    assert "17920 is far from any release" in texts[1]
    assert "far from any release" not in " ".join(advice(request(METADATA, 13, {})[:2] + b"\0\x1e" + b"\0" * 9))
