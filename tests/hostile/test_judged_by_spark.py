"""Captures whose packets are cut and changed: the job ends without an error, and finds what `diagnose` finds."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from pipeline.capture.packets.packet import Packet
from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.dashboard.sql import query
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.streaming.job import run_stream
from tests.hostile.judging.inputs import packets_of
from tests.paths import CAPTURES
from tests.pipeline.capture.wire import pcap

HARMED = ("stuck_commit.pcap", "incidents/share_groups.pcap", "stalled_lso.pcap", "mongodb/troubled_mongodb.pcap")
_HEADERS = 66
"""Bytes of Ethernet, IPv4 and TCP: what is changed is behind them."""
FOUND = "finding_id, rule, severity, state, subject, summary, first_ts, last_ts"


def harmed(source: Random, packet: Packet) -> Packet:
    """A packet that is cut, of which some bytes are others, or as it is."""
    data, chance = packet.data, source.random()
    if chance < 0.1:
        return packet._replace(data=data[: source.randrange(34, max(len(data), 35))])
    if chance < 0.2 and len(data) > _HEADERS + 20:
        changed = bytearray(data)
        for _ in range(source.choice((1, 2, 8))):
            changed[source.randrange(_HEADERS + 12, len(changed))] = source.choice((0, 1, 0x7F, 0x80, 0xFF))
        return packet._replace(data=bytes(changed))
    return packet


@pytest.mark.spark
def test_the_job_finds_in_harmed_captures_what_a_diagnosis_finds(spark: SparkSession, tmp_path: Path) -> None:
    for number, name in enumerate(HARMED):
        source = Random(number)
        (tmp_path / f"{number}.pcap").write_bytes(pcap([harmed(source, one) for one in packets_of(CAPTURES / name)]))
        read_capture([tmp_path / f"{number}.pcap"], tmp_path / "landing")
    summary = run_stream(tmp_path / "landing", tmp_path / "lake", once=True, spark=spark)
    assert summary.errors.errors == ()
    found = diagnose(read_inputs([str(tmp_path / "landing")]), StreamSettings())
    assert found.errors == ()
    by_job = query(tmp_path / "lake", f"SELECT {FOUND} FROM gold.findings ORDER BY finding_id")
    names = FOUND.split(", ")
    by_diagnosis = found.findings.select(names).sort_by("finding_id")
    assert by_job.num_rows > len(HARMED)
    assert by_job.to_pylist() == by_diagnosis.to_pylist()
