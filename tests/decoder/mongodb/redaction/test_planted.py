"""No byte of a planted secret is stored, under no policy that forbids it, whatever is around it."""

from __future__ import annotations

import pytest

from decoder.model import FrameFlags
from decoder.mongodb.codec.messages import open_message
from tests.canaries import seen_in
from tests.decoder.mongodb.build import (
    COMPRESSORS,
    compressed,
    legacy,
)
from tests.decoder.mongodb.kernel.asked import Asked, compare
from tests.decoder.mongodb.redaction.planted import (
    CREDENTIALS,
    HIDING,
    PAYLOAD,
    POLICIES,
    TRACES,
    decode,
    landed,
    shape,
    variants,
)


@pytest.mark.parametrize("how", ["", *COMPRESSORS])
@pytest.mark.parametrize("policy", HIDING)
@pytest.mark.parametrize("name", PAYLOAD)
def test_payload_is_not_stored(name, policy, how):
    direction, plain = PAYLOAD[name]
    data = variants(plain)[how]
    frame = landed(data, direction, policy)
    assert seen_in(frame.frame, TRACES) == []
    assert seen_in(repr(decode(frame)).encode(), TRACES) == []
    assert frame.size == len(data)
    assert frame.flags & FrameFlags.PAYLOAD_REMOVED
    assert not frame.flags & FrameFlags.BODY_REMOVED
    message_found = decode(frame)
    assert message_found.status == "ok", message_found
    assert message_found.header.get("compressor") == (how or None)
    inside = open_message(frame.frame, frame.flags).data
    assert len(inside) == len(plain)
    if policy != "none":
        assert shape(inside) == shape(plain)
    if not how:
        assert len(frame.frame) == len(data)


@pytest.mark.parametrize("how", ["", *COMPRESSORS])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", CREDENTIALS)
def test_credentials_are_stored_under_no_policy(name, policy, how):
    direction, plain, flags = CREDENTIALS[name]
    frame = landed(variants(plain)[how], direction, policy, flags)
    assert seen_in(frame.frame, TRACES) == []
    found = decode(frame)
    assert seen_in(repr(found).encode(), TRACES) == []
    removed = FrameFlags.REDACTED | FrameFlags.PAYLOAD_REMOVED
    assert frame.flags & removed
    assert found.body


@pytest.mark.parametrize("name", ["saslStart", "createUser", "SASLSTART"])
def test_a_sensitive_command_keeps_its_name(name):
    frame = landed(CREDENTIALS[name][1], "request", "full")
    found = decode(frame)
    assert (found.status, found.error_code, found.api_name) == ("redacted", "credentials_redacted", name)
    assert found.body["sections"][0]["document"]["$db"] == "admin"


def test_the_secrets_are_there_before():
    """Else nothing here would prove anything."""
    for name, (_, data) in PAYLOAD.items():
        assert seen_in(data, TRACES), name
    for name, (_, data, _) in CREDENTIALS.items():
        assert seen_in(data, TRACES), name


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", range(0x7F, 0x86))
def test_what_a_peer_sends_is_not_taken_for_what_the_agent_stored(number, policy):
    """Ids from 128 on are the agent's. Zeros behind one could read as a message: OP_KILL_CURSORS without cursors."""
    for plain in (PAYLOAD["insert"][1], legacy()["OP_KILL_CURSORS"]):
        data = bytearray(compressed(plain, "noop"))
        data[24] = number
        frame = landed(bytes(data), "request", policy)
        assert seen_in(frame.frame, TRACES) == []
        found = decode(frame)
        assert (found.status, found.error_code, found.error_offset) == ("malformed", "unknown_codec", 24)
        assert found.header.get("compressor") is None
        assert compare([Asked(frame.frame, "request", frame.flags)]) == [False]
