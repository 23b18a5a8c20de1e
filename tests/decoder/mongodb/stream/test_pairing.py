from __future__ import annotations

import json
import struct

import pytest
from bson import Int64

from decoder.model import FrameFlags, RawFrame
from decoder.mongodb.stream import pairing
from decoder.mongodb.stream.cursors import cursor_read_on, opened_cursor
from decoder.mongodb.stream.pairing import MongoPairer
from tests.decoder.mongodb.build import COMPRESSORS, command, compressed, legacy, message, reply
from tests.hostile.mongodb import MongodbMutator

EXHAUST, MORE = 1 << 16, 2
GET_MORE = {"getMore": 5, "collection": "orders", "$db": "shop"}
FOLLOWING, ORPHAN = FrameFlags.FOLLOWING_RESPONSE, FrameFlags.ORPHAN_RESPONSE


def raw(data: bytes, size: int | None = None) -> RawFrame:
    return RawFrame(data[:size], len(data), 1, 2)


def ask(pairer: MongoPairer, request_id: int = 7, flags: int = 0, document: dict | None = None):
    return pairer.request(raw(command(document or {"ping": 1, "$db": "x"}, flags=flags, request_id=request_id)))


def answer(pairer: MongoPairer, response_to: int = 7, request_id: int = 100, flags: int = 0):
    return pairer.response(raw(reply({"ok": 1}, response_to, request_id, flags)))


def test_a_response_names_its_request():
    pairer = MongoPairer()
    first, second = ask(pairer, 7), ask(pairer, 8)
    assert (first.api_key, first.api_version, first.correlation_id, first.reply_to) == (2013, None, 7, 0)
    late, early = answer(pairer, 8, 100), answer(pairer, 7, 101)
    assert (late.exchange_ordinal, early.exchange_ordinal) == (second.exchange_ordinal, first.exchange_ordinal)
    assert (late.correlation_id, late.reply_to, late.flags) == (100, 8, 0)
    assert not pairer.unanswered()


def test_both_sides_may_use_the_same_ids_and_id_0():
    pairer = MongoPairer()
    asked = ask(pairer, 0)
    assert answer(pairer, 0, 0).exchange_ordinal == asked.exchange_ordinal
    asked = ask(pairer, 0)
    assert answer(pairer, 0, 0).exchange_ordinal == asked.exchange_ordinal


def test_ids_may_wrap_and_repeat():
    pairer = MongoPairer()
    ids = [2**31 - 1, -(2**31), 7, 7]
    asked = [ask(pairer, one).exchange_ordinal for one in ids]
    assert [answer(pairer, one).exchange_ordinal for one in ids] == asked


@pytest.mark.parametrize("compressor", [None, *COMPRESSORS])
def test_a_request_with_more_to_come_is_not_answered(compressor):
    pairer = MongoPairer()
    data = command({"insert": "orders", "$db": "shop"}, flags=MORE)
    key = pairer.request(raw(compressed(data, compressor) if compressor else data))
    assert key.flags == FrameFlags.NO_RESPONSE_EXPECTED
    assert not pairer.unanswered()


@pytest.mark.parametrize("name", ["OP_INSERT", "OP_UPDATE", "OP_DELETE", "OP_KILL_CURSORS"])
def test_nor_are_the_old_writes(name):
    assert MongoPairer().request(raw(legacy()[name])).flags == FrameFlags.NO_RESPONSE_EXPECTED


@pytest.mark.parametrize("compressor", [None, *COMPRESSORS])
def test_an_exhaust_chain(compressor):
    """Each response answers the one before; the last has no moreToCome."""
    pairer = MongoPairer()
    asked = ask(pairer, 7, EXHAUST, GET_MORE)
    keys = []
    for response_to, request_id, flags in ((7, 100, MORE), (100, 101, MORE), (101, 102, 0), (102, 103, 0)):
        data = reply({"ok": 1}, response_to, request_id, flags)
        keys.append(pairer.response(raw(compressed(data, compressor) if compressor else data)))
    assert [key.flags for key in keys] == [0, FOLLOWING, FOLLOWING, ORPHAN]
    assert keys[0].exchange_ordinal == asked.exchange_ordinal
    assert len({key.exchange_ordinal for key in keys}) == 4


