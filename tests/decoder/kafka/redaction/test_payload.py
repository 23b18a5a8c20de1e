"""What do the payload policies leave of record batches? ``lengths`` and ``full`` are tested in test_records, too."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decoder import Codec, Frame, FrameFlags
from decoder.field_hash import FieldHash
from decoder.kafka.extractors.exchanges import record_batch_rows
from decoder.kafka.extractors.offsets import offset_events
from decoder.kafka.kernel import bodies as kernel
from decoder.redact import redact
from tests.decoder.kafka.batches import CONTROL, batch, control, damaged, message, record, wrapper
from tests.decoder.kafka.compressed import CODECS
from tests.decoder.kafka.encode import request, response
from tests.decoder.kafka.kernel.asked import Asked, differences, read
from tests.decoder.kafka.landed import decode, landed
from tests.paths import ROOT

PRODUCE, FETCH = 0, 1
HASH = FieldHash(b"the key of this deployment")
OTHER_HASH = FieldHash(b"the key of that deployment")
DROPPED = FrameFlags.PAYLOAD_REMOVED | FrameFlags.PAYLOAD_DROPPED
HASHED = FrameFlags.PAYLOAD_REMOVED | FrameFlags.CRC_CHECKED

KEY, VALUE = b"customer-4711", b"a value that is longer than an HMAC, " * 2
V2 = batch([record(KEY, VALUE, n, [(b"trace", b"canary"), (b"none", None)]) for n in range(3)], base_offset=5)
V1, V0 = message(KEY, VALUE, offset=8), message(KEY, VALUE, magic=0, offset=9)


def produced(records: bytes | None, policy: str = "lengths", **options) -> Frame:
    body = {"topicData": [{"name": "orders", "partitionData": [{"index": 3, "records": records}]}]}
    return landed(request(PRODUCE, 9, body), policy=policy, **options)


def fetched(records: bytes, policy: str) -> Frame:
    body = {"responses": [{"topic": "orders", "partitions": [{"partitionIndex": 3, "records": records}]}]}
    return landed(response(FETCH, 12, body), "response", FETCH, 12, policy=policy)


def records_of(frame: Frame):
    found = Codec().records(
        frame.frame, direction=frame.direction, api_key=frame.api_key, api_version=frame.api_version,
        flags=frame.flags, payload=True,
    )  # fmt: skip
    return found.partitions[0]


OFFSET = (1 << 55).to_bytes(8, "big")
NO_TIMES = b"\xff" * 24
"""Of a v2 header both times and the producer id, each -1."""


@pytest.mark.parametrize(
    ("offset", "size", "stays"),
    [(OFFSET, len(V1) + 1000, True), (OFFSET, 0x796C3061, False), (b"8 bytes:", len(V1) + 1000, False)],
)
def test_the_header_of_a_batch_that_is_cut_off_stays_if_it_can_be_one(offset, size, stays):
    """Text that is where a batch should begin announces hundreds of megabytes, or holds no offset."""
    left = redact(produced(offset + struct.pack(">i", size) + V1[12:])).frame
    assert (offset in left) == stays
    assert KEY not in left


@pytest.mark.parametrize(
    ("before", "times", "count", "stays"),
    [
        (2, V2[27:51], 3, True),
        (2, NO_TIMES, 0, True),
        (2, V2[27:51], 4, False),
        (2, V2[27:51], -1, False),
        (2, V2[27:43] + b"customer", 3, False),
        (0x20202020, V2[27:51], 0x21212121, False),
    ],
)
def test_a_header_whose_numbers_cannot_be_is_none(before, times, count, stays):
    """Bytes that were lost inside a header move records to where its last numbers stand."""
    numbers = struct.pack(">i", before) + times + V2[51:57] + struct.pack(">i", count)
    left = redact(produced(V2[:23] + numbers + V2[61:-9])).frame
    assert (numbers in left) == stays
    assert (V2[:17] in left) == stays
    assert KEY not in left


@pytest.mark.parametrize("policy", ["lengths", "hash"])
@pytest.mark.parametrize("whole", [V2, V1, V0])
def test_no_offset_is_as_large_as_text(whole, policy):
    """The checksum of a batch does not cover its offset."""
    for offset, stays in ((OFFSET, True), (b"\xff" * 8, True), (b"8 bytes:", False)):
        left = redact(produced(offset + whole[8:], policy), HASH).frame
        assert (offset in left) == stays
        assert KEY not in left


@pytest.mark.parametrize(("flags", "stays"), [(0, True), (int(FrameFlags.AFTER_GAP), False)])
def test_after_a_loss_nothing_vouches_for_the_header_of_a_batch_that_is_cut_off(flags, stays):
    left = redact(produced(V2[:-9], flags=flags)).frame
    assert (V2[27:57] in left) == stays
    assert V2[:17][16:] in left


class TestNone:
    @pytest.mark.parametrize("make", [produced, fetched])
    def test_only_the_size_is_left(self, make):
        cleaned = redact(make(V2 + V1, "none"))
        assert cleaned.flags == DROPPED
        assert V2[:12] not in cleaned.frame
        assert bytes(len(V2 + V1)) in cleaned.frame
        message = decode(cleaned)
        summary = {"status": "removed", "magic": None, "sizeInBytes": len(V2 + V1)}
        assert message.status == "ok"
        assert message.record_batches == [{"topic": "orders", "topicId": None, "partition": 3, **summary}]
        topics = message.body.get("topicData") or message.body["responses"]
        partition = (topics[0].get("partitionData") or topics[0]["partitions"])[0]
        assert (partition["recordsSizeInBytes"], partition["recordBatches"]) == (len(V2 + V1), [summary])

    @pytest.mark.parametrize("records", [None, b""])
    def test_no_records_are_not_removed_ones(self, records):
        clean = produced(records, "none")
        assert redact(clean) is clean

    def test_what_else_the_frame_states_stays(self):
        before, after = decode(fetched(V2, "none")), decode(redact(fetched(V2, "none")))
        for decoded in (before, after):
            decoded.body["responses"][0]["partitions"][0].pop("recordBatches")
        assert (before.header, before.body) == (after.header, after.body)

    def test_the_kernel_leaves_it_to_the_plain_reader(self):
        cleaned = redact(produced(V2, "none"))
        frames = [Asked(data, "request", None, None, cleaned.flags) for data in (cleaned.frame, request(3, 1, {}))]
        found = read(frames)
        assert found.outcomes.tolist() == [kernel.GIVEN_BACK] * 2

    def test_nobody_takes_unknown_for_none(self):
        asked, answer = decode(redact(produced(V2, "none"))).body, decode(redact(fetched(V2, "none"))).body
        produce = {
            "responses": [{"name": "orders", "partitionResponses": [{"index": 3, "errorCode": 0, "baseOffset": 9}]}]
        }
        (event,) = offset_events(PRODUCE, 9, asked, produce)
        assert (event.offset, event.next_offset, event.records) == (9, None, None)
        (event,) = offset_events(FETCH, 12, {}, answer)
        assert (event.next_offset, event.records) == (None, None)
        assert record_batch_rows(PRODUCE, asked, produce) == record_batch_rows(FETCH, {}, answer) == []

    def test_reading_the_records_shows_why_there_are_none(self):
        partition = records_of(redact(produced(V2 + V1, "none")))
        assert partition.records == []
        assert [problem.error_code for problem in partition.problems] == ["payload_removed"]

    def test_redacting_again_changes_nothing(self):
        once = redact(produced(V2, "none"))
        assert redact(once) == once

    @pytest.mark.parametrize("records", [V2, V2 + V1, b"x" * 40])
    def test_a_frame_that_is_cut_off_keeps_nothing_of_them_either(self, records):
        whole = produced(records, "none").frame
        start = whole.index(records)
        for cut in range(start + 1, len(whole)):
            cleaned = redact(produced(None, "none") if cut < 8 else landed(whole[:cut], "request", PRODUCE, 9,
                             policy="none", flags=int(FrameFlags.TRUNCATED)))  # fmt: skip
            assert not any(cleaned.frame[start:])
            assert decode(cleaned).status == "truncated"


class TestHash:
    @pytest.mark.parametrize("make", [produced, fetched])
    def test_records_stay_readable_with_hashes_in_place_of_their_fields(self, make):
        dirty = make(V2, "hash")
        cleaned = redact(dirty, HASH)
        assert cleaned.flags == HASHED
        before, after = records_of(dirty), records_of(cleaned)
        assert after.problems == []
        assert after.records == [
            replace(r, key=HASH(r.key), value=HASH(r.value), header_values=(HASH(b"canary"), None))
            for r in before.records
        ]

    @pytest.mark.parametrize("records", [V1, V0, V1 + V0])
    def test_old_messages_too(self, records):
        dirty = produced(records, "hash")
        cleaned = redact(dirty, HASH)
        assert records_of(cleaned).problems == []
        assert records_of(cleaned).records == [
            replace(r, key=HASH(r.key), value=HASH(r.value)) for r in records_of(dirty).records
        ]

    @pytest.mark.parametrize("records", [V2, V1, V0, V2 + V1])
    def test_the_batch_headers_stay_but_for_the_checksum(self, records):
        dirty = produced(records, "hash")
        before, after = decode(dirty).record_batches, decode(redact(dirty, HASH)).record_batches
        assert all(batch["crcValid"] for batch in after)
        assert all(b.pop("crc") != a.pop("crc") for b, a in zip(before, after, strict=True))
        assert before == after

    @pytest.mark.parametrize("codec", CODECS)
    def test_compressed_records_are_hashed_as_a_whole(self, codec):
        number, compress = CODECS[codec]
        content = compress(b"".join(record(KEY, VALUE) for _ in range(9)))
        cleaned = redact(produced(batch([], attributes=number, compressed=content, count=9), "hash"), HASH)
        assert HASH(content) in cleaned.frame
        assert cleaned.flags == HASHED
        (summary,) = decode(cleaned).record_batches
        assert (summary["crcValid"], summary["crc"], summary["recordsCount"]) == (True, 0, 9)
        assert [problem.error_code for problem in records_of(cleaned).problems] == ["payload_removed"]

    @pytest.mark.parametrize("magic", [0, 1])
    def test_so_are_old_wrappers(self, magic):
        wrapped = wrapper([message(KEY, VALUE, magic=magic)] * 9, magic=magic)
        content = wrapped[-struct.unpack_from(">i", wrapped, 22 if magic == 0 else 30)[0] :]
        cleaned = redact(produced(wrapped, "hash"), HASH)
        assert HASH(content)[:-12] + struct.pack(">qi", 0, 9) in cleaned.frame
        assert cleaned.flags == HASHED | FrameFlags.SETS_MEASURED
        (summary,) = decode(cleaned).record_batches
        assert (summary["crc"], summary["recordsCount"]) == (0, 9)
        assert [problem.error_code for problem in records_of(cleaned).problems] == ["payload_removed"]

    def test_equal_fields_are_equal_in_every_frame_and_format(self):
        keys = {records_of(redact(make(records, "hash"), HASH)).records[0].key
                for make in (produced, fetched) for records in (V2, V1, V0)}  # fmt: skip
        assert keys == {HASH(KEY)}
        assert records_of(redact(produced(V2, "hash"), OTHER_HASH)).records[0].key not in keys

    @pytest.mark.parametrize(
        "bad", [damaged(V2), damaged(V1), damaged(V0), V2[:-1], V1[:-1], V2[:61], V2[:30], V1[:20]]
    )
    def test_what_does_not_fit_its_checksum_is_zeroed_with_the_checksum(self, bad):
        hashed = redact(produced(bad, "hash"), HASH)
        zeroed = redact(produced(bad, "lengths"))
        start = produced(bad).frame.index(bad)
        crc = start + (17 if bad[16] == 2 else 12)
        assert hashed.frame[crc : crc + 4] == bytes(len(hashed.frame[crc : crc + 4]))
        assert hashed.frame[:crc] == zeroed.frame[:crc]
        assert hashed.frame[crc + 4 :] == zeroed.frame[crc + 4 :]
        assert hashed.flags == zeroed.flags | FrameFlags.PAYLOAD_REMOVED

    @pytest.mark.parametrize("content", [b"no records", record(KEY, VALUE)[:-1], record(KEY, VALUE) + b"\0"])
    def test_what_has_a_good_checksum_but_is_no_record_is_zeroed(self, content):
        cleaned = redact(produced(batch([content], count=1), "hash"), HASH)
        assert cleaned.frame[cleaned.frame.index(b"orders") :].count(bytes(len(content))) >= 1
        assert HASH(content) not in cleaned.frame
        assert content not in cleaned.frame
        assert decode(cleaned).record_batches[0]["crc"] == 0
        assert [problem.error_code for problem in records_of(cleaned).problems] == ["payload_removed"]

    def test_control_batches_and_empty_ones_stay(self):
        clean = fetched(control(1) + batch([], last_delta=9), "hash")
        assert redact(clean, HASH).frame == clean.frame

    def test_redacting_again_changes_nothing(self):
        once = redact(produced(V2 + damaged(V1), "hash"), HASH)
        assert redact(once, HASH) == once

    def test_the_kernel_reads_it_as_the_plain_reader_does(self):
        frames = [
            Asked(cleaned.frame, "request", None, None, cleaned.flags)
            for records in (V2, V1, V0, damaged(V2), V2[:-1], V2 + V1)
            for cleaned in [redact(produced(records, "hash"), HASH)]
        ]
        found = read(frames)
        assert differences(frames, found) == []
        assert found.outcomes.tolist() == [kernel.DECODED] * len(frames)

    def test_it_needs_a_key(self):
        with pytest.raises(ValueError, match="needs a key"):
            redact(produced(V2, "hash"))


@pytest.mark.parametrize("policy", ["full", "hash"])
def test_the_example_in_the_documentation(policy):
    records = batch([record(b"alice", b"4711 EUR", 0, [(b"trace", b"af03")])])
    start = produced(records).frame.index(records)
    cleaned = redact(produced(records, policy), HASH).frame
    shown = (ROOT / "docs" / "privacy.md").read_text()
    assert f"| `{policy}` | `{cleaned[start + 61 : start + len(records)].hex(' ')}` |" in shown
    assert f'"sizeInBytes":{len(records)}' in shown


@pytest.mark.parametrize("policy", ["lengths", "hash"])
class TestControlBatches:
    @pytest.mark.parametrize(
        "records",
        [
            [record(KEY, VALUE)],
            [record(KEY, None)],
            [record(b"\0\0\0\2", VALUE)],
            [record(b"\0\0\0\2", b"v", 0, [(KEY, b"v")])],
            [record(b"\0\0\0\1", b"v" * 6), record(KEY, VALUE)],
            [KEY + VALUE],
        ],
    )
    def test_what_no_broker_writes_is_payload_too(self, policy, records):
        cleaned = redact(fetched(batch(records, attributes=CONTROL), policy), HASH)
        assert not any(part[at : at + 4] in cleaned.frame for part in (KEY, VALUE) for at in range(len(part) - 4))
        assert decode(cleaned).record_batches[0]["crcValid"]

    def test_the_kind_of_a_longer_marker_stays(self, policy):
        leader_change = batch([record(b"\0\0\0\2", bytes(60))], attributes=CONTROL)
        assert decode(redact(fetched(leader_change, policy), HASH)).record_batches[0]["controlType"] == "LEADER_CHANGE"


Fields = tuple[bytes | None, bytes | None, bytes | None]


def _records(fields: list[Fields], shape: str) -> bytes:
    if shape == "v2":
        return batch([record(key, value, n, [(b"h", header)]) for n, (key, value, header) in enumerate(fields)])
    return b"".join(message(key, value, magic=int(shape[1])) for key, value, _ in fields)


def _same_sizes(field: bytes | None) -> st.SearchStrategy:
    return st.none() if field is None else st.binary(min_size=len(field), max_size=len(field))


_field = st.none() | st.binary(max_size=40)
_two_payloads = st.lists(st.tuples(_field, _field, _field), min_size=1, max_size=4).flatmap(
    lambda fields: st.tuples(
        st.just(fields), st.tuples(*(st.tuples(*(_same_sizes(part) for part in parts)) for parts in fields))
    )
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(payloads=_two_payloads, shape=st.sampled_from(["v0", "v1", "v2"]), is_answer=st.booleans())
def test_under_lengths_nothing_but_the_checksum_depends_on_the_payload(payloads, shape, is_answer):
    make = fetched if is_answer else produced
    one, other = (_records(list(fields), shape) for fields in payloads)
    cleaned = []
    for records in (one, other):
        dirty = make(records, "lengths")
        start, end = dirty.frame.index(records), dirty.frame.index(records) + len(records)
        done = redact(dirty)
        data, at = bytearray(done.frame), start
        while at < end:  # the checksums of the batches
            crc = at + (17 if shape == "v2" else 12)
            data[crc : crc + 4] = bytes(4)
            at += 12 + struct.unpack_from(">i", data, at + 8)[0]
        cleaned.append((bytes(data), done.flags))
    assert cleaned[0] == cleaned[1]


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    payloads=st.integers(0, 200).flatmap(lambda size: st.tuples(*[st.binary(min_size=size, max_size=size)] * 2)),
    is_answer=st.booleans(),
    cut=st.none() | st.integers(0, 100),
)
def test_under_none_the_outcome_depends_on_the_size_alone(payloads, is_answer, cut):
    make = fetched if is_answer else produced
    one, other = (
        redact(replace(f, frame=f.frame[:-cut] if cut else f.frame)) for f in (make(p, "none") for p in payloads)
    )
    assert (one.frame, one.flags) == (other.frame, other.flags)
