"""No credential lands, under no policy, whatever is around it or is missing of it."""

from __future__ import annotations

import base64
import struct
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from orjson import dumps

from decoder import FrameFlags
from decoder.kafka.apis import KafkaError
from decoder.kafka.schema.table import api_versions
from decoder.model import PayloadPolicy
from decoder.protocols import protocol_of
from decoder.redact import redact
from tests.decoder.kafka.encode import frame, request, response
from tests.decoder.kafka.landed import decode, landed
from tests.decoder.kafka.redaction.frames import (
    CANARY,
    CREDENTIALS,
    FIELD_HASH,
    METADATA,
    SASL,
    credential,
    is_clean,
)


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


STATED: dict[str, tuple[int, dict[str, object]]] = {
    "SaslHandshake": (17, {"errorCode": 33, "mechanisms": ["PLAIN"]}),
    "SaslAuthenticate": (36, {"errorCode": 58, "errorMessage": "no", "authBytes": CANARY}),
    "CreateDelegationToken": (38, {"errorCode": 61, "hmac": CANARY}),
    "RenewDelegationToken": (39, {"errorCode": 62}),
    "ExpireDelegationToken": (40, {"errorCode": 63}),
    "DescribeDelegationToken": (41, {"errorCode": 64, "tokens": [{"tokenId": "t", "hmac": CANARY}]}),
    "AlterUserScramCredentials": (51, {"results": [{"user": "u", "errorCode": 91}, {"user": "v", "errorCode": 0}]}),
}
"""Responses to apis with credentials: the error code is no secret."""


@pytest.mark.parametrize("policy", get_args(PayloadPolicy))
@pytest.mark.parametrize("name", STATED)
def test_error_codes_stay_in_every_version(name, policy):
    key, body = STATED[name]
    first, last = api_versions()[key]
    for version in range(first, last + 1):
        dirty = landed(frame("response", key, version, body), "response", key, version, policy=policy)
        cleaned = redact(dirty, FIELD_HASH)
        assert is_clean(cleaned)
        (code,) = [one["errorCode"] for one in (body, *body.get("results", [])) if one.get("errorCode")]
        assert protocol_of("kafka").response_errors(dumps(decode(cleaned).body).decode()) == [
            (code, KafkaError(code).name)
        ]
