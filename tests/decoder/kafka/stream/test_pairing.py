from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from decoder.kafka.stream.pairing import MAX_OUTSTANDING, KafkaPairer
from decoder.model import FrameFlags, RawFrame
from tests.pipeline.capture.wire import prefixed, produce, request, response

SASL_TOKEN = FrameFlags.SASL_TOKEN


def raw(data: bytes, *, after_gap: bool = False) -> RawFrame:
    return RawFrame(data[4:], len(data) - 4, 0, 0, after_gap)


def header_and_tag_produce(acks: int, transactional_id: bytes | None) -> bytes:
    """Produce v9 with a tagged field in its header."""
    name = b"\x00" if transactional_id is None else bytes([len(transactional_id) + 1]) + transactional_id
    tags = b"\x01\x07\x03abc"
    body = tags + name + struct.pack(">hi", acks, 1000) + b"\x01\x00"
    return prefixed(struct.pack(">hhih", 0, 9, 5, 4) + b"demo" + body)


def test_pairs_in_order_and_stamps_the_api_on_both_halves():
    pairer = KafkaPairer()
    first, second = pairer.request(raw(request(1, key=3, version=12))), pairer.request(raw(request(2)))
    one, two = pairer.response(raw(response(1))), pairer.response(raw(response(2)))
    assert (first.exchange_ordinal, second.exchange_ordinal) == (one.exchange_ordinal, two.exchange_ordinal) == (0, 1)
    assert (one.api_key, one.api_version, one.correlation_id, one.flags) == (3, 12, 1, 0)
    assert pairer.unanswered() == []


@pytest.mark.parametrize("ids", [(-5, -4), (2**31 - 1, -(2**31)), (0, 0), (7, 7)])
def test_any_correlation_id_is_an_id(ids):
    pairer = KafkaPairer()
    for i in ids:
        pairer.request(raw(request(i)))
    keys = [pairer.response(raw(response(i))) for i in ids]
    assert [(k.exchange_ordinal, k.correlation_id, k.flags) for k in keys] == [(0, ids[0], 0), (1, ids[1], 0)]


@pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 13])
def test_produce_without_acks_expects_no_response(version):
    pairer = KafkaPairer()
    assert pairer.request(raw(produce(1, acks=0, version=version))).flags == FrameFlags.NO_RESPONSE_EXPECTED
    assert pairer.request(raw(produce(2, acks=-1, version=version))).flags == 0
    assert pairer.response(raw(response(2))).exchange_ordinal == 1
    assert pairer.unanswered() == []


@pytest.mark.parametrize("transactional_id", [None, b"", b"orders-tx"])
@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acks_stands_behind_header_tags_and_transactional_id(transactional_id, acks):
    flags = KafkaPairer().request(raw(header_and_tag_produce(acks, transactional_id))).flags
    assert bool(flags & FrameFlags.NO_RESPONSE_EXPECTED) == (acks == 0)


def test_a_missing_response_leaves_its_request_unanswered():
    pairer = KafkaPairer()
    for i in (1, 2, 3):
        pairer.request(raw(request(i)))
    key = pairer.response(raw(response(2)))
    assert (key.exchange_ordinal, key.flags) == (1, FrameFlags.CORRELATION_MISMATCH)
    assert pairer.response(raw(response(3))).flags == 0
    assert pairer.unanswered() == [0]
    assert pairer.response(raw(response(1))).exchange_ordinal == 0  # late, but its id is its own


def test_a_response_to_nothing_is_an_orphan_with_an_exchange_of_its_own():
    pairer = KafkaPairer()
    first = pairer.response(raw(response(9)))
    assert (first.flags, first.api_key, first.correlation_id) == (FrameFlags.ORPHAN_RESPONSE, None, 9)
    request_key = pairer.request(raw(request(10)))
    second = pairer.response(raw(response(99)))
    assert second.flags == FrameFlags.ORPHAN_RESPONSE | FrameFlags.CORRELATION_MISMATCH
    assert len({first.exchange_ordinal, request_key.exchange_ordinal, second.exchange_ordinal}) == 3
    assert pairer.unanswered() == [request_key.exchange_ordinal]


