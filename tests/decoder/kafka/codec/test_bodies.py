from __future__ import annotations

import base64
import json
import math
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decoder import Codec, limits
from decoder.errors import ErrorCode
from decoder.kafka.codec.bodies import BodyReader, FieldSpan
from decoder.kafka.codec.program import compile_programs
from decoder.kafka.schema.table import FieldLayout, StructLayout, layout, messages
from decoder.reader import Cursor
from tests.decoder.kafka.encode import encode, find_layout, frame, request, response

CODEC = Codec()
CREATE_TOPICS, DESCRIBE_GROUPS, METADATA, DESCRIBE_QUORUM, JOIN_GROUP, FETCH, HEARTBEAT = 19, 15, 3, 55, 11, 1, 12
OFFSET_COMMIT = 8
CONSUMER_GROUP_HEARTBEAT = 68
SORTS = sorted(
    [("request", *sort) for sort in compile_programs().requests]
    + [("response", *sort) for sort in compile_programs().responses]
)  # fmt: skip

_INTEGERS = {
    "int8": (-128, 127), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1), "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1),
}  # fmt: skip


def values(struct_: StructLayout) -> st.SearchStrategy[dict]:
    """Any JSON of a struct: what Kafka's converters may write."""
    placed = {item.name: _value(item) for item in struct_.fields if item.tag is None}
    tagged = {
        item.name: _value(item).filter(lambda value, item=item: value != json.loads(item.default))
        for item in struct_.fields
        if item.tag is not None
    }
    return st.fixed_dictionaries(placed, optional=tagged)


def _value(item: FieldLayout) -> st.SearchStrategy:
    one = _element(item)
    many = st.lists(one, max_size=2) if item.array else one
    return st.none() | many if item.nullable else many


def _element(item: FieldLayout) -> st.SearchStrategy:
    if item.struct is not None:
        return values(item.struct)
    if item.type in _INTEGERS:
        return st.integers(*_INTEGERS[item.type])
    others = {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "string": st.text(max_size=20),
        "uuid": st.binary(min_size=16, max_size=16).map(lambda raw: base64.urlsafe_b64encode(raw).decode()[:22]),
        "bytes": st.binary(max_size=20).map(lambda raw: base64.b64encode(raw).decode()),
        "records": st.just(""),
    }
    return others[item.type]


def as_read(value):
    """Records are shown by their size."""
    if isinstance(value, list):
        return [as_read(part) for part in value]
    if not isinstance(value, dict):
        return value
    read = {}
    for name, part in value.items():
        if name in ("records", "unalignedRecords") and part is not None:
            read |= {f"{name}SizeInBytes": 0, "recordBatches": []}
        else:
            read[name] = as_read(part)
    return read


@given(st.data())
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_decoding_is_the_inverse_of_encoding(data):
    kind, key, version = data.draw(st.sampled_from(SORTS))
    body = data.draw(values(find_layout(kind, key, version)[0]))
    message = CODEC.decode(frame(kind, key, version, body), direction=kind, api_key=key, api_version=version)
    assert (message.status, message.error_detail) == ("ok", None)
    assert message.body == as_read(body)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.5, 1.5), (math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")],
)
def test_what_is_no_finite_number_is_a_text_as_kafkas_converters_write_it(value, shown):
    operation = {"key": "producer_byte_rate", "value": value, "remove": False}
    raw = request(49, 0, {"entries": [{"entity": [], "ops": [operation]}], "validateOnly": False})
    assert CODEC.decode(raw).body["entries"][0]["ops"][0]["value"] == shown


