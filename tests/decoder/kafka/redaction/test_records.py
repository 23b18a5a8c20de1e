"""What stays of record batches under each policy: whole, damaged, or in a frame that does not decode."""

from __future__ import annotations

import struct
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decoder import Frame, FrameFlags, limits
from decoder.redact import redact
from tests.decoder.kafka import batches
from tests.decoder.kafka.batches import batch, control, damaged, message, wrapper
from tests.decoder.kafka.encode import find_layout, frame, request, response
from tests.decoder.kafka.landed import decode, landed
from tests.decoder.kafka.redaction.frames import (
    CANARY,
    FETCH,
    FIELD_HASH,
    NULLS,
    PRODUCE,
    SHARE_FETCH,
    V0,
    V1,
    V2,
    V2_GZIP,
    V2_NAMED,
    WRAPPER,
    is_clean,
    with_records,
)

RECORDS = {
    "v2": V2,
    "v2 compressed": V2_GZIP,
    "v1": V1,
    "v0": V0,
    "null key": NULLS,
    "null value": message(CANARY, None),
    "v1 wrapper": WRAPPER,
    "v0 wrapper": wrapper([V0], magic=0),
    "several": V2 + V2_GZIP + V1 + WRAPPER + V2,
    "cut off": V2 + V2_GZIP[:70],
}
WRAPPED = {"v1 wrapper", "v0 wrapper", "several"}


class TestRecords:
    @pytest.mark.parametrize("kind", ["request", "response"])
    @pytest.mark.parametrize("name", RECORDS)
    def test_lengths_removes_keys_values_and_headers_and_keeps_all_facts(self, name, kind):
        dirty = with_records(RECORDS[name], kind)
        cleaned = redact(dirty)
        assert is_clean(cleaned)
        assert b"\x1f\x8b" not in cleaned.frame  # nothing compressed is left either
        measured = FrameFlags.SETS_MEASURED if WRAPPED & {name} else 0
        assert cleaned.flags == FrameFlags.PAYLOAD_REMOVED | FrameFlags.CRC_CHECKED | measured
        before, after = decode(dirty), decode(cleaned)
        assert after == before
        assert after.status == "ok"
        assert all(isinstance(batch.get("recordsCount"), int) for batch in after.record_batches)

    @pytest.mark.parametrize("name", RECORDS)
    def test_full_keeps_the_bytes_and_stamps_the_verdict(self, name):
        dirty = with_records(RECORDS[name], policy="full")
        cleaned = redact(dirty)
        assert cleaned.frame == dirty.frame
        assert cleaned.flags == FrameFlags.CRC_CHECKED
        assert decode(cleaned) == decode(dirty)

    @pytest.mark.parametrize("policy", ["lengths", "full"])
    @pytest.mark.parametrize("good", [V2, V1, V0])
    def test_a_wrong_checksum_is_found_before_anything_is_removed(self, good, policy):
        dirty = with_records(damaged(good), policy=policy)
        cleaned = redact(dirty)
        assert cleaned.flags & FrameFlags.CRC_CHECKED
        assert cleaned.flags & FrameFlags.CRC_MISMATCH
        (before,), (after,) = decode(dirty).record_batches, decode(cleaned).record_batches
        if policy == "lengths" and good is V2:  # nothing vouches for the numbers that the checksum covers
            kept = (
                "status",
                "baseOffset",
                "batchLength",
                "sizeInBytes",
                "partitionLeaderEpoch",
                "magic",
                "crc",
                "crcValid",
            )
            assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
            assert (after["producerId"], after["recordsCount"], after["baseTimestamp"]) == (0, 0, 0)
        else:
            assert after == before

    @pytest.mark.parametrize("kind", [0, 1])
    def test_control_batches_stay(self, kind):
        marker = control(kind, coordinator_epoch=29)
        only = redact(with_records(marker, "response"))
        assert only.frame == with_records(marker, "response").frame
        assert only.flags == FrameFlags.CRC_CHECKED
        mixed = redact(with_records(V2 + marker, "response"))
        assert is_clean(mixed)
        assert [b.get("controlType") for b in decode(mixed).record_batches] == [None, "COMMIT" if kind else "ABORT"]
        assert [b["crcValid"] for b in decode(mixed).record_batches] == [True, True]

    def test_an_empty_batch_has_nothing_to_remove(self):
        empty = with_records(batch([], last_delta=9), "response")
        assert redact(empty).frame == empty.frame
        assert redact(empty).flags == FrameFlags.CRC_CHECKED

    def test_no_records_at_all(self):
        for records in (None, b""):
            frame_ = with_records(records)
            assert redact(frame_) is frame_

    @pytest.mark.parametrize("name", RECORDS)
    def test_redacting_again_changes_nothing(self, name):
        once = redact(with_records(damaged(RECORDS[name])))
        assert redact(once) == once

    def test_of_share_fetch(self):
        body = {"responses": [{"topicId": "A" * 22, "partitions": [{"partitionIndex": 1, "records": V2}]}]}
        dirty = landed(response(SHARE_FETCH, 1, body), "response", SHARE_FETCH, 1)
        assert is_clean(redact(dirty))
        assert decode(redact(dirty)).record_batches == decode(dirty).record_batches

    @pytest.mark.parametrize("magic", [3, -1, 2, 1, 0])
    def test_what_is_no_batch_is_removed_whole(self, magic):
        junk = CANARY[:16] + struct.pack(">b", magic) + CANARY
        junk = junk[:8] + struct.pack(">i", -5) + junk[12:]
        dirty = with_records(V2 + junk)
        cleaned = redact(dirty)
        assert is_clean(cleaned)
        assert decode(cleaned).record_batches == decode(dirty).record_batches
        assert decode(cleaned).record_batches[1]["status"] == "corrupt"

    def test_bytes_too_few_for_a_batch_header_are_removed(self):
        for size in range(1, 17):
            assert is_clean(redact(with_records(V2 + CANARY[:size])))

    def test_batches_beyond_the_limit_are_removed_too(self, monkeypatch):
        monkeypatch.setattr(limits, "MAX_BATCHES_PER_FIELD", 2)
        cleaned = redact(with_records(V1 * 5))
        assert is_clean(cleaned)
        assert [b["status"] for b in decode(cleaned).record_batches] == ["ok", "ok", "skipped"]

    def test_a_size_that_lies_does_not_make_a_header_of_a_value(self):
        value = CANARY[:11] + b"\0" + CANARY[12:16] + b"\0" + CANARY * 9  # reads as a v0 message of some size
        lying = bytearray(message(b"", value, magic=0))
        struct.pack_into(">i", lying, 8, 14)
        cleaned = redact(with_records(bytes(lying)))
        assert is_clean(cleaned)
        assert cleaned.flags & FrameFlags.CRC_MISMATCH

    def test_a_control_bit_does_not_save_a_batch_that_fails_its_checksum(self):
        lying = bytearray(V2)
        lying[22] |= batches.CONTROL
        assert is_clean(redact(with_records(bytes(lying), "response")))

    def test_an_old_message_whose_lengths_contradict_its_size(self):
        for key_size in (2**31 - 1, -2, 1000, 0):
            lying = bytearray(V1)
            struct.pack_into(">i", lying, 26, key_size)
            assert is_clean(redact(with_records(bytes(lying))))


