from __future__ import annotations

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decoder import Codec
from decoder.explain.explanation import Explanation, as_objects
from decoder.explain.frame import explain
from decoder.kafka.codec.bodies import TAGGED_SECTION, FieldSpan
from pipeline.capture.runs.one_capture import frames_of
from tests.decoder.explain.tiles import assert_tiles
from tests.decoder.kafka.batches import batch, control, damaged, message, record
from tests.decoder.kafka.codec.test_bodies import SORTS, values
from tests.decoder.kafka.encode import find_layout, frame, request, response
from tests.paths import CAPTURES

CODEC = Codec()
METADATA, FETCH, PRODUCE, API_VERSIONS, HEARTBEAT, CONSUMER_GROUP_HEARTBEAT = 3, 1, 0, 18, 12, 68
JOIN_GROUP, ENVELOPE = 11, 58


def line(explanation: Explanation, name: str):
    return next(line for line in explanation.lines if line.name == name)


def leaf(span: FieldSpan) -> range:
    """The bytes that a span itself explains: of arrays and structs only what is in front of their content."""
    is_container = span.type in ("array", "compact array", "struct") and span.value is not None
    return range(span.start, span.content_start if is_container else span.end)


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_byte_belongs_to_one_field(data):
    kind, key, version = data.draw(st.sampled_from(SORTS))
    body = data.draw(values(find_layout(kind, key, version)[0]))
    if find_layout(kind, key, version)[1]:
        body["unknownTaggedFields"] = data.draw(st.sampled_from([{}, {"4000": "AAEC"}]))
    raw = frame(kind, key, version, body)
    spans: list[FieldSpan] = []
    message = CODEC.decode(raw, direction=kind, api_key=key, api_version=version, trace=spans.append)
    explained = sorted(byte for span in spans for byte in leaf(span))
    assert explained == list(range(len(raw)))

    lines = explain(raw, kind, key, version, codec=CODEC).lines
    shown = {byte for shown in lines for byte in range(shown.start, shown.end)}
    empty_sections = {span.start for span in spans if span.type == TAGGED_SECTION and not span.value}
    assert set(range(len(raw))) - shown <= empty_sections
    broken_inside = [one for one in message.embedded if one.get("version") is not None and "error_code" in one]
    assert sum(shown.is_error for shown in lines) == len(broken_inside)


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_so_does_every_byte_up_to_the_error_of_a_broken_frame(data):
    kind, key, version = data.draw(st.sampled_from(SORTS))
    raw = bytearray(frame(kind, key, version, data.draw(values(find_layout(kind, key, version)[0]))))
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(4, len(raw) - 1) if len(raw) > 4 else st.just(0))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    explanation = explain(cut, kind, key, version, codec=CODEC)
    offset = explanation.message.error_offset
    is_whole = offset is None or explanation.message.status in ("ok", "redacted")
    assert_tiles(explanation.lines, len(cut) if is_whole else offset)


