from __future__ import annotations

import pickle

import pytest

from decoder import Codec
from decoder.kafka.codec.program import WIDTH, Op, compile_programs
from decoder.kafka.schema.table import api_versions, messages

PROGRAMS = compile_programs()


def instructions(start: int) -> list[tuple[int, ...]]:
    found = []
    while PROGRAMS.code[start] != Op.END:
        found.append(PROGRAMS.code[start : start + WIDTH])
        start += WIDTH
    return found


def test_every_version_of_every_message_has_an_entry():
    assert set(PROGRAMS.requests) == {
        (key, version) for key, (low, high) in api_versions().items() for version in range(low, high + 1)
    }  # fmt: skip
    assert set(PROGRAMS.responses) == set(PROGRAMS.requests)
    assert {"RequestHeader": {0, 1, 2}, "ResponseHeader": {0, 1}} == {
        name: {v for n, v in PROGRAMS.headers if n == name} for name, _ in PROGRAMS.headers
    }
    assert ("ConsumerProtocolAssignment", 0) in PROGRAMS.data
    assert ("OffsetCommitValue", 3) in PROGRAMS.data
    everything = [*PROGRAMS.requests, *PROGRAMS.responses, *PROGRAMS.headers, *PROGRAMS.data]
    assert len(everything) == sum(m.versions[1] - m.versions[0] + 1 for m in messages())


def test_a_pickled_codec_is_small_and_decodes_the_same():
    codec = Codec()
    pickled = pickle.dumps(codec)
    assert len(pickled) < 200_000
    copy = pickle.loads(pickled)  # noqa: S301 - our own bytes
    assert copy.compiled("kafka") == codec.compiled("kafka")
    frame = bytes.fromhex("00120000000000070004") + b"demo"
    assert copy.decode(frame) == codec.decode(frame)


def test_versions_that_do_not_differ_share_one_program():
    assert PROGRAMS.find("request", 0, 6).start == PROGRAMS.find("request", 0, 7).start
    assert PROGRAMS.find("request", 0, 8).start != PROGRAMS.find("request", 0, 9).start


def test_equal_structs_of_different_messages_share_one_program():
    def broker(api_key: int, version: int, name: str) -> int:
        entry = PROGRAMS.find("response", api_key, version)
        return next(i[3] for i in instructions(entry.start) if PROGRAMS.names[i[1]] == name)

    assert broker(3, 9, "brokers") == broker(3, 12, "brokers")


def test_find_knows_nothing_of_unknown_keys_versions_and_directions():
    assert PROGRAMS.find("request", 0, 99) is None
    assert PROGRAMS.find("request", 999, 0) is None
    assert PROGRAMS.find("response", 0, -1) is None


@pytest.mark.parametrize("entries", [PROGRAMS.requests, PROGRAMS.responses, PROGRAMS.headers, PROGRAMS.data])
def test_every_target_and_name_lies_within_the_program(entries):
    known = set(Op)
    seen: set[int] = set()
    todo = [entry.start for entry in entries.values()]
    while todo:
        start = todo.pop()
        if start in seen:
            continue
        seen.add(start)
        for op, name, a, b in instructions(start):
            assert op in known
            assert 0 <= name < len(PROGRAMS.names)
            if op == Op.TAG:
                assert 0 <= b < len(PROGRAMS.constants)
            elif op in (Op.ARRAY, Op.C_ARRAY, Op.STRUCT):
                assert a in (0, 1)
                assert 0 <= b < len(PROGRAMS.code)
                todo.append(b)
    assert seen