class TestRecordsThatDoNotDecode:
    BODY: ClassVar = {
        "topicData": [{"name": "orders", "partitionData": [{"index": n, "records": V2} for n in range(2)]}]
    }

    def test_of_a_frame_that_the_capture_cut_off_everything_from_there_on_is_removed(self):
        whole = request(PRODUCE, 9, self.BODY)
        for cut in range(len(whole)):
            dirty = landed(whole[:cut], "request", PRODUCE, 9, flags=int(FrameFlags.TRUNCATED))
            cleaned = redact(dirty)
            assert is_clean(cleaned), cut
            assert decode(cleaned).record_batches == decode(dirty).record_batches
            assert decode(cleaned).status == "truncated"

    def test_of_a_whole_frame_only_the_header_is_kept(self):
        """One wrong length, and the value of a record is read as the name of a topic."""
        whole = request(PRODUCE, 9, self.BODY)
        swallowed = whole.replace(b"\x07orders", b"\x60orders")
        for bad in (swallowed, whole + CANARY, *(whole[:cut] for cut in range(18, len(whole)))):
            cleaned = redact(landed(bad, "request", PRODUCE, 9))
            assert is_clean(cleaned)
            assert not any(cleaned.frame[16:])
            message = decode(cleaned)
            assert (message.status, message.error_code, message.body) == ("malformed", "body_removed", {})
            assert (message.header, message.api_name) == (decode(landed(whole)).header, "Produce")

    def test_where_the_capture_ends_stays_to_be_seen(self):
        overrun = landed(with_records(V2).frame[:-10], flags=int(FrameFlags.TRUNCATED))
        before, after = decode(overrun), decode(redact(overrun))
        assert (after.status, after.error_code, after.error_offset, after.error_detail) == (
            before.status, before.error_code, before.error_offset, before.error_detail,
        )  # fmt: skip

    def test_unknown_versions_keep_their_header_only(self):
        cleaned = redact(landed(struct.pack(">hhih", PRODUCE, 99, 7, 6) + b"client" + CANARY))
        assert is_clean(cleaned)
        assert decode(cleaned).status == "unknown_version"

    def test_full_keeps_even_these(self):
        whole = landed(with_records(V2).frame + CANARY, policy="full")
        assert redact(whole).frame == whole.frame


def _sorts_with_records() -> list[tuple[str, int, int]]:
    sorts = [("request", PRODUCE, version) for version in range(14)]
    sorts += [("response", FETCH, version) for version in range(19)]
    return [*sorts, ("response", SHARE_FETCH, 1)]


def _records_frame(kind: str, key: int, version: int, records: bytes) -> Frame:
    topics, partitions, index = {
        PRODUCE: ("topicData", "partitionData", "index"),
        FETCH: ("responses", "partitions", "partitionIndex"),
        SHARE_FETCH: ("responses", "partitions", "partitionIndex"),
    }[key]
    assert find_layout(kind, key, version)
    body = {topics: [{partitions: [{index: n, "records": records} for n in range(2)]}]}
    return landed(frame(kind, key, version, body), kind, key, version)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["lengths", "hash", "none"])
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    sort=st.sampled_from(_sorts_with_records()),
    parts=st.lists(st.sampled_from([V2_NAMED, V1, V0, NULLS, WRAPPER, V2_GZIP]), min_size=1, max_size=3),
    damage=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    cut=st.none() | st.integers(0, 2_000),
)
def test_no_payload_is_left_whatever_happens_to_the_records(policy, sort, parts, damage, cut):
    """Sizes, attributes, lengths, any byte but the format changed, the frame cut off anywhere."""
    records = bytearray()
    for part in parts:
        hurt = bytearray(part)
        for place, value in damage:
            if place % len(part) != 16:
                hurt[place % len(part)] = value
        records += hurt
    whole = _records_frame(*sort, bytes(records))
    dirty = landed(whole.frame[:cut], *sort, policy=policy)
    assert is_clean(redact(dirty, FIELD_HASH))