def test_an_old_exhaust_query():
    pairer = MongoPairer()
    query = message(2004, struct.pack("<i", 1 << 6) + b"a.b\0" + struct.pack("<iii", 0, 2, 5) + b"\0", 7)
    pairer.request(raw(query))

    def batch(response_to: int, request_id: int, cursor: int) -> int:
        return pairer.response(raw(message(1, struct.pack("<iqii", 8, cursor, 0, 0), request_id, response_to))).flags

    assert [batch(7, 100, 4711), batch(100, 101, 4711), batch(101, 102, 0), batch(102, 103, 0)] == [
        0, FOLLOWING, FOLLOWING, ORPHAN,
    ]  # fmt: skip


def test_more_to_come_without_being_asked_for_is_no_chain():
    pairer = MongoPairer()
    ask(pairer, 7)
    assert answer(pairer, 7, 100, MORE).flags == 0
    assert answer(pairer, 100, 101).flags == ORPHAN


def test_messages_that_answer_each_other_end():
    pairer = MongoPairer()
    ask(pairer, 7, EXHAUST, GET_MORE)
    flags = [answer(pairer, *ids, MORE).flags for ids in ((7, 100), (100, 100), (100, 100), (5, 6), (6, 5))]
    assert flags == [0, FOLLOWING, FOLLOWING, ORPHAN, ORPHAN]


def test_orphans_have_exchanges_of_their_own():
    pairer = MongoPairer()
    first, second = answer(pairer, 1), answer(pairer, 1)
    assert first.flags == second.flags == ORPHAN
    assert first.exchange_ordinal != second.exchange_ordinal
    assert pairer.response(raw(b"\0" * 15)).flags == ORPHAN


def test_credentials_pass_to_the_answers():
    pairer = MongoPairer()
    ask(pairer, 7, 0, {"saslStart": 1, "payload": b"secret", "$db": "admin"})
    assert answer(pairer, 7).flags == FrameFlags.CREDENTIALS
    ask(pairer, 8, 0, {"find": "system.users", "$db": "admin"})
    assert answer(pairer, 8).flags == FrameFlags.CREDENTIALS


def lookup_of_users(request_id: int) -> bytes:
    pipeline = [{"$lookup": {"from": "system.users", "as": "u"}}, {"$project": {"x": "$u.credentials"}}]
    return command({"aggregate": "orders", "pipeline": pipeline, "$db": "admin"}, request_id=request_id)


@pytest.mark.parametrize("wrap", [bytes, lambda data: compressed(data, "zlib")], ids=["plain", "compressed"])
def test_credentials_pass_to_later_batches_of_a_cursor(wrap):
    pairer = MongoPairer()
    pairer.request(raw(wrap(lookup_of_users(7))))
    own = {"x": "a key", "id": Int64(56), "cursor": {"id": Int64(56)}}  # of what was found, no cursor's
    batch = {"cursor": {"firstBatch": [own], "id": Int64(55), "ns": "admin.orders"}, "ok": 1.0}
    assert pairer.response(raw(wrap(reply(batch, response_to=7)))).flags == FrameFlags.CREDENTIALS
    pairer = MongoPairer(pairer.state())
    for number, cursor, flags in ((8, 55, FrameFlags.CREDENTIALS), (9, 56, 0), (10, 55, FrameFlags.CREDENTIALS)):
        pairer.request(raw(wrap(command({"getMore": Int64(cursor), "collection": "orders"}, request_id=number))))
        more = {"cursor": {"nextBatch": [{"x": "a key"}], "id": Int64(cursor), "ns": "admin.orders"}, "ok": 1.0}
        assert pairer.response(raw(wrap(reply(more, response_to=number)))).flags == flags


