"""A loss that is of no connection is reported as well: of a landing file, of an interface."""

from __future__ import annotations

from pipeline.analysis.incidents.incidents import grouped
from pipeline.analysis.incidents.losses import OF_UNKNOWN
from pipeline.analysis.rules.capture.capture_loss import CaptureLoss
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import DUPLICATE_FLOWS, EXCHANGES_WITH_BODIES, GAPS
from tests.pipeline.analysis.incidents.made import found as made
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import row


def test_files_that_were_lost_and_packets_that_were_dropped_are_reported() -> None:
    gaps = [
        row(GAPS, agent_id="a", connection_id="file:date=2026-03-01/a-1-0000.parquet", bytes_lost=77),
        row(GAPS, agent_id="a", connection_id="interface:eth0:a:1", seq=3, bytes_lost=0),
        row(GAPS, agent_id="a", connection_id="interface:eth0:a:1", seq=5, bytes_lost=0),
        row(GAPS, agent_id="a", connection_id="a connection without exchanges", bytes_lost=1),
    ]
    found = CaptureLoss.detect(sources(gaps=gaps, exchanges=[row(EXCHANGES_WITH_BODIES)]), finding_settings())
    of_connection, of_file, of_interface = found
    assert (of_connection.subject, of_connection.cluster) == ("a/connections without exchanges", "")
    assert "lost 1 byte in 1 place of 1 connection without any exchange" in of_connection.summary
    assert "date=2026-03-01/a-1-0000.parquet of the capture agent a was lost" in of_file.summary
    assert "77 bytes" in of_file.summary
    assert "dropped 5 packets of the interface eth0" in of_interface.summary


def test_a_copy_and_another_protocol_are_no_loss_of_unknown_connections() -> None:
    gaps = [
        row(GAPS, agent_id="a", connection_id="copy", bytes_lost=5),
        row(GAPS, agent_id="a", connection_id="web", bytes_lost=5, method="none"),
        row(GAPS, agent_id="a", connection_id="web", bytes_lost=0, method="speaks HTTP"),
    ]
    given = sources(gaps=gaps, all_copies=[row(DUPLICATE_FLOWS, connection_id="copy")])
    assert CaptureLoss.detect(given, finding_settings()) == []


def test_what_was_under_way_when_the_capture_began_is_no_loss() -> None:
    midway = row(GAPS, agent_id="a", connection_id="late", bytes_lost=5888, method="midway segment_start")
    exchanges = [row(EXCHANGES_WITH_BODIES, connection_id="late")]
    assert CaptureLoss.detect(sources(gaps=[midway], exchanges=exchanges), finding_settings()) == []
    lost = row(GAPS, agent_id="a", connection_id="late", bytes_lost=7, seq=3, method="segment_start")
    (found,) = CaptureLoss.detect(sources(gaps=[midway, lost], exchanges=exchanges), finding_settings())
    assert (found.details["gaps"], found.details["bytes_lost"]) == (1, 7)


def test_a_loss_without_exchanges_weakens_what_rests_on_silence() -> None:
    gaps = [row(GAPS, agent_id="a", connection_id="unread", bytes_lost=9)]
    (lost,) = CaptureLoss.detect(sources(gaps=gaps), finding_settings())
    silent = made("stopped", "g/t", group="g", topic="t", severity="critical", partitions=1, records_behind=7)
    rows = [silent, made("capture_loss", lost.subject, severity="warning", cluster="", **lost.details)]
    stopped = next(one for one in grouped(rows).incidents if one["rule"] == "stopped")
    assert OF_UNKNOWN in stopped["reasoning"]
