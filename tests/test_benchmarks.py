"""Do the benchmarks compare what they claim? Not how fast anything is."""

from __future__ import annotations

import sys
from datetime import timedelta

import pytest
from deltalake import DeltaTable

from benchmarks import candidates, decode, java_clients, mongodb, records, wirelake
from benchmarks.__main__ import main
from benchmarks.apart import apart
from benchmarks.candidates import AllAtOnce, PerItem, measure, show
from benchmarks.corpus import CAPTURES, CorpusFrame, describe, samples, write
from benchmarks.kafka_python import build_batch
from benchmarks.kafka_python import frame_readers as kafka_python
from benchmarks.kafka_python import record_readers as kafka_python_records
from benchmarks.landed import another, land, rows_of
from benchmarks.tshark import write_capture
from pipeline.capture.runs.reading import read_capture
from pipeline.commands.messages.messages import ordered_frames
from tests.requirements import require_java, require_maven

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def frames() -> list[CorpusFrame]:
    return samples()


def test_the_plain_reader_understands_all_but_the_frames_that_no_release_knows(frames):
    (reader,) = [reader for reader in wirelake.frame_readers() if "plain" in reader.name]
    missed = [frame for frame, good in zip(frames, reader.check(frames), strict=True) if not good]
    assert {(frame.direction, frame.api_key, frame.api_version) for frame in missed} == {
        ("request", 18, 99),
        ("request", 999, 0),
    }
    assert f"{len(frames):,} frames" in describe(frames)


def test_kafka_python_understands_most(frames):
    (reader,) = kafka_python()
    assert 0.9 < sum(reader.check(frames)) / len(frames) < 1


@pytest.mark.java
def test_kafkas_own_classes_understand_what_4_4_0_knows(frames):
    require_java()
    require_maven()
    parse, json, _ = java_clients.frame_readers()
    marks = parse.check(frames)
    assert marks == json.check(frames)
    assert 0.9 < sum(marks) / len(frames) < 1


def test_the_readers_of_mongodb_understand_every_recorded_message():
    messages = mongodb.samples()
    given = wirelake.batches(messages)
    assert all(map(mongodb._decode, messages))
    assert mongodb._by_kernel(given).tolist() == mongodb._fronts(given).tolist() == [True] * len(messages)
    assert len(list(mongodb.documents(messages))) > len(messages)


def test_a_capture_written_for_tshark_holds_the_same_frames(tmp_path, frames):
    part = [frame for frame in frames if frame.api_version <= 4][:300]
    requests = {frame.exchange for frame in part if frame.direction == "request"}
    part = [frame for frame in part if frame.exchange in requests]
    read = [frame.frame for frame in ordered_frames([str(write_capture(tmp_path / "some.pcap", part))])]
    assert [len(data) for data in read] == [len(frame.data) for frame in part]


def test_the_file_for_other_languages(tmp_path):
    path = write(tmp_path / "frames", [CorpusFrame(b"abc", "response", 18, 3)])
    assert path.read_bytes() == bytes.fromhex("00000003 01 0012 0003") + b"abc"


def test_kafka_python_reads_the_batches_that_it_writes():
    (reader,) = kafka_python_records()
    batch = build_batch(0, records._records()[:7])
    assert reader.decode(batch) == 7
    assert reader.check([batch, batch[:-1]]) == [True, False]


def test_a_candidate_is_timed_on_what_it_understands(capsys, monkeypatch):
    monkeypatch.setattr(candidates, "MIN_SECONDS", 0.01)
    each = PerItem("one by one", "halves", lambda item: 1 // item)
    together = AllAtOnce("all at once", "halves", list, lambda items: [True] * len(items))
    assert each.check([1, 0]) == [True, False]
    given = [[1], [1, 0]]
    assert [result.understood for result in measure([each, together], given, 3)] == [1, 2]
    show("title", measure([each, together], given, 3), 2, "frames")
    assert "1 of 2" in capsys.readouterr().out


def test_what_is_not_installed_is_reported(capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("kio.") or name == "benchmarks.kio_reader"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kio", None)
    monkeypatch.setattr(java_clients, "lacks", lambda: "java")
    assert [candidate.name for candidate in decode.peers("frame_readers")] == [kafka_python()[0].name]
    printed = capsys.readouterr().out
    assert "kio is not installed" in printed
    assert "not installed: java" in printed


def test_a_candidate_in_a_process_of_its_own_answers_as_it_does_here(frames):
    (there,) = [reader for reader in apart("benchmarks.wirelake", "frame_readers") if "plain" in reader.name]
    (here,) = [reader for reader in wirelake.frame_readers() if "plain" in reader.name]
    some = frames[:50]
    assert there.check(some) == here.check(some) == [True] * 50
    (result,) = measure([there], [some], 1)
    assert result.seconds > 0


@pytest.fixture(scope="module")
def landing(tmp_path_factory):
    folder = tmp_path_factory.mktemp("landing")
    read_capture([CAPTURES / "healthy.pcap"], folder)
    return folder


def test_frames_landed_again_have_new_ids_and_the_same_structure(landing, tmp_path):
    rows = rows_of(landing).slice(0, 500)
    land(another(rows, "second", timedelta(days=1)), tmp_path)
    (file,) = tmp_path.glob("date=*/second-*.parquet")
    first, second = rows.to_pylist(), rows_of(tmp_path).to_pylist()
    assert [row["ts"] + timedelta(days=1) for row in first] == [row["ts"] for row in second]
    assert [row["frame"] for row in first] == [row["frame"] for row in second]
    for name in ("connection_id", "exchange_id", "flow_id"):
        pairs = {(one[name], other[name]) for one, other in zip(first, second, strict=True)}
        assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})
        assert all(one != other and len(one) == len(other) for one, other in pairs)
    assert all(row["exchange_id"].startswith(f"{row['connection_id']}-") for row in second)
    assert file.parent.name == f"date={min(row['ts'] for row in second):%Y-%m-%d}"


@pytest.mark.spark
@pytest.mark.proof
def test_the_job_and_its_floor_take_in_every_frame(spark, landing, tmp_path):
    from benchmarks.pipeline import Watch, floor  # noqa: PLC0415 - loads Spark
    from pipeline.config.settings import StreamSettings  # noqa: PLC0415

    small, watch = tmp_path / "landing", Watch()
    land(rows_of(landing).slice(0, 200), small)
    assert floor(spark, small, tmp_path / "floor").wall > 0
    spark.streams.addListener(watch)
    try:
        costs = watch.run(spark, small, tmp_path / "lake", StreamSettings())
    finally:
        spark.streams.removeListener(watch)
    assert list(costs) == ["gaps", "frames", "exchanges", "gold", "all"]
    assert costs["all"].wall > sum(cost.wall for name, cost in costs.items() if name != "all")
    counts = [DeltaTable(str(tmp_path / path)).to_pyarrow_table().num_rows for path in ("floor", "lake/bronze/frames")]
    assert counts == [200, 200]


def test_an_unknown_part_is_refused(capsys):
    assert main(["decoed"]) == 2
    assert (
        "capture, decode, endless, follow, live, longer, mongodb, once, picture, pipeline, questions, records"
        in capsys.readouterr().err
    )