def test_credentials_pass_to_later_batches_of_old_opcodes():
    pairer = MongoPairer()
    messages = legacy(name="admin.system.users")
    more = legacy()["OP_GET_MORE"]
    assert cursor_read_on(more) == opened_cursor(messages["OP_REPLY"]) == 4711
    for request, flags in ((more, 0), (messages["OP_QUERY"], FrameFlags.CREDENTIALS), (more, FrameFlags.CREDENTIALS)):
        pairer.request(raw(request))
        assert pairer.response(raw(messages["OP_REPLY"])).flags == flags


def test_whatever_the_bytes_a_cursor_is_a_number():
    mutator = MongodbMutator(23)
    for number in range(3000):
        data = mutator.frame(number).data
        assert isinstance(opened_cursor(data), int)
        assert isinstance(cursor_read_on(data), int)


def test_cursors_of_credentials_are_bounded(monkeypatch):
    monkeypatch.setattr(pairing, "MAX_CURSORS", 3)
    pairer = MongoPairer()
    for number in range(10):
        pairer.request(raw(lookup_of_users(number + 1)))
        batch = {"cursor": {"firstBatch": [], "id": Int64(number + 1)}, "ok": 1.0}
        pairer.response(raw(reply(batch, response_to=number + 1)))
    assert pairer.state()["cursors"] == [8, 9, 10]


def test_what_was_cut_off_may_be_silent():
    pairer = MongoPairer()
    data = command({"ping": 1, "$db": "x"})
    pairer.request(raw(data, 18))
    assert not pairer.unanswered()
    pairer.request(raw(data, 40))
    assert len(pairer.unanswered()) == 1
    pairer.request(raw(data, 3))
    assert len(pairer.unanswered()) == 1


def test_requests_that_wait_are_bounded(monkeypatch):
    monkeypatch.setattr(pairing, "MAX_OUTSTANDING", 10)
    monkeypatch.setattr(pairing, "MAX_CHAINS", 3)
    pairer = MongoPairer()
    asked = [ask(pairer, n, EXHAUST, GET_MORE).exchange_ordinal for n in range(25)]
    assert (pairer.forgotten, list(pairer.unanswered())) == (15, asked[15:])
    assert answer(pairer, 3).flags == ORPHAN
    for n in range(15, 25):
        assert answer(pairer, n, 100 + n, MORE).flags == 0
    assert [answer(pairer, 100 + n).flags for n in range(15, 25)] == [ORPHAN] * 7 + [FOLLOWING] * 3


def test_after_a_loss_a_repeated_id_is_doubtful():
    pairer = MongoPairer()
    ask(pairer, 7)
    ask(pairer, 7)
    pairer.lost("response")
    assert answer(pairer, 7).flags == FrameFlags.CORRELATION_MISMATCH


def test_another_goes_on_from_its_state():
    one = MongoPairer()
    ask(one, 7)
    ask(one, 8, EXHAUST, GET_MORE)
    ask(one, 9, 0, {"saslStart": 1, "payload": b"s3cret-payload", "$db": "admin"})
    answer(one, 8, 100, MORE)
    one.lost("request")
    text = json.dumps(one.state())
    assert "s3cret" not in text
    other = MongoPairer(json.loads(text))
    assert other.state() == one.state()
    for ids in ((7, 101), (100, 102), (9, 103), (4711, 104)):
        assert answer(other, *ids) == answer(one, *ids)


@pytest.mark.parametrize("state", [{}, {"exchanges": "x"}, {"exchanges": 1, "outstanding": [[1]], "chains": []}])
def test_a_state_that_is_none_is_refused(state):
    with pytest.raises((KeyError, TypeError, ValueError)):
        MongoPairer(state)
