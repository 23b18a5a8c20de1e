"""Servers whose cluster no message names are one cluster where a client reads at one what it commits at the other."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.catalog_tables import brokers, known_catalog, topics
from pipeline.analysis.cluster_catalog import ClusterCatalog, Fact, Seen
from pipeline.analysis.derive import derive
from pipeline.analysis.inferred_clusters import inferred_clusters
from pipeline.analysis.statements.exchanges import KafkaStatements, placed
from pipeline.commands.findings import what_was_looked_at
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded, diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import OFFSET_EVENTS
from tests.paths import CAPTURES
from tests.pipeline.analysis.rules.kafka.positions.stage import Stage
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import GROUP, owned, reads_on
from tests.pipeline.analysis.test_inferred_names import beat, exchanges_of, without_names
from tests.pipeline.rows import T0, arrow, row

LEADER, OTHER, COORDINATOR = "10.0.0.1:9092", "10.0.0.2:9092", "10.0.0.3:9092"
Row = dict[str, Any]


def said(kind: str, server: str, at: float, **values: Any) -> Row:
    known = {"server": server, "cluster": server, "client_id": "app", "client": "10.0.0.9:4000", "partition": 0}
    return row(OFFSET_EVENTS, kind=kind, ts=T0 + timedelta(seconds=at), **({"topic": "orders"} | known | values))


def fetched(at: int, server: str = LEADER, **values: Any) -> Row:
    return said("fetched", server, at, offset=at, next_offset=at + 1, **values)


def committed(at: int, server: str = COORDINATOR, **values: Any) -> Row:
    return said("committed", server, at, offset=at, **{"client": "10.0.0.9:4001", **values})


def clusters(*rows: Row, beats: pa.Table | None = None, catalog: ClusterCatalog | None = None) -> dict[str, str]:
    catalog = catalog or ClusterCatalog()
    events = placed(arrow(OFFSET_EVENTS, rows), catalog)
    members = KafkaStatements.of(exchanges_of() if beats is None else beats).subscriptions()
    found = inferred_clusters(events, members, catalog)
    assert all(seen.is_inferred for seen in found.values())
    return {server: seen.value for (server, _), seen in found.items()}


STATED = ClusterCatalog({(LEADER, "C"): Seen("C", 0, 9)})


def test_a_client_commits_at_its_coordinator_what_it_reads_at_the_leader() -> None:
    assert clusters(fetched(5), committed(9)) == {COORDINATOR: LEADER}
    assert clusters(fetched(5), committed(9), catalog=STATED) == {COORDINATOR: "C"}
    assert clusters(fetched(5), said("fetched_commit", COORDINATOR, 1)) == {COORDINATOR: LEADER}
    assert clusters(fetched(5), committed(9, LEADER)) == {}
    for other in ({"topic": "bills"}, {"partition": 1}, {"client_id": "b"}, {"client": "10.0.0.8:4001"}):
        assert clusters(fetched(5), committed(9, **other)) == {}


def test_leaders_and_coordinators_of_several_partitions_are_one_cluster() -> None:
    rows = [fetched(5), fetched(5, OTHER, partition=1), committed(9), committed(9, partition=1)]
    assert clusters(*rows) == {OTHER: LEADER, COORDINATOR: LEADER}


def test_who_reads_the_same_at_two_clusters_is_in_doubt() -> None:
    rows = [fetched(5), fetched(5, OTHER), committed(50), committed(60, "10.0.0.4:9092")]
    assert clusters(*rows) == {}
    known = ClusterCatalog({(LEADER, "C"): Seen("C", 0, 9), (OTHER, "D"): Seen("D", 0, 9)})
    mirrored = [fetched(5), fetched(5, OTHER, partition=1), committed(9), committed(9, partition=1)]
    assert clusters(*mirrored, catalog=known) == {}, "its other brokers are of two clusters"


def test_equal_offsets_tell_which_of_several_servers_it_is() -> None:
    moved = [fetched(at, LEADER if at < 10 else OTHER) for at in range(1, 20)]
    commits = [committed(at) for at in range(2, 20)]
    assert clusters(*moved, *commits) == {OTHER: LEADER, COORDINATOR: LEADER}, "the partition's leader is another one"
    elsewhere = [fetched(at + 500, OTHER) for at in range(1, 20)]
    assert clusters(*moved[:9], *elsewhere, *commits[:8]) == {COORDINATOR: LEADER}
    unnamed = [{**one, "topic": None, "topic_id": "id"} for one in moved[:9]]
    assert clusters(*unnamed, *commits[:8]) == {COORDINATOR: LEADER}
    assert clusters(*unnamed, commits[0]) == {}, "one offset may be equal by chance"
    assert clusters(*unnamed, *({**one, "error_code": 25} for one in commits)) == {}


def test_topic_ids_are_unique() -> None:
    given = exchanges_of(beat(1, None, ["id"]))
    assert clusters(fetched(5, topic=None, topic_id="id"), beats=given) == {"k:9092": LEADER}
    assert clusters(fetched(5, topic=None, topic_id="A" * 22), beats=exchanges_of(beat(1, None, ["A" * 22]))) == {}


def test_what_is_stated_replaces_what_was_inferred() -> None:
    inferred = ClusterCatalog(topics={(OTHER, "id"): Seen("orders", 1, 2)}).with_inferred_clusters(
        {(server, LEADER): Seen(LEADER, 1, 9, is_inferred=True) for server in (OTHER, COORDINATOR)}
    )
    assert inferred.cluster_at(OTHER, 5) == inferred.cluster_at(LEADER, 5) == LEADER
    assert list(inferred.topics) == [(LEADER, "id")]
    later = inferred.merged([Fact(server, "C", None, None, 20, 20) for server in (LEADER, COORDINATOR)])
    assert {server: later.cluster_at(server, 5) for server in (LEADER, OTHER, COORDINATOR)} == {
        LEADER: "C", OTHER: "C", COORDINATOR: "C",
    }  # fmt: skip
    assert [seen.is_inferred for _, seen in sorted(later.brokers.items())] == [False, True, False]
    assert known_catalog(brokers(later), topics(later)) == later


@pytest.mark.parametrize("stage", [reads_on(), owned()])
def test_a_group_is_judged_whose_coordinator_is_another_broker(stage: Stage) -> None:
    """Nothing in the capture names the cluster."""
    apart = stage.by_coordinator()
    dropped = "partition_dropped_from_commits", f"{GROUP}/orders-1"
    assert apart.findings()[dropped]["details"]["shape"] == stage.findings()[dropped]["details"]["shape"]


def test_a_report_says_what_is_inferred(tmp_path: Path) -> None:
    path = tmp_path / "apart.pcap"
    path.write_bytes(reads_on().by_coordinator().pcap())
    found = what_was_looked_at(diagnose(read_inputs([str(path)]), StreamSettings()))
    assert "No message names the cluster of 10.0.0.9:9092: what clients read and commit shows it." in found
    whole = diagnose(read_inputs([str(CAPTURES / "stuck_commit.pcap")]), StreamSettings())
    assert "names the cluster" not in what_was_looked_at(whole)


@pytest.mark.proof
@pytest.mark.parametrize(
    "name", sorted(str(path.relative_to(CAPTURES)) for path in CAPTURES.rglob("*.pcap*") if "mongodb" not in str(path))
)
def test_no_servers_are_joined_wrongly(name: str) -> None:
    whole = read_inputs([str(CAPTURES / name)])
    truth = derive(decoded(whole.frames), whole.gaps, StreamSettings(), "report").catalog
    landed, _ = without_names(name)
    found = derive(decoded(landed.frames), landed.gaps, StreamSettings(), "report").catalog
    for (server, cluster), seen in found.brokers.items():
        if seen.is_inferred:
            assert truth.cluster_at(server, seen.last_us) == truth.cluster_at(cluster, seen.last_us)
