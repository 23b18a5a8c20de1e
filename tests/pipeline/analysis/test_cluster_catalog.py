"""Clusters by server and names by topic id: merging does not depend on the order of what is merged."""

from __future__ import annotations

from itertools import permutations

from pipeline.analysis.cluster_catalog import ClusterCatalog, Fact

A, B = "10.0.0.1:9092", "10.0.0.2:9092"


def fact(server: str, cluster: str | None, ts: int, topic_id: str | None = None, topic: str | None = None) -> Fact:
    return Fact(server, cluster, topic_id, topic, ts, ts)


def test_a_server_is_its_own_cluster_until_it_names_one() -> None:
    assert ClusterCatalog().cluster_at(A, 5) == A
    assert ClusterCatalog().merged([fact(A, "C", 10)]).cluster_at(A, 5) == "C"


def test_an_address_may_pass_to_another_cluster_and_back() -> None:
    catalog = ClusterCatalog().merged([fact(A, "C", 10), fact(A, "D", 30), fact(A, "D", 40), fact(A, "C", 60)])
    assert [catalog.cluster_at(A, ts) for ts in (0, 20, 30, 40, 41, 60, 99)] == ["C", "C", "D", "D", "C", "C", "C"]


def test_an_address_that_passes_for_good() -> None:
    catalog = ClusterCatalog().merged([fact(A, "C", 10), fact(A, "C", 20), fact(A, "D", 30)])
    assert [catalog.cluster_at(A, ts) for ts in (0, 20, 29, 30, 99)] == ["C", "C", "C", "D", "D"]


def test_merging_gives_the_same_in_any_order_and_any_cut() -> None:
    catalog = [fact(A, "C", 10), fact(A, None, 5, "id", "t"), fact(B, "C", 7, "id", "t"), fact(A, "D", 20)]
    whole = ClusterCatalog().merged(catalog)
    assert whole.topics.keys() == {("C", "id")}
    for order in permutations(catalog):
        one_by_one = ClusterCatalog()
        for item in order:
            one_by_one = one_by_one.merged([item])
        assert one_by_one == whole


def test_what_was_learned() -> None:
    before = ClusterCatalog().merged([fact(A, "C", 10)])
    after = before.merged([fact(B, "C", 11, "id", "t")])
    assert after.servers_changed(before) == [B]
    assert after.names_learned(before) == {"id": "t"}
    again = after.merged([fact(B, "C", 12, "id", "t")])
    assert (again.servers_changed(after), again.names_learned(after)) == ([], {})


def test_of_too_many_those_that_were_seen_last_stay() -> None:
    catalog = ClusterCatalog().merged(Fact(f"10.0.0.{n}:9092", f"c{n}", f"id{n}", f"t{n}", n, n + 1) for n in range(5))
    few = catalog.newest(2)
    assert set(few.brokers) == {("10.0.0.3:9092", "c3"), ("10.0.0.4:9092", "c4")}
    assert set(few.topics) == {("c3", "id3"), ("c4", "id4")}
    assert catalog.newest(5) is catalog
