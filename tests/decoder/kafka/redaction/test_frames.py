from __future__ import annotations

import base64
import struct
from typing import ClassVar, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decoder import Frame, FrameFlags, limits
from decoder.field_hash import FieldHash
from decoder.model import PayloadPolicy
from decoder.redact import redact
from tests.decoder.kafka import batches
from tests.decoder.kafka.batches import batch, control, damaged, message, record, wrapper
from tests.decoder.kafka.credentials import credentials
from tests.decoder.kafka.encode import find_layout, frame, request, response
from tests.decoder.kafka.landed import decode, landed

CANARY = b"tweety-0123456789abcdef"
FIELD_HASH = FieldHash(b"the key of this deployment")
PRODUCE, FETCH, METADATA, SASL, SHARE_FETCH, FETCH_SNAPSHOT = 0, 1, 3, 36, 78, 59

CREDENTIALS = credentials(CANARY)


def credential(name: str, **options) -> Frame:
    kind, key, version, body = CREDENTIALS[name]
    return landed(frame(kind, key, version, body), kind, key, version, **options)


def is_clean(cleaned: Frame) -> bool:
    """Not even a part of the canary is left, as it is or reversed by a lucky offset."""
    return not any(CANARY[i : i + 4] in cleaned.frame for i in range(len(CANARY) - 3))


def with_records(records: bytes, kind: str = "request", **options) -> Frame:
    if kind == "request":
        body = {"topicData": [{"name": "orders", "partitionData": [{"index": 3, "records": records}]}]}
        return landed(request(PRODUCE, 9, body), **options)
    body = {"responses": [{"topic": "orders", "partitions": [{"partitionIndex": 3, "records": records}]}]}
    return landed(response(FETCH, 12, body), "response", FETCH, 12, **options)


class TestCredentials:
    @pytest.mark.parametrize("name", CREDENTIALS)
    @pytest.mark.parametrize("policy", get_args(PayloadPolicy))
    def test_are_overwritten_under_every_policy(self, name, policy):
        dirty = credential(name, policy=policy)
        assert not is_clean(dirty)
        cleaned = redact(dirty, FIELD_HASH)
        assert is_clean(cleaned)
        assert cleaned.flags == FrameFlags.REDACTED
        assert len(cleaned.frame) == len(dirty.frame)

    def test_of_a_snapshot_not_even_the_batch_headers_are_left(self):
        body = decode(redact(credential("FetchSnapshot response"))).body
        partition = body["topics"][0]["partitions"][0]
        assert partition["recordBatches"] == [
            {"status": "removed", "magic": None, "sizeInBytes": partition["unalignedRecordsSizeInBytes"]}
        ]

    @pytest.mark.parametrize("name", CREDENTIALS)
    def test_the_rest_of_the_frame_still_decodes(self, name):
        dirty = credential(name)
        before, after = decode(dirty), decode(redact(dirty))
        assert before.status == "ok"
        assert after.status == "redacted"
        assert after.header == before.header
        assert _without_secrets(after.body) == _without_secrets(before.body)

    @pytest.mark.parametrize("name", CREDENTIALS)
    def test_redacting_again_changes_nothing(self, name):
        once = redact(credential(name))
        assert redact(once) == once

    @pytest.mark.parametrize("name", CREDENTIALS)
    def test_nothing_is_left_of_a_frame_that_is_cut_off_anywhere(self, name):
        whole = credential(name)
        for cut in range(len(whole.frame)):
            kind, key, version, _ = CREDENTIALS[name]
            assert is_clean(redact(landed(whole.frame[:cut], kind, key, version)))

    @pytest.mark.parametrize("name", CREDENTIALS)
    def test_nothing_of_the_body_is_left_if_bytes_trail(self, name):
        kind, key, version, _ = CREDENTIALS[name]
        cleaned = redact(landed(credential(name).frame + CANARY, kind, key, version))
        assert is_clean(cleaned)
        assert cleaned.flags == FrameFlags.REDACTED
        assert decode(cleaned).header == decode(credential(name)).header

    @pytest.mark.parametrize("name", CREDENTIALS)
    def test_nothing_of_the_body_is_left_of_an_unknown_version(self, name):
        kind, key, _, _ = CREDENTIALS[name]
        header = struct.pack(">hhih", key, 99, 7, 6) + b"client" if kind == "request" else struct.pack(">i", 7)
        cleaned = redact(landed(header + b"\0\0" + CANARY, kind, key, 99))
        assert cleaned.frame.rstrip(b"\0") == header.rstrip(b"\0")

    def test_text_that_is_not_utf8_leaves_no_piece(self):
        body = {"resources": [{"configs": [{"name": "x", "value": CANARY.decode() + "é" + CANARY.decode()}]}]}
        cleaned = redact(landed(request(33, 0, body).replace("é".encode(), b"\xff\xff")))
        assert is_clean(cleaned)

    def test_an_unknown_tag_beside_a_credential_may_be_one(self):
        body = {"authBytes": b"", "unknownTaggedFields": {"5": base64.b64encode(CANARY).decode()}}
        cleaned = redact(landed(request(SASL, 2, body)))
        assert is_clean(cleaned)
        assert cleaned.flags == FrameFlags.REDACTED

    def test_the_key_in_the_requests_own_header_decides(self):
        dirty = credential("SaslAuthenticate request")
        assert is_clean(redact(landed(dirty.frame, "request", METADATA, 9)))

    def test_an_empty_or_null_credential_needs_no_redaction(self):
        for body in ({"authBytes": b""}, {"resources": [{"configs": [{"name": "x", "value": None}]}]}):
            clean = landed(request(SASL if "authBytes" in body else 33, 0, body))
            assert redact(clean) is clean


