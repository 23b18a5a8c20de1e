"""Pairing: every outcome, and the same rows however the frames are cut into batches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from decoder.model import FrameFlags
from pipeline.analysis.fit import schema_of
from pipeline.analysis.pairing import completed, exchanges, halves_of, may_have_errors, pending
from pipeline.lake.arrow import with_plain_texts
from pipeline.tables import PENDING_EXCHANGES
from tests.pipeline.rows import T0, row

TIMEOUT, DAY = timedelta(minutes=10), timedelta(days=1)
Half = dict[str, Any]


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def half(exchange: str | None, direction: str, seconds: float, seq: int, **more: Any) -> Half:
    ts = at(seconds)
    values = {"exchange_id": exchange, "direction": direction, "ts": ts, "ts_end": ts, "seq": seq, "date": ts.date()}
    return row(PENDING_EXCHANGES, **values | {"connection_id": "c", "api_key": 3, "body": "{}"} | more)


def table(halves: Sequence[Half]) -> pa.Table:
    return pa.Table.from_pylist(list(halves), schema_of(PENDING_EXCHANGES))


def run(*batches: Sequence[Half]) -> tuple[dict[str, Any], set[str]]:
    """Exchanges by id, and the ids that still wait, after some batches."""
    waiting, done = table([]), {}
    for batch in batches:
        halves = pa.concat_tables([table(batch), waiting])
        paired = exchanges(halves, TIMEOUT, DAY)
        for values in completed(paired).to_pylist():
            assert values["exchange_id"] not in done
            done[values["exchange_id"]] = SimpleNamespace(**values)
        waiting = halves_of(pending(paired), halves)
    return done, set(waiting.column("exchange_id").to_pylist())


NO_RESPONSE, UNANSWERED = int(FrameFlags.NO_RESPONSE_EXPECTED), int(FrameFlags.UNANSWERED)
ORPHAN = int(FrameFlags.ORPHAN_RESPONSE)

CONVERSATION = [
    half("pair", "request", 0, 0, client_id="app", correlation_id=7),
    half(
        "pair", "response", 0.5, 0, body='{"topics":[{"errorCode":3},{"errorCode":0},{"errorCode":3}],"errorCode":29}'
    ),
    half("acks0", "request", 1, 1, flags=NO_RESPONSE),
    half("closed", "request", 2, 2, flags=UNANSWERED),
    half("orphan", "response", 3, 1, flags=ORPHAN),
    half(None, "request", 4, 3, flags=UNANSWERED),
    half("lost", "request", 5, 4),
    half("late", "request", 6, 5),
    half("late", "response", 1300, 2),
    half("open", "request", 1301, 6),
    half("silent", "request", 7, 0, connection_id="other"),
]


def test_every_outcome() -> None:
    done, waiting = run(CONVERSATION)
    assert {key: value.status for key, value in done.items()} == {
        "pair": "paired",
        "acks0": "no_response_expected",
        "closed": "unanswered",
        "orphan": "orphan_response",
        "c/request/3": "unanswered",
        "lost": "unanswered",  # its connection continued for twenty minutes
        "late": "unanswered",  # the answer came after more than ten
    }
    assert waiting == {"late", "open", "silent"}
    pair = done["pair"]
    assert (pair.latency_us, pair.client_id, pair.correlation_id) == (500_000, "app", 7)
    assert pair.error_codes == [3, 29]
    assert pair.error_names == ["UNKNOWN_TOPIC_OR_PARTITION", "TOPIC_AUTHORIZATION_FAILED"]


@pytest.mark.parametrize("cut", [1, 3])
def test_the_cut_into_batches_does_not_matter(cut: int) -> None:
    in_order = sorted(CONVERSATION, key=lambda h: h["ts"])
    whole = run(CONVERSATION)
    pieces = run(*(in_order[i : i + cut] for i in range(0, len(in_order), cut)))
    assert pieces == whole


def test_a_response_that_came_too_late_is_an_orphan_with_an_id_of_its_own() -> None:
    done, waiting = run([*CONVERSATION, half("end", "request", 1e5, 9)])
    assert done["late"].status == "unanswered"
    assert done["late/late"].status == "orphan_response"
    assert done["silent"].status == "unanswered"  # all connections together continued for a day
    assert waiting == {"end"}


def test_the_same_half_twice_changes_nothing() -> None:
    once, _ = run(CONVERSATION[:2])
    twice, _ = run(CONVERSATION[:2] + CONVERSATION[:2])
    assert twice == once


def test_error_codes_in_texts_do_not_count() -> None:
    body = r'{"errorMessage":"say \"errorCode\":5","topLevelErrorCode":-1,"newErrorCode":9999}'
    done, _ = run([half("e", "request", 0, 0), half("e", "response", 1, 0, body=body)])
    assert done["e"].error_codes == [-1, 9999]
    assert done["e"].error_names == ["UNKNOWN_SERVER_ERROR", "UNKNOWN(9999)"]


def test_a_response_before_its_request_has_no_negative_latency() -> None:
    done, _ = run([half("e", "request", 2, 0), half("e", "response", 1, 0)])
    assert (done["e"].status, done["e"].latency_us) == ("paired", 0)


@pytest.mark.parametrize(
    ("response", "latency_us", "service_us"),
    [
        pytest.param({}, 2_000_000, 2_000_000, id="the first response, or an agent of an older release"),
        pytest.param({"idle_us": 9_000_000}, 2_000_000, 2_000_000, id="nothing was before it for long"),
        pytest.param({"idle_us": 700}, 2_000_000, 700, id="behind a long poll of its connection"),
        pytest.param({"idle_us": 0}, 2_000_000, 0, id="in one segment with the response before"),
        pytest.param({"idle_us": -5}, 2_000_000, 0, id="no agent writes this"),
        pytest.param({"flags": int(FrameFlags.AFTER_GAP)}, 2_000_000, None, id="what was before was lost"),
        pytest.param({"flags": int(FrameFlags.TIME_CLAMPED), "idle_us": 700}, None, None, id="no time"),
    ],
)
def test_service_begins_when_the_response_before_has_left(
    response: dict[str, Any], latency_us: int | None, service_us: int | None
) -> None:
    done, _ = run([half("e", "request", 1, 7)], [half("e", "response", 3, 7, **response)])
    assert (done["e"].latency_us, done["e"].service_us) == (latency_us, service_us)


def test_what_gets_no_answer_has_no_service_time() -> None:
    done, _ = run(CONVERSATION)
    assert {name for name, one in done.items() if one.service_us is not None} == {"pair"}


def reply(document: str) -> str:
    return f'{{"flagBits":0,"sections":[{{"kind":0,"document":{document}}}]}}'


MONGODB_REPLIES = {
    reply('{"ok":1.0,"n":3}'): [],
    reply('{"ok":0.0,"code":59,"codeName":"CommandNotFound","errmsg":"\\"code\\":5"}'): [(59, "CommandNotFound")],
    reply('{"ok":0,"code":11000}'): [(11000, "DuplicateKey")],
    reply('{"ok":false,"code":{"$numberLong":"9"}}'): [],
    reply('{"ok":0,"errmsg":"no code"}'): [],
    reply('{"ok":1,"writeErrors":[{"index":0,"code":121},{"code":11000},{"code":121}],"writeConcernError":{"code":64,'
          '"codeName":"W"}}'): [(64, "W"), (121, "DocumentValidationFailure"), (11000, "DuplicateKey")],
    reply('{"ok":1,"writeErrors":"none","code":4711}'): [],
    reply('{"ok":0,"code":4711.0}'): [(4711, "UNKNOWN(4711)")],
    reply('{"ok":1,"cursor":{"firstBatch":[{"ok":0,"code":9}]}}'): [],
    '{"sections":[{"kind":1,"documents":[]},{"kind":0,"document":{"ok":0,"code":13}}]}': [(13, "Unauthorized")],
    '{"responseFlags":2,"documents":[{"$err":"x","code":13435}]}': [(13435, "NotPrimaryNoSecondaryOk")],
    '{"responseFlags":8,"documents":[{"ok":0,"code":59}]}': [(59, "CommandNotFound")],
    '{"responseFlags":8,"documents":[{"code":59}]}': [],
    '{"responseFlags":8,"documents":[{"ok":0,"code":59},{"ok":0,"code":59}]}': [],
    '{"responseFlags":1,"cursorID":5,"documents":[]}': [(43, "CursorNotFound")],
    '{"responseFlags":11,"cursorID":0,"documents":[{"$err":"x","code":9}]}': [(43, "CursorNotFound")],
    '{"responseFlags":8,"documents":[{"responseFlags":1}]}': [],
    '{"responseFlags":-2147483648,"documents":[]}': [],
    '{"commandReply":{"ok":0,"code":18},"metadata":{}}': [(18, "AuthenticationFailed")],
    '{"raw":"AAAA","code":1}': [],
}  # fmt: skip
"""Bodies of replies, and the errors in them."""


def test_errors_of_mongodb() -> None:
    halves = [
        half(f"e{n}", direction, n + more, n, protocol="mongodb", api_key=2013, api_name=name, body=body)
        for n, reply_body in enumerate(MONGODB_REPLIES)
        for direction, more, name, body in (("request", 0, "find", "{}"), ("response", 0.5, None, reply_body))
    ]
    done, _ = run(halves)
    found = [done[f"e{n}"] for n in range(len(MONGODB_REPLIES))]
    assert [list(zip(e.error_codes, e.error_names, strict=True)) for e in found] == list(MONGODB_REPLIES.values())
    assert {e.api_name for e in found} == {"find"}


def test_a_response_that_follows_another_one_is_complete_alone() -> None:
    following = int(FrameFlags.FOLLOWING_RESPONSE)
    done, waiting = run([half("more", "response", 1, 1, protocol="mongodb", flags=following, header="{}")])
    assert (done["more"].status, done["more"].latency_us, waiting) == ("following_response", None, set())
    assert (done["more"].response_header, done["more"].response_flags) == ("{}", following)


MARKED = [
    None, "", "{}", '{"errorCode":0}', '{"errorCode":3}', '{"errorCode":-1}', '{"a":[{"errorCode":0},{"errorCode":0}]}',
    '{"a":[{"errorCode":0},{"errorCode":7}]}', '{"subErrorCode":5,"errorCode":0}', '{"errorMessage":"errorCode"}',
    '{"errorCode":',
]  # fmt: skip


@pytest.mark.parametrize("places", [range(len(MARKED)), [9, 4, 0, 10, 3], []])
def test_responses_that_are_read_for_errors_are_all_in_which_a_mark_goes_on_otherwise(places: Sequence[int]) -> None:
    texts = [MARKED[place] for place in places]
    paired = pa.table(
        {
            "protocol": pa.array(["kafka"] * len(texts), pa.string()),
            "response_body": pa.chunked_array([pa.array(texts[:2], pa.string()), pa.array(texts[2:], pa.string())]),
        }
    )
    wanted = [text is None or text.count('rrorCode":') != text.count('rrorCode":0') for text in texts]
    assert list(may_have_errors(paired)) == wanted


def test_of_other_protocols_every_response_is_read_for_errors() -> None:
    paired = pa.table({"protocol": ["mongodb", None], "response_body": ["{}", "{}"]})
    assert list(may_have_errors(paired)) == [True, True]


def test_texts_that_are_pointed_to_are_those_that_would_be_copied() -> None:
    unread = half("unread", "request", 1302, 7, body=None)
    hello = half("hello", "request", 1303, 8, protocol="mongodb", header='{"requestId":1}', embedded="[]")
    frames = table([*CONVERSATION, unread, hello])
    for some in (frames, pa.concat_tables([frames.slice(0, 4), frames.slice(4)]), frames.slice(0, 0)):
        pointing = exchanges(some, TIMEOUT, DAY, copies_texts=False)
        assert pa.types.is_dictionary(pointing.schema.field("request_body").type)
        assert with_plain_texts(pointing).equals(exchanges(some, TIMEOUT, DAY))


def test_a_time_that_the_capture_did_not_give_means_nothing() -> None:
    clamped = int(FrameFlags.TIME_CLAMPED)
    done, waiting = run(
        [
            half("a", "request", 0, 0, flags=clamped),
            half("a", "response", 5_000, 0),
            half("b", "request", 5_001, 1),
            half("c", "response", 100_000, 1, flags=clamped, connection_id="other"),
        ]
    )
    assert (done["a"].status, done["a"].latency_us, done["a"].service_us) == ("paired", None, None)
    assert waiting == {"b", "c"}


def test_files_may_have_times_and_texts_of_other_types() -> None:
    frames = table(CONVERSATION)
    kinds = {"ts": pa.timestamp("ns", "UTC"), "ts_end": pa.timestamp("ns", "UTC"), "exchange_id": pa.large_string()}
    other = frames.cast(pa.schema([pa.field(field.name, kinds.get(field.name, field.type)) for field in frames.schema]))
    assert exchanges(other, TIMEOUT, DAY).equals(exchanges(frames, TIMEOUT, DAY))