RECORDED = ["healthy.pcap", "version_negotiation.pcap", "incidents/share_groups.pcap", "incidents/streams_group.pcap",
            "mongodb/plain.pcap", "mongodb/old_opcodes.pcap", "old_format.pcap"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
def test_every_byte_of_recorded_frames_is_in_a_row(name):
    for index, sample in enumerate(frames_of(str(CAPTURES / name), payload_policy="full")):
        for size in {len(sample.frame), len(sample.frame) * (index % 7) // 7}:
            raw = sample.frame[:size]
            explanation = explain(
                raw, sample.direction, sample.api_key, sample.api_version, sample.flags, CODEC, protocol=sample.protocol
            )
            offset = explanation.message.error_offset
            is_whole = offset is None or explanation.message.status in ("ok", "redacted")
            assert_tiles(explanation.lines, len(raw) if is_whole else offset)
            if explanation.inside is not None and explanation.inside.message.status == "ok":
                assert_tiles(explanation.inside.lines, explanation.inside.size)


class TestLines:
    def test_a_request_reads_from_top_to_bottom(self):
        raw = request(METADATA, 1, {"topics": [{"name": "orders"}]}, client_id="billing")
        explanation = explain(raw, codec=CODEC)
        assert [(one.start, one.end, one.depth, one.name, one.type, one.value) for one in explanation.lines] == [
            (0, 2, 0, "requestApiKey", "int16", "3"),
            (2, 4, 0, "requestApiVersion", "int16", "1"),
            (4, 8, 0, "correlationId", "int32", "7"),
            (8, 17, 0, "clientId", "string", "'billing'"),
            (17, 29, 0, "topics", "array", "1 element"),
            (21, 29, 1, "[0] name", "string", "'orders'"),
        ]
        assert line(explanation, "correlationId").hex == "00 00 00 07"
        assert line(explanation, "clientId").hex == raw[8:17].hex(" ")
        assert explanation.message.status == "ok"

    def test_long_values_are_shortened(self):
        explanation = explain(request(METADATA, 1, {"topics": [{"name": "x" * 200}]}), codec=CODEC)
        name = line(explanation, "[0] name")
        assert len(name.value) == 60
        assert name.value.endswith("…")
        assert name.hex.endswith(" …")

    def test_null_and_nothing_differ(self):
        null = explain(request(METADATA, 1, {"topics": None}, client_id=None), codec=CODEC)
        assert (line(null, "clientId").value, line(null, "topics").value) == ("null", "null")
        empty = explain(request(METADATA, 1, {"topics": []}, client_id=""), codec=CODEC)
        assert (line(empty, "clientId").value, line(empty, "topics").value) == ("''", "0 elements")

    def test_a_null_struct(self):
        for assignment, expected in ((None, "null"), ({"topicPartitions": []}, "")):
            raw = response(CONSUMER_GROUP_HEARTBEAT, 0, {"assignment": assignment})
            explanation = explain(raw, "response", CONSUMER_GROUP_HEARTBEAT, 0, codec=CODEC)
            assert line(explanation, "assignment").value == expected

    def test_tagged_fields_show_tag_and_content(self):
        raw = request(FETCH, 12, {"clusterId": "abc", "unknownTaggedFields": {"9": "AQI="}})
        shown = [(one.name, one.type, one.value) for one in explain(raw, codec=CODEC).lines][-4:]
        assert shown == [
            ("tagged fields", "tagged fields", "2"),
            ("clusterId", "tag", "0"),
            ("clusterId", "compact string", "'abc'"),
            ("tag 9", "unknown tagged field", "'AQI='"),
        ]

    def test_controlled_shutdown_v0_too(self):
        explanation = explain(struct.pack(">hhii", 7, 0, 7, 1001), codec=CODEC)
        assert [one.name for one in explanation.lines] == [
            "requestApiKey", "requestApiVersion", "correlationId", "brokerId",
        ]  # fmt: skip

    def test_as_objects_for_json(self):
        (first, *_) = as_objects(explain(request(METADATA, 1, {"topics": []}), codec=CODEC))
        assert first == {
            "start": 0, "end": 2, "depth": 0, "name": "requestApiKey", "type": "int16", "value": "3", "hex": "00 03",
            "error": False,
        }  # fmt: skip


class TestBatches:
    def test_each_is_a_line_within_its_field(self):
        whole = batch([record(b"k", b"v")] * 3, base_offset=5, producer=(4711, 3, 0), attributes=0x10)
        old = message(b"k", b"v", offset=8)
        records = whole + control(1, base_offset=9) + old + damaged(whole) + whole[:70]
        body = {"responses": [{"topic": "t", "partitions": [{"partitionIndex": 0, "records": records}]}]}
        raw = response(FETCH, 12, body)
        explanation = explain(raw, "response", FETCH, 12, codec=CODEC)
        lines = [one for one in explanation.lines if one.name == "batch"]
        assert [one.type for one in lines] == ["magic 2", "magic 2", "magic 1", "magic 2", "magic 2"]
        size = len(whole)
        assert [one.value for one in lines] == [
            f"{size} bytes, offsets 5 to 7, none, producer 4711 epoch 3, transactional",
            f"{len(control(1))} bytes, offsets 9 to 9, COMMIT, producer 4711 epoch 3, transactional",
            f"{len(old)} bytes, offsets 8 to 8, none",
            f"{size} bytes, offsets 5 to 7, none, producer 4711 epoch 3, transactional, checksum does not match",
            f"{size} bytes, offsets 5 to 7, none, producer 4711 epoch 3, transactional, partial",
        ]
        field = next(one for one in explanation.lines if one.type == "compact records")
        assert field.value == f"{len(records)} bytes"
        assert field.depth < lines[0].depth
        assert lines[0].start > field.start
        assert (lines[-1].end, [one.start for one in lines[1:]]) == (field.end, [one.end for one in lines[:-1]])

    def test_no_batch_at_all(self):
        body = {"topicData": [{"name": "t", "partitionData": [{"index": 0, "records": b"\xff" * 30}]}]}
        explanation = explain(request(PRODUCE, 9, body), codec=CODEC)
        assert line(explanation, "batch").value == "30 bytes, corrupt"


class TestEmbedded:
    """Subtrees below bytes fields; tests/pipeline/commands shows them in a terminal."""

    def test_a_forwarded_request(self):
        inner = request(METADATA, 1, {"topics": [{"name": "orders"}]}, client_id="me")
        raw = request(ENVELOPE, 0, {"requestData": inner})
        explanation = explain(raw, codec=CODEC)
        at = raw.index(inner)
        heading = line(explanation, "MetadataRequest v1")
        assert (heading.start, heading.end, heading.value) == (at, at + len(inner), "ok")
        name = line(explanation, "[0] name")
        assert (raw[name.start : name.end], name.value) == (b"\0\6orders", "'orders'")
        assert heading.depth < name.depth

    def test_one_that_does_not_decode_marks_the_byte(self):
        raw = request(ENVELOPE, 0, {"requestData": struct.pack(">hhih", METADATA, 1, 7, -1) + struct.pack(">i", 99)})
        explanation = explain(raw, codec=CODEC)
        assert explanation.message.status == "ok"
        error = line(explanation, "length_overrun")
        assert error.is_error
        assert raw[error.start : error.start + 4] == struct.pack(">i", 99)
        assert error.value.startswith(f"byte {error.start}: array declares a length of 99")

    def test_other_protocol_types_are_not_decoded(self):
        protocols = [{"name": "compatible", "metadata": b"\0\1abc"}]
        raw = request(JOIN_GROUP, 0, {"protocolType": "connect", "protocols": protocols})
        assert line(explain(raw, codec=CODEC), "(not decoded)").value == "of protocol type 'connect'"


class TestErrors:
    def test_a_length_that_is_too_long(self):
        """A client wrote an int16 length where Metadata v12 has a compact one: everything behind it shifts."""
        raw = bytes.fromhex(
            "0003 000c 0000002a 0003 617070 00"  # Metadata v12, correlation id 42, client "app", no header tags
            "02 00000000000000000000000000000000 0006 6f7264657273 00"  # one topic, no id, "orders" the old way
            "01 00 00"
        )
        explanation = explain(raw, codec=CODEC)
        # 00 at byte 31 reads as a null name, 06 as six tagged fields, "o" as a tag, "r" as its size of 114
        assert (line(explanation, "[0] name").start, line(explanation, "[0] name").value) == (31, "null")
        error = explanation.lines[-1]
        assert (error.start, error.end, error.is_error) == (34, len(raw), True)
        assert (error.name, error.type) == ("length_overrun", "partial")
        assert error.value == "tagged field 111 declares a length of 114, 8 bytes are left"

    def test_a_length_that_overruns_the_frame_is_shown_with_its_value(self):
        raw = bytes.fromhex(
            "0003 000c 0000002a 0003 617070 00 02 00000000000000000000000000000000 c807 6f7264657273 00"
        )
        explanation = explain(raw, codec=CODEC)
        length, error = explanation.lines[-2:]
        assert (length.name, length.type, length.value) == ("[0] name", "compact string length", "967")
        assert (length.start, length.end) == (31, 33)
        assert (error.start, error.end, error.is_error) == (31, len(raw), True)
        assert (error.name, error.type) == ("length_overrun", "partial")
        assert error.value == "compact string declares a length of 967, 7 bytes are left"
        assert error.hex == raw[31:].hex(" ")

    def test_text_that_is_not_utf8_is_shown_as_kafka_reads_it(self):
        raw = request(HEARTBEAT, 0, {"groupId": "café"}).replace("é".encode(), b"\xff\xff")
        explanation = explain(raw, codec=CODEC)
        assert line(explanation, "groupId").value == "'caf��'"
        assert not any(one.is_error for one in explanation.lines)

    @pytest.mark.parametrize("cut", [3, 9, 12, 20])
    def test_a_frame_cut_off(self, cut):
        raw = request(METADATA, 1, {"topics": [{"name": "orders"}]}, client_id="billing")[:cut]
        explanation = explain(raw, codec=CODEC)
        error = explanation.lines[-1]
        assert error.is_error
        assert error.start == explanation.message.error_offset

    def test_trailing_bytes(self):
        raw = request(METADATA, 1, {"topics": []}) + b"\xaa\xbb"
        explanation = explain(raw, codec=CODEC)
        rest = explanation.lines[-1]
        assert (rest.name, rest.hex, rest.start, rest.end) == ("(trailing bytes)", "aa bb", len(raw) - 2, len(raw))
        assert not any(line.is_error for line in explanation.lines)

    def test_an_unknown_api(self):
        raw = struct.pack(">hhih", 999, 1, 7, -1) + b"\1\2\3"
        explanation = explain(raw, codec=CODEC)
        assert [one.name for one in explanation.lines][:4] == [
            "requestApiKey", "requestApiVersion", "correlationId", "clientId",
        ]  # fmt: skip
        assert explanation.lines[-1].name == "unknown_api"
