"""Bodies that are cut, or are, go through all that reads them: nothing raises, and what is whole is judged."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pipeline.analysis.derive import derive, findings_of
from pipeline.analysis.safety.guard import noting
from pipeline.capture.runs.reading import read_capture
from pipeline.dashboard.sql import query
from pipeline.streaming.job import run_stream
from pipeline.tables import EXCHANGES, FRAMES
from tests.decoder.kafka import encode
from tests.decoder.kafka.batches import batch, record
from tests.hostile.judging.alone import every_field
from tests.hostile.judging.bodies import EXTREMES, cut, integer_fields, places, with_field
from tests.hostile.judging.cases import case, with_texts
from tests.hostile.judging.drive import SETTINGS
from tests.hostile.judging.inputs import frames_of
from tests.hostile.judging.tally import Tally
from tests.paths import CAPTURES
from tests.pipeline.capture.wire import Flow, pcap, prefixed

SMALL = [
    CAPTURES / "incidents" / "share_groups.pcap", CAPTURES / "incidents" / "stale_readers.pcap",
    CAPTURES / "version_negotiation.pcap", CAPTURES / "mongodb" / "troubled_mongodb.pcap",
    CAPTURES / "mongodb" / "old_opcodes.pcap",
]  # fmt: skip


@pytest.mark.parametrize("first", [0, 1000, 2000, 3000])
def test_no_body_ends_judging(first: int) -> None:
    tally = Tally()
    with noting() as noted:
        for number in range(first, first + 3):
            case(number, 5, tally, lakes=1000, among=SMALL)
    assert not tally.sites, tally.first
    assert not noted.errors
    assert tally.cases == 3


def test_a_member_that_states_nothing_but_that_it_enters() -> None:
    """A JoinGroup without a rebalance timeout, answered without an error code; found by the campaign."""
    tally = Tally()
    case(30009, 4500, tally, lakes=1000)
    assert tally.cases == 1
    assert not tally.sites, tally.first


@pytest.mark.proof
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_no_body_of_any_recording_ends_judging(first: int) -> None:
    tally = Tally()
    for number in range(first, first + 50):
        case(number, 9, tally, lakes=10)
    assert not tally.sites, tally.first
    assert tally.cases == 50


@pytest.mark.proof
def test_no_field_of_any_message_ends_its_readers() -> None:
    tally = Tally()
    every_field(tally)
    assert not tally.sites, tally.first
    assert tally.bodies > 100_000


def test_one_of_the_page() -> None:
    tally = Tally()
    case(7, 6, tally, lakes=7, among=SMALL[:1])
    assert not tally.sites, tally.first


@pytest.mark.parametrize("value", [EXTREMES[0], EXTREMES[-1]])
def test_the_ends_of_64_bits_in_every_field_at_once(value: int) -> None:
    frames, gaps = frames_of(SMALL[0])
    frames = frames.slice(0, 300)
    for name in integer_fields(frames.column("body").to_pylist()):
        if name not in ("errorCode", "acknowledgeErrorCode"):
            frames = with_texts(frames, lambda column, text, name=name: with_field(text, name, value))
    derived = derive(frames, gaps, SETTINGS)
    findings_of(derived, SETTINGS.findings)
    assert derived.of(EXCHANGES).num_rows


def test_a_cut_body_keeps_what_precedes_the_cut() -> None:

    body = {"a": 1, "b": [{"c": 2, "d": 3}, {"c": 4, "d": 5}], "e": 6}
    for seed in range(30):
        copy = {"a": 1, "b": [{"c": 2, "d": 3}, {"c": 4, "d": 5}], "e": 6}
        cut(Random(seed), copy)
        assert len(list(places(copy))) < len(list(places(body)))
        assert "e" not in copy or copy == {"a": 1, "b": body["b"]}


def test_rows_without_a_body_at_all_are_judged() -> None:
    frames, gaps = frames_of(SMALL[2])
    nothing = pa.nulls(frames.num_rows, pa.string())
    bare = frames.set_column(FRAMES.column_names.index("body"), frames.schema.field("body"), nothing)
    derived = derive(bare, gaps, SETTINGS)
    assert derived.of(EXCHANGES).num_rows == derive(frames, gaps, SETTINGS).of(EXCHANGES).num_rows
    findings_of(derived, SETTINGS.findings)


def cut_versions() -> list[bytes]:
    """Two apis, of which the second ends before its maxVersion; and a record at the last offset that 64 bits hold."""
    apis = [{"apiKey": 0, "minVersion": 3, "maxVersion": 11}, {"apiKey": 1, "minVersion": 4, "maxVersion": 17}]
    whole = encode.response(18, 0, {"errorCode": 0, "apiKeys": apis}, correlation_id=1)
    far = {"index": 0, "errorCode": 0, "baseOffset": 2**63 - 1}
    written = {"responses": [{"name": "t", "partitionResponses": [far]}]}
    return [whole[:-2], encode.response(0, 7, written, correlation_id=2)]


@pytest.mark.spark
def test_the_job_goes_on_behind_an_answer_that_is_cut_within_an_element(spark: SparkSession, tmp_path: Path) -> None:
    versions, written = cut_versions()
    flow = Flow().open().send(0, prefixed(encode.request(18, 0, {}, correlation_id=1))).send(1, prefixed(versions))
    produce = {
        "acks": 1,
        "topicData": [{"name": "t", "partitionData": [{"index": 0, "records": batch([record(b"k", b"v")])}]}],
    }
    flow.send(0, prefixed(encode.request(0, 7, produce, correlation_id=2))).send(1, prefixed(written))
    (tmp_path / "x.pcap").write_bytes(pcap(flow.packets))
    read_capture([tmp_path / "x.pcap"], tmp_path / "landing")
    run_stream(tmp_path / "landing", tmp_path / "lake", once=True, spark=spark)
    frames = query(tmp_path / "lake", "SELECT api_name, decode_status FROM bronze.frames WHERE direction = 'response'")
    assert {(row["api_name"], row["decode_status"]) for row in frames.to_pylist()} == {
        ("ApiVersions", "partial"), ("Produce", "ok"),
    }  # fmt: skip
    events = query(tmp_path / "lake", 'SELECT "offset", next_offset FROM silver.offset_events').to_pylist()
    assert events == [{"offset": 2**63 - 1, "next_offset": None}]
    assert query(tmp_path / "lake", "SELECT count(*) AS n FROM silver.exchanges").to_pylist() == [{"n": 2}]