class TestNull:
    def test_a_nullable_struct_at_its_place(self):
        # KIP-848: no assignment in the response to a heartbeat that changes nothing
        for assignment in (None, {"topicPartitions": [{"topicId": "A" * 22, "partitions": [0, 1]}]}):
            raw = response(CONSUMER_GROUP_HEARTBEAT, 0, {"assignment": assignment})
            message = CODEC.decode(raw, direction="response", api_key=CONSUMER_GROUP_HEARTBEAT, api_version=0)
            assert message.status == "ok"
            assert message.body["assignment"] == assignment

    @pytest.mark.parametrize("classic", [None, {"sessionTimeoutMs": 9, "supportedProtocols": []}])
    def test_a_nullable_struct_in_the_tagged_section_has_another_mark(self, classic):
        name = "ConsumerGroupMemberMetadataValue"  # the only one, a record of __consumer_offsets
        definition = next(m.definition for m in messages() if m.name == name)
        raw = encode(layout(definition, 0), {"classicMemberMetadata": classic})
        body: dict = {}
        BodyReader(compile_programs(), Cursor(raw)).read(compile_programs().data[name, 0].start, body)
        assert body["classicMemberMetadata"] == classic

    def test_null_where_it_is_not_allowed(self):
        raw = struct.pack(">hhih", HEARTBEAT, 0, 7, -1) + struct.pack(">h", -1)
        message = CODEC.decode(raw)
        assert (message.status, message.error_code, message.error_offset) == (
            "malformed", ErrorCode.UNEXPECTED_NULL, 10,
        )  # fmt: skip

    def test_a_length_below_null(self):
        raw = struct.pack(">hhih", HEARTBEAT, 0, 7, -1) + struct.pack(">h", -2)
        assert CODEC.decode(raw).error_code == ErrorCode.NEGATIVE_LENGTH


class TestTaggedFields:
    HEADER = struct.pack(">hhih", CREATE_TOPICS, 5, 7, -1)
    EMPTY = bytes([1]) + struct.pack(">ib", 30_000, 0)  # no topics, timeout, validateOnly

    def test_unknown_ones_are_kept_raw_in_header_and_body(self):
        raw = self.HEADER + bytes([1, 5, 2, 0xAA, 0xBB]) + self.EMPTY + bytes([2, 6, 0, 7, 1, 0xCC])
        message = CODEC.decode(raw)
        assert message.status == "ok"
        assert message.header["unknownTaggedFields"] == {"5": "qrs="}
        assert message.body["unknownTaggedFields"] == {"6": "", "7": "zA=="}

    @pytest.mark.parametrize("tags", [bytes([2, 6, 0, 6, 0]), bytes([2, 7, 0, 6, 0])])
    def test_they_must_ascend(self, tags):
        message = CODEC.decode(self.HEADER + b"\0" + self.EMPTY + tags)
        assert (message.status, message.error_code) == ("partial", ErrorCode.TAG_ORDER)
        assert message.error_offset == len(self.HEADER) + 1 + len(self.EMPTY) + 3

    def test_a_known_one_must_fill_its_size(self):
        # Fetch v12: clusterId has tag 0
        raw = request(FETCH, 12, {"clusterId": "abc"})
        size_at = raw.index(b"\x04abc") - 1
        longer = raw[:size_at] + bytes([5]) + raw[size_at + 1 :] + b"\0"
        message = CODEC.decode(longer)
        assert (message.status, message.error_code) == ("partial", ErrorCode.TAG_SIZE)
        assert message.body["clusterId"] == "abc"
        shorter = raw[:size_at] + bytes([3]) + raw[size_at + 1 :]
        assert CODEC.decode(shorter).error_code == ErrorCode.LENGTH_OVERRUN

    def test_a_default_is_left_out_as_kafka_does(self):
        written = request(FETCH, 12, {"clusterId": None})
        assert len(written) > len(request(FETCH, 12, {}))
        assert CODEC.decode(written).body == CODEC.decode(request(FETCH, 12, {})).body