def test_old_brokers_answer_find_coordinator_with_id_0():
    pairer = KafkaPairer()
    pairer.request(raw(request(42, key=10, version=0)))
    key = pairer.response(raw(response(0)))
    assert (key.exchange_ordinal, key.api_key, key.flags) == (0, 10, 0)


def test_tokens_follow_sasl_handshake_v0_until_a_header_comes():
    pairer = KafkaPairer()
    pairer.request(raw(request(1, key=17, version=0, body=struct.pack(">h", 5) + b"PLAIN")))
    pairer.response(raw(response(1)))
    token = pairer.request(raw(prefixed(b"\x00alice\x00secret")))
    answer = pairer.response(raw(prefixed(b"")))
    assert token.flags == answer.flags == FrameFlags.SASL_TOKEN
    assert token.exchange_ordinal == answer.exchange_ordinal
    assert (token.api_key, token.correlation_id, answer.correlation_id) == (None, None, None)
    after = pairer.request(raw(request(2, key=3, version=9)))
    assert (after.api_key, after.flags) == (3, 0)
    assert pairer.response(raw(response(2))).api_key == 3


@pytest.mark.parametrize(
    "token", [b"\x00a\x00b", b"n,,n=alice,r=fyko", b"\x60\x82\x02\x30\x06\x09\x2a\x86\x48", b"\x00\x00\x00", b""]
)
def test_no_token_is_taken_for_a_header(token):
    pairer = KafkaPairer()
    pairer.request(raw(request(1, key=17, version=0, body=struct.pack(">h", 5) + b"PLAIN")))
    assert pairer.request(raw(prefixed(token))).flags == FrameFlags.SASL_TOKEN


class TestOddClientIds:
    """Kafka takes any bytes for a client id; a token has any bytes there, too."""

    ODD = "zähler".encode("latin-1")

    def test_requests_are_no_tokens_if_their_body_shows_it(self):
        pairer = KafkaPairer(lambda frame, *_: len(frame) == len(request(1, client_id=self.ODD)) - 4)
        keys = [pairer.request(raw(request(i, client_id=self.ODD, body=bytes(i)))) for i in range(3)]
        assert [(key.correlation_id, key.flags) for key in keys] == [(0, 0), (1, 0), (2, 0)]
        assert pairer.request(raw(request(3, client_id=b"\xff", body=b"?"), after_gap=True)).flags == SASL_TOKEN
        cut = raw(request(4, client_id=self.ODD, body=bytes(99)), after_gap=True)
        assert pairer.request(replace(cut, data=cut.data[:-1])).flags == 0

    @pytest.mark.parametrize("reads", [None, lambda *_: None, lambda *_: False])
    def test_without_it_they_are(self, reads):
        assert KafkaPairer(reads).request(raw(request(1, client_id=self.ODD))).flags == SASL_TOKEN

    def test_requests_after_a_handshake_with_tokens(self):
        pairer = KafkaPairer(lambda frame, *_: frame[1] == 18)
        pairer.request(raw(request(1, client_id=self.ODD)))
        pairer.request(raw(request(2, key=17, client_id=self.ODD, body=b"\0\5PLAIN")))
        assert pairer.request(raw(prefixed(b"\0user\0secret"))).flags == SASL_TOKEN
        assert pairer.request(raw(request(3, key=3, client_id=self.ODD))).flags == 0


