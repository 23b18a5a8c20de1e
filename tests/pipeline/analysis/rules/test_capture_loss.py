"""A loss that is of no connection is reported as well: of a landing file, of an interface."""

from __future__ import annotations

from pipeline.analysis.rules.capture import loss
from pipeline.finding_settings import FindingSettings
from pipeline.tables import EXCHANGES, GAPS
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import row


def test_files_that_were_lost_and_packets_that_were_dropped_are_reported() -> None:
    gaps = [
        row(GAPS, agent_id="a", connection_id="file:date=2026-03-01/a-1-0000.parquet", bytes_lost=77),
        row(GAPS, agent_id="a", connection_id="interface:eth0:a:1", seq=3, bytes_lost=0),
        row(GAPS, agent_id="a", connection_id="interface:eth0:a:1", seq=5, bytes_lost=0),
        row(GAPS, agent_id="a", connection_id="a connection without exchanges", bytes_lost=1),
    ]
    found = loss.find(sources(gaps=gaps, exchanges=[row(EXCHANGES)]), FindingSettings())
    of_file, of_interface = found
    assert "date=2026-03-01/a-1-0000.parquet of the capture agent a was lost" in of_file.summary
    assert "77 bytes" in of_file.summary
    assert "dropped 5 packets of the interface eth0" in of_interface.summary
