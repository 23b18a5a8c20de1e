"""What is stored of a message that does not decode, was cut off, or has bytes of which nobody knows what they are."""

from __future__ import annotations

import struct

import bson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.errors import DecodeError
from decoder.model import Direction, FrameFlags
from decoder.mongodb.codec.messages import open_message
from decoder.mongodb.stream.peek import peek_request
from tests.canaries import seen_in
from tests.decoder.mongodb.build import (
    COMPRESSORS,
    body_section,
    command,
    compressed,
    cstring,
    element,
    message,
    raw,
    sections,
    sequence,
    text,
)
from tests.decoder.mongodb.redaction.planted import (
    CREDENTIALS,
    EVERYTHING,
    HIDING,
    PAYLOAD,
    POLICIES,
    SECRET,
    TEXT,
    TRACES,
    decode,
    landed,
)


class TestWhatDoesNotDecode:
    @pytest.mark.parametrize("policy", HIDING)
    @pytest.mark.parametrize(
        "data",
        [
            message(2014, SECRET),
            message(2013, bytes(4) + SECRET),
            message(2013, struct.pack("<I", 4) + body_section(EVERYTHING)),
            sections(body_section({"ping": 1}), b"\1" + struct.pack("<i", 500) + SECRET),
            sections(body_section({"ping": 1}), b"\5" + SECRET),
            sections(b"\0" + bson.encode({"find": "x", "filter": {"a": TEXT}})[:-1] + b"\1"),
            message(2012, struct.pack("<iiB", 2013, 40, 9) + SECRET),
            message(2012, struct.pack("<iiB", 2012, 40, 0) + SECRET),
            message(2012, struct.pack("<iiB", 2013, 40, 2) + SECRET),
            message(2002, bytes(4) + SECRET),
            SECRET[:15],
            command({"find": "c"}) + SECRET,
        ],
    )
    def test_is_not_stored(self, data, policy):
        data = struct.pack("<i", len(data)) + data[4:] if len(data) > 16 else data
        frame = landed(data, "request", policy)
        assert seen_in(frame.frame, TRACES) == []
        assert seen_in(repr(decode(frame)).encode(), TRACES) == []
        assert len(frame.frame) == len(data)
        assert frame.flags & FrameFlags.PAYLOAD_REMOVED

    @pytest.mark.parametrize("policy", POLICIES)
    def test_nor_if_it_may_be_a_credential(self, policy):
        """Cut off anywhere behind the command's name; before it nobody knows."""
        for _, data, _ in (CREDENTIALS["saslStart"], CREDENTIALS["hello"], CREDENTIALS["saslStart by OP_COMMAND"]):
            for length in range(len(data)):
                frame = landed(data[:length], "request", policy, FrameFlags.TRUNCATED)
                assert seen_in(frame.frame, TRACES) == []

    @pytest.mark.parametrize("policy", HIDING)
    def test_a_message_that_was_cut_off_keeps_its_whole_sections(self, policy):
        _, data = PAYLOAD["insert"]
        frame = landed(data[:-40], "request", policy, FrameFlags.TRUNCATED)
        found = decode(frame)
        assert (found.status, found.api_name) == ("truncated", "insert")
        assert seen_in(frame.frame, TRACES) == []


UNFRAMED: dict[str, tuple[Direction, bytes]] = {
    "ids of cursors that are none": ("request", message(2007, bytes(4) + struct.pack("<i", 1) + SECRET)),
    "a batch that continues": ("request", message(2005, bytes(4) + cstring("shop.orders") + SECRET[:12] + b"\0")),
    "a query without a document": ("request", message(2004, bytes(4) + cstring("shop.orders") + SECRET[:8] + bytes(5))),
    "a section behind a document that is none": (
        "request",
        sections(body_section(raw(b"\x08no\0\2")), sequence(TEXT), sequence("documents", {"text": TEXT})),
    ),
    "a key that is no text": ("request", command(raw(element(0x10, bytes(4), b"a" + b"\x80" * 3 + SECRET)))),
    "a name that swallows what follows": (
        "request",
        command(raw(element(2, text(b"orders\0\2text\0" + text(SECRET)[:-1]), b"find"))),
    ),
}  # fmt: skip
"""Where nobody knows which bytes are a number or a name."""


@pytest.mark.parametrize("flags", [FrameFlags(0), FrameFlags.TRUNCATED])
@pytest.mark.parametrize("policy", HIDING)
@pytest.mark.parametrize("name", UNFRAMED)
def test_numbers_and_names_stay_only_where_they_can_be_such(name, policy, flags):
    """Also where more is declared missing than is."""
    direction, data = UNFRAMED[name]
    assert SECRET[:8] in data
    frame = landed(data, direction, policy, flags)
    assert SECRET[:8] not in frame.frame
    assert len(frame.frame) == len(data)
    assert frame.flags & FrameFlags.PAYLOAD_REMOVED


def test_an_old_message_that_was_cut_off_keeps_its_collection():
    data = message(2004, bytes(4) + cstring("shop.orders") + bytes(8) + bson.encode({"text": TEXT}))
    frame = landed(data[:60], "request", "lengths", FrameFlags.TRUNCATED)
    assert b"shop.orders" in frame.frame
    assert SECRET[:8] not in frame.frame


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=1500)
@given(
    st.sampled_from([*PAYLOAD.values(), *((d, m) for d, m, _ in CREDENTIALS.values())]),
    st.randoms(use_true_random=False),
)
def test_whatever_is_damaged_redaction_gives_a_frame(sample, source):
    """A flipped byte may turn a value into a key, which stays; but nothing raises, and nothing grows."""
    direction, plain = sample
    data = bytearray(source.choice([plain, *(compressed(plain, name) for name in COMPRESSORS)]))
    for _ in range(source.choice((1, 2, 8))):
        data[source.randrange(len(data))] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
    for policy in POLICIES:
        frame = landed(bytes(data), direction, policy)
        assert decode(frame).error_code != "internal"
        if open_message(frame.frame).compression is None:
            assert len(frame.frame) == len(data)


def test_what_is_peeked_does_not_raise():
    for data in [data for _, data in PAYLOAD.values()]:
        for length in range(0, len(data), 7):
            peek_request(data[:length])
    with pytest.raises(DecodeError):
        open_message(b"")