def test_the_last_token_of_gssapi_is_not_answered():
    pairer = KafkaPairer()
    pairer.request(raw(request(1, key=17, version=0, body=struct.pack(">h", 6) + b"GSSAPI")))
    pairer.response(raw(response(1)))
    for asked, answered in ((b"\x60\x82\x02\x4a", b"\x60\x6a"), (b"", b"\x05\x04\x05\xff")):
        pairer.request(raw(prefixed(asked)))
        assert pairer.response(raw(prefixed(answered))).flags == FrameFlags.SASL_TOKEN
    pairer.request(raw(prefixed(b"\x05\x04\x04\xff")))
    first = pairer.request(raw(request(3, key=3, version=1)))
    answer = pairer.response(raw(response(3)))
    assert (answer.exchange_ordinal, answer.api_key, answer.flags) == (first.exchange_ordinal, 3, 0)
    assert pairer.unanswered() == []
    pairer.request(raw(request(4)))
    assert pairer.in_good_order() is not None


def test_tokens_whose_handshake_was_lost_go_on_until_a_header_comes():
    pairer = KafkaPairer()
    pairer.request(raw(request(1)))
    pairer.response(raw(response(1)))
    first = pairer.request(raw(prefixed(b"n,,n=alice,r=nonce"), after_gap=True))
    second = pairer.request(raw(prefixed(b"c=biws,r=nonce,p=proof")))
    assert first.flags == second.flags == FrameFlags.SASL_TOKEN
    assert pairer.request(raw(request(2))).flags == 0
    assert pairer.request(raw(request(3, key=99))).flags == 0


def test_after_sasl_handshake_v1_tokens_have_headers():
    pairer = KafkaPairer()
    pairer.request(raw(request(1, key=17, version=1, body=struct.pack(">h", 5) + b"PLAIN")))
    pairer.response(raw(response(1)))
    assert pairer.request(raw(request(2, key=36, version=0, body=struct.pack(">i", 3) + b"abc"))).api_key == 36


def test_what_may_be_a_token_after_a_gap_is_treated_as_one():
    pairer = KafkaPairer()
    pairer.request(raw(request(1)))
    assert pairer.request(raw(prefixed(b"\x00alice\x00secret"), after_gap=True)).flags == FrameFlags.SASL_TOKEN


def test_a_request_cut_before_its_id_stays_without_one():
    key = KafkaPairer().request(RawFrame(b"\x00\x01", 500, 0, 0))
    assert (key.api_key, key.correlation_id) == (None, None)


@pytest.mark.slow
def test_outstanding_requests_are_bounded_and_those_forgotten_counted():
    pairer = KafkaPairer()
    for i in range(10 * MAX_OUTSTANDING):
        pairer.request(raw(request(i)))
    assert len(pairer.unanswered()) == MAX_OUTSTANDING
    assert pairer.forgotten == 9 * MAX_OUTSTANDING
    assert pairer.response(raw(response(0))).flags & FrameFlags.ORPHAN_RESPONSE


def test_requests_passed_over_are_bounded_too():
    pairer = KafkaPairer()
    for i in range(3 * MAX_OUTSTANDING):
        pairer.request(raw(request(2 * i)))
        pairer.request(raw(request(2 * i + 1)))
        assert pairer.response(raw(response(2 * i + 1))).exchange_ordinal == 2 * i + 1
    assert len(pairer.unanswered()) == MAX_OUTSTANDING
    assert pairer.forgotten == 2 * MAX_OUTSTANDING


def test_orphans_without_end_take_little_time_each():
    pairer = KafkaPairer()
    for i in range(MAX_OUTSTANDING):
        pairer.request(raw(request(i)))
    for i in range(MAX_OUTSTANDING):
        assert pairer.response(raw(response(-1 - i))).flags & FrameFlags.ORPHAN_RESPONSE


def test_awaits_the_ids_of_outstanding_requests_only():
    pairer = KafkaPairer()
    for i in (5, 5, 6):
        pairer.request(raw(request(i)))
    assert (pairer.awaits(5), pairer.awaits(6), pairer.awaits(7)) == (True, True, False)
    pairer.response(raw(response(5)))
    assert pairer.awaits(5)
    pairer.response(raw(response(5)))
    assert not pairer.awaits(5)