class TestErrorsKeepWhatWasRead:
    def test_up_to_the_field(self):
        raw = request(METADATA, 4, {"topics": [{"name": "orders"}, {"name": "refunds"}]})
        message = CODEC.decode(raw[:-6])
        assert (message.status, message.error_code) == ("partial", ErrorCode.LENGTH_OVERRUN)
        assert message.body == {"topics": [{"name": "orders"}, {}]}
        assert raw[message.error_offset :].startswith(b"\0\7refund")

    def test_text_that_is_not_utf8(self):
        raw = request(HEARTBEAT, 0, {"groupId": "café", "memberId": "m"})
        bad = raw.replace("é".encode(), b"\xc3\x28")
        message = CODEC.decode(bad)
        assert (message.status, message.body["groupId"], message.body["memberId"]) == ("ok", "caf\ufffd(", "m")
        message = CODEC.decode(bad, strict=True)
        assert (message.status, message.error_code) == ("malformed", ErrorCode.INVALID_UTF8)
        assert bad[message.error_offset] == 0xC3

    def test_what_follows_text_that_is_not_utf8(self):
        partitions = [{"partitionIndex": n, "committedOffset": 42, "committedMetadata": "@@@@"} for n in range(2)]
        raw = request(OFFSET_COMMIT, 7, {"groupId": "g", "topics": [{"name": "t", "partitions": partitions}]})
        message = CODEC.decode(raw.replace(b"@@@@", b"\xff\xfe\x80\0", 1))
        assert message.status == "ok"
        found = [partition["committedMetadata"] for partition in message.body["topics"][0]["partitions"]]
        assert found == ["\ufffd\ufffd\ufffd\0", "@@@@"]

    def test_a_client_id_that_is_not_utf8(self):
        raw = request(HEARTBEAT, 0, {"groupId": "g"}, client_id="z?hler").replace(b"z?hler", "zähler".encode("latin-1"))
        for strict in (False, True):
            message = CODEC.decode(raw, strict=strict)
            assert (message.status, message.client_id, message.body["groupId"]) == ("ok", "z\ufffdhler", "g")

    def test_error_detail_never_quotes_the_content(self):
        bad = request(HEARTBEAT, 0, {"groupId": "s3cret-é"}).replace("é".encode(), b"\xff\xff")
        assert "s3cret" not in CODEC.decode(bad, strict=True).error_detail


class TestLimits:
    def test_values_of_nested_arrays_are_counted_over_the_whole_frame(self, monkeypatch):
        monkeypatch.setattr(limits, "MAX_VALUES_PER_FRAME", 20)
        groups = [{"groupId": str(n), "members": [{}, {}, {}]} for n in range(6)]
        raw = response(DESCRIBE_GROUPS, 0, {"groups": groups})
        message = CODEC.decode(raw, direction="response", api_key=DESCRIBE_GROUPS, api_version=0)
        assert (message.status, message.error_code) == ("partial", ErrorCode.TOO_MANY_VALUES)
        assert [len(group["members"]) for group in message.body["groups"] if "members" in group] == [3, 3, 3, 3]

    def test_tagged_fields_count_as_values(self, monkeypatch):
        monkeypatch.setattr(limits, "MAX_VALUES_PER_FRAME", 5)
        tags = bytes([6]) + b"".join(bytes([tag, 0]) for tag in range(10, 16))
        raw = TestTaggedFields.HEADER + tags + TestTaggedFields.EMPTY + b"\0"
        assert CODEC.decode(raw).error_code == ErrorCode.TOO_MANY_VALUES

    def test_depth(self, monkeypatch):
        monkeypatch.setattr(limits, "MAX_DEPTH", 1)
        raw = response(DESCRIBE_GROUPS, 0, {"groups": [{"members": [{}]}]})
        message = CODEC.decode(raw, direction="response", api_key=DESCRIBE_GROUPS, api_version=0)
        assert (message.status, message.error_code) == ("partial", ErrorCode.TOO_DEEP)


class TestTrace:
    def test_values_come_in_the_order_of_their_ends(self):
        spans: list[FieldSpan] = []
        raw = request(JOIN_GROUP, 5, {"groupId": "g", "protocols": [{"name": "range", "metadata": b"\1\2"}]})
        CODEC.decode(raw, trace=spans.append)
        assert [span.end for span in spans] == sorted(span.end for span in spans)
        name = next(span for span in spans if span.path == ("protocols", 0, "name"))
        assert (name.type, name.value, raw[name.content_start : name.end]) == ("string", "range", b"range")
        metadata = next(span for span in spans if span.path == ("protocols", 0, "metadata"))
        assert raw[metadata.start : metadata.end] == b"\0\0\0\2\1\2"

    def test_a_length_that_overruns_is_the_last_thing_it_sees(self):
        spans: list[FieldSpan] = []
        raw = struct.pack(">hhih", HEARTBEAT, 0, 7, -1) + struct.pack(">h", 9) + b"abc"
        CODEC.decode(raw, trace=spans.append)
        assert (spans[-1].type, spans[-1].path, spans[-1].value) == ("string length", ("groupId",), 9)
