"""A connection that two agents joined midway has a row of each, of which one counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import CONNECTIONS
from tests.captures.variants import joined_after, pcap_of
from tests.paths import CAPTURES


def test_connections_that_two_agents_joined_midway_count_once(tmp_path: Path) -> None:
    for agent, share in (("first", 0.2), ("second", 0.35)):
        capture = tmp_path / f"{agent}.pcap"
        capture.write_bytes(joined_after(pcap_of(CAPTURES / "changing_hands.pcap"), share))
        read_capture([capture], tmp_path / "landing", agent_id=agent)
    rows = (
        diagnose(read_inputs([str(tmp_path / "landing")]), StreamSettings()).tables[CONNECTIONS.full_name].to_pylist()
    )
    each = Counter(row["client_port"] for row in rows)
    counted = Counter(row["client_port"] for row in rows if row["counted_connection_id"] is None)
    assert sorted(each.values(), reverse=True)[:8] == [2] * 7 + [1]
    assert counted == dict.fromkeys(each, 1)