class TestAfterLoss:
    def test_a_response_cut_before_its_id_answers_nobody(self):
        pairer = KafkaPairer()
        pairer.request(raw(request(1)))
        pairer.response(raw(response(1)))
        pairer.request(RawFrame(b"\x00\x01", 500, 0, 0))  # neither has this request one
        pairer.request(raw(request(3)))
        key = pairer.response(RawFrame(b"\x00\x00", 500, 0, 0))
        assert key.flags == FrameFlags.ORPHAN_RESPONSE | FrameFlags.CORRELATION_MISMATCH
        assert pairer.response(raw(response(3))).exchange_ordinal == 2

    def test_with_one_id_for_all_requests_what_is_uncertain_is_flagged(self):
        """Nothing shows which of the two lost its response."""
        pairer = KafkaPairer()
        pairer.request(raw(request(0)))
        pairer.request(raw(request(0)))
        pairer.lost("response")
        assert pairer.response(raw(response(0))).flags & FrameFlags.CORRELATION_MISMATCH

    def test_with_one_id_for_all_requests_a_lost_request_makes_uncertain(self):
        pairer = KafkaPairer()
        pairer.request(raw(request(0)))
        pairer.response(raw(response(0)))
        pairer.lost("request")
        pairer.request(raw(request(0), after_gap=True))
        assert pairer.response(raw(response(0))).flags & FrameFlags.CORRELATION_MISMATCH

    def test_ids_that_differ_stay_certain(self):
        pairer = KafkaPairer()
        for i in (1, 2, 3):
            pairer.request(raw(request(i)))
        pairer.lost("response")
        assert pairer.response(raw(response(2))).exchange_ordinal == 1
        key = pairer.response(raw(response(3)))
        assert (key.exchange_ordinal, key.flags) == (2, 0)

    def test_the_lost_answer_to_a_token_does_not_shift_those_behind_it(self):
        pairer = KafkaPairer()
        pairer.request(raw(request(1, key=17, version=0, body=struct.pack(">h", 5) + b"PLAIN")))
        pairer.response(raw(response(1)))
        pairer.request(raw(prefixed(b"\x00alice\x00secret")))
        pairer.request(raw(request(2, key=3, version=9)))
        pairer.lost("response")
        key = pairer.response(raw(response(2)))
        assert (key.exchange_ordinal, key.api_key, key.flags) == (2, 3, 0)

    def test_the_ids_between_two_requests_may_have_been_missed(self):
        pairer = KafkaPairer()
        pairer.request(raw(request(2**31 - 2)))
        assert not pairer.may_have_missed(2**31 - 1)
        pairer.lost("request")
        assert pairer.may_have_missed(2**31 - 1)
        pairer.request(raw(request(-(2**31) + 1), after_gap=True))
        missed = [i for i in (2**31 - 2, 2**31 - 1, -(2**31), -(2**31) + 1, 0) if pairer.may_have_missed(i)]
        assert missed == [2**31 - 1, -(2**31)]

    def test_a_produce_cut_before_its_acks_may_need_no_answer(self):
        pairer = KafkaPairer()
        data = produce(1, acks=0, version=3)[4:]
        pairer.request(RawFrame(data[:15], len(data), 0, 0))
        assert pairer.unanswered() == []
        assert pairer.response(raw(response(1))).exchange_ordinal == 0

    def test_a_client_id_that_was_cut_is_not_learned(self):
        pairer = KafkaPairer()
        data = request(1, client_id=b"demo-client")[4:]
        pairer.request(RawFrame(data[:14], len(data), 0, 0))
        assert pairer.uses_client_id(b"demo") is None
        pairer.request(raw(request(2, client_id=b"demo-client")))
        assert (pairer.uses_client_id(b"demo-client"), pairer.uses_client_id(b"demo")) == (True, False)
