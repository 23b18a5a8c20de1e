"""Each command that pymongo's monitoring told of is one exchange of the agent's, of the same content, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from decoder.model import FrameFlags
from tests.captures.mongodb.exchanges import CODEC, Exchange, exchanges, frames, is_silent, of_a_command, told, truth
from tests.captures.mongodb.record import ALL, HERE, OLD, RECORDINGS, record
from tests.requirements import require_go, require_maven, require_tcpdump


def compare(path: Path) -> tuple[int, int]:
    """How many commands were compared, and how many are equal."""
    events = truth(path)
    monitored = [event for event in events if "raw" not in event]
    raw = {event["request_id"]: event for event in events if "raw" in event}
    found = exchanges(frames(path))
    by_id = {e.request.correlation_id: e for e in found if e.request is not None}
    assert len(by_id) == sum(e.request is not None for e in found), "the ids of this recording are unique"
    following = {e.response.reply_to: e for e in found if e.request is None and e.response is not None}
    compared = equal = 0
    previous: Exchange | None = None
    for event in monitored:
        exchange = by_id.pop(event["request_id"], None)
        if exchange is None:  # pymongo tells each reply of an exhaust cursor as a command, which it did not send
            assert previous is not None
            assert previous.response is not None
            exchange = following.pop(previous.response.correlation_id)
        compared += 1
        equal += is_equal(event, exchange)
        previous = exchange
    for request_id, event in raw.items():
        exchange = by_id.pop(request_id)
        answered = [exchange.response.correlation_id] if exchange.response is not None else []
        compared += 1
        equal += (exchange.request.api_key, answered) == (event["raw"], event["reply_ids"]) and (
            "cursor" not in event or _old_reply(exchange) == (event["cursor"], event["returned"])
        )
    assert not following
    assert not [e for e in by_id.values() if of_a_command(e)]
    return compared, equal


def _old_reply(exchange: Exchange) -> tuple[int, int]:
    body = CODEC.decode(exchange.response.frame, protocol="mongodb", direction="response").body
    return body["cursorID"], len(body["documents"])


def is_equal(event: dict, exchange: Exchange) -> bool:
    wanted = told(event)
    if is_silent(event):
        assert exchange.request.flags & FrameFlags.NO_RESPONSE_EXPECTED
        assert exchange.response is None
        wanted |= {"ok": None, "write_errors": None}
    elif exchange.request is not None:
        took = exchange.response.ts - exchange.request.ts_end
        assert 0 <= took <= event["duration_us"]
        assert event["started_us"] - 1000 <= exchange.request.ts
    facts = exchange.facts
    got = {name: getattr(facts, name) for name in wanted}
    assert got == wanted, event["document"]
    return got == wanted


@pytest.mark.parametrize("name", ALL)
def test_the_recording_holds_what_monitoring_told(name: str) -> None:
    compared, equal = compare(HERE / f"{name}.pcap")
    print(f"{name}: {compared} commands compared, {equal} equal")
    assert compared == equal > 20


@pytest.mark.parametrize("name", [name for name in RECORDINGS if RECORDINGS[name]])
def test_what_is_compressed_says_so(name: str) -> None:
    facts = [e.facts for e in exchanges(frames(HERE / f"{name}.pcap"))]
    assert {f.compressor for f in facts} == {None, RECORDINGS[name]}  # the handshake never is
    assert sum(f.compressor == RECORDINGS[name] for f in facts) > 20


def test_what_an_old_client_does_has_the_facts_of_the_commands_of_today() -> None:
    facts = [e.facts for e in exchanges(frames(HERE / f"{OLD}.pcap"))]
    told = [(f.command, f.collection, f.documents_in, f.documents_out, f.cursor_left, f.ok) for f in facts]
    assert told[1] == ("insert", "entries", 20, None, None, None)
    assert told[5:9] == [
        ("find", "entries", None, 8, 1, True),
        ("getMore", "entries", None, 8, 1, True),
        ("getMore", "entries", None, 4, 0, True),
        ("find", "entries", None, 5, 2, True),
    ]
    assert facts[9].cursors_killed == (2,)
    assert [(f.command, f.error_name) for f in facts if f.ok is False] == [
        ("getMore", "CursorNotFound"), ("noSuchCommand", "CommandNotFound"), ("find", "BadValue"),
    ]  # fmt: skip
    assert {f.command for f in facts if f.ok is None} == {"insert", "update", "delete", "killCursors"}


@pytest.mark.broker
@pytest.mark.parametrize(
    ("name", "require_server"), [pytest.param("proxied", require_go, marks=pytest.mark.proof), (OLD, require_maven)]
)
def test_a_recording_of_now_says_the_same(tmp_path: Path, name: str, require_server: Callable[[], None]) -> None:
    require_server()
    require_tcpdump()
    record(name, tmp_path, port=27117)
    compared, equal = compare(tmp_path / f"{name}.pcap")
    print(f"recorded now: {compared} commands compared, {equal} equal")
    assert compared == equal > 20