class TestWhatCannotBeLookedInto:
    def test_a_raw_sasl_token_is_overwritten_whole(self):
        for direction in ("request", "response"):
            token = landed(b"\0" + CANARY, direction, None, None, flags=FrameFlags.SASL_TOKEN)
            cleaned = redact(token)
            assert cleaned.frame == bytes(len(CANARY) + 1)
            assert cleaned.flags == FrameFlags.SASL_TOKEN | FrameFlags.REDACTED
            assert decode(cleaned).status == "redacted"

    def test_an_orphan_response_keeps_its_correlation_id_only(self):
        orphan = landed(struct.pack(">i", 7) + CANARY, "response", None, None)
        cleaned = redact(orphan)
        assert cleaned.frame == struct.pack(">i", 7) + bytes(len(CANARY))
        assert decode(cleaned).status == "orphan_response"
        assert decode(cleaned).header == {"correlationId": 7}

    @pytest.mark.parametrize("policy", get_args(PayloadPolicy))
    def test_an_unknown_api_keeps_its_header_only(self, policy):
        header = struct.pack(">hhih", 999, 3, 7, 6) + b"client"
        cleaned = redact(landed(header + CANARY, policy=policy), FIELD_HASH)
        assert cleaned.frame == header + bytes(len(CANARY))
        assert cleaned.flags == FrameFlags.PAYLOAD_REMOVED
        assert decode(cleaned).client_id == "client"

    @pytest.mark.parametrize("flag", [FrameFlags.AFTER_GAP, FrameFlags.CORRELATION_MISMATCH])
    @pytest.mark.parametrize("policy", get_args(PayloadPolicy))
    def test_after_a_loss_a_response_may_be_anothers(self, flag, policy):
        """It was paired by its id alone, and ids may repeat."""
        for name in ("SaslAuthenticate response", "DescribeDelegationToken response", "DescribeConfigs response"):
            other = landed(credential(name).frame, "response", METADATA, 9, policy=policy, flags=int(flag))
            assert decode(other).status != "ok"
            assert is_clean(redact(other, FIELD_HASH))
        honest = landed(response(METADATA, 9, {"topics": [{"name": "orders"}]}), "response", METADATA, 9, flags=flag)
        assert redact(honest) is honest

    @pytest.mark.parametrize("size", range(4))
    def test_less_than_an_api_key_and_a_version(self, size):
        assert len(redact(landed(CANARY[:size], "request", None, None)).frame) == size


def _without_secrets(value):
    if isinstance(value, dict):
        return {name: _without_secrets(part) for name, part in value.items() if name not in _SECRET_NAMES}
    return [_without_secrets(part) for part in value] if isinstance(value, list) else value


_SECRET_NAMES = {
    "authBytes", "hmac", "salt", "saltedPassword", "value", "requestData", "requestPrincipal", "responseData",
    "recordBatches", "errorMessage", "statusDetail",
}  # fmt: skip

V2 = batch([record(CANARY, CANARY, 0, [(CANARY, CANARY)])] * 2, base_offset=5, producer=(4711, 3, 17))
V2_NAMED = batch([record(CANARY, CANARY, 0, [(b"trace", CANARY)])] * 2, base_offset=5)
"""The names of record headers are stored under the policy ``hash``."""
V2_GZIP = batch([record(CANARY, CANARY)] * 9, attributes=batches.GZIP)
V1 = message(CANARY, CANARY, offset=8)
V0 = message(CANARY, CANARY, magic=0, offset=9)
NULLS = message(None, CANARY)
WRAPPER = wrapper([V1, V1], offset=11)
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


@pytest.mark.parametrize("policy", get_args(PayloadPolicy))
class TestMetadataOfTheCluster:
    """SCRAM keys, delegation tokens and configs stand in its records."""

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


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(sorted(CREDENTIALS)),
    places=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3),
    inserted=st.tuples(st.integers(0, 10_000), st.binary(max_size=4)),
)
def test_no_credential_is_left_of_a_body_that_does_not_decode(name, places, inserted):
    kind, key, version, _ = CREDENTIALS[name]
    data = bytearray(credential(name).frame)
    body_at = 18 if kind == "request" else 5  # behind header and client id
    for place, value in places:
        data[body_at + place % (len(data) - body_at)] = value
    at = body_at + inserted[0] % (len(data) - body_at)
    data[at:at] = inserted[1]
    dirty = landed(bytes(data), kind, key, version)
    if decode(dirty).status != "ok":
        assert is_clean(redact(dirty))
