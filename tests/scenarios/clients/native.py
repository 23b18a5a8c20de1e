"""franz-go and kafka-go (Go), kafkajs (Node), krafka and rdkafka (Rust): groups that commit each in its own way.

Sick: `franz-unmarked`, `kafkago-undone` and `krafka-unpolled` (KIP-848) read partition 0 on and never commit it.
`franz-paused` (KIP-848) and `krafka-halted` pause partition 0 and never resume it. `kafkajs-unresolved` never resolves
an offset of partition 0, so that the same records come again and again; `kafkajs-thrown` throws there, retries, gives
up and starts over. `franz-calm` is healthy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.scenarios import programs, rhythm
from tests.scenarios.clients.groups import Kind, play_healthy, play_sick
from tests.scenarios.rhythm import Clock
from tests.scenarios.truth import Truth

_LEFT_OUT = (
    *("franz-unmarked", "franz-paused", "kafkago-undone", "kafkajs-unresolved", "kafkajs-thrown"),
    *("krafka-unpolled", "krafka-halted"),
)


def findings(suffix: str) -> set[tuple[str, str]]:
    """What must be found at both rhythms."""
    partition = f"native-returns-{suffix}-0"
    left_out = {("partition_dropped_from_commits", f"{group}-{suffix}/{partition}") for group in _LEFT_OUT}
    return left_out | {("stalled", f"kafkajs-unresolved-{suffix}/{partition}")}


FINDINGS: dict[str, set[tuple[str, str]]] = {
    "sick_native_1s": findings("1s"),
    "sick_native_30s": findings("30s") | {("poison_record", "kafkajs-thrown-30s/native-returns-30s-0")},
}
POSSIBLE = {"sick_native_30s": {("stalled", "kafkajs-thrown-30s/native-returns-30s-0")}}


def build() -> None:
    """Build the programs before the scenario's clock runs."""
    programs.go_program("franz_group")
    programs.node_program("kafkajs_group")
    programs.rust_program("krafka_group")


def _kind(
    make: Callable[[str], tuple[str, ...]], program: str, version: Callable[[str], str], library: str, language: str
) -> Callable[..., Kind]:
    def kind(**options: Any) -> Kind:
        name = library.rpartition("/")[2]
        return Kind(partial(make, program), lambda: (name, language, version(library)), options)

    return kind


franz = _kind(programs.go_program, "franz_group", programs.go_version, "github.com/twmb/franz-go", "Go")
kafka_go = _kind(programs.go_program, "kafkago_group", programs.go_version, "github.com/segmentio/kafka-go", "Go")
kafkajs = _kind(programs.node_program, "kafkajs_group", programs.node_version, "kafkajs", "JavaScript")
krafka = _kind(programs.rust_program, "krafka_group", programs.rust_version, "krafka", "Rust")
rdkafka = _kind(programs.rust_program, "rdkafka_group", programs.rust_version, "rdkafka", "Rust")


def play_go(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Healthy: franz-go (cooperative, KIP-848) and kafka-go: commits by the library or by hand, each 1, 5, 30 s."""
    kinds = {
        "franz-auto": franz(),
        "franz-1s": franz(commit_ms=1000),
        "franz-30s": franz(commit_ms=30_000, assignor="server"),
        "kafkago-1s": kafka_go(commit_ms=1000, by_library=True),
        "kafkago-30s": kafka_go(commit_ms=30_000),
    }
    alone = frozenset({"franz-auto", "kafkago-1s"})
    play_healthy(bootstrap, truth, clock, "go-shipments", kinds, alone)


def play_node_and_rust(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Healthy: kafkajs, krafka (classic, KIP-848) and rdkafka: commits by the library or by hand, each 1, 5, 30 s."""
    kinds = {
        "kafkajs-auto": kafkajs(commits="library"),
        "kafkajs-30s": kafkajs(commit_ms=30_000),
        "krafka-1s": krafka(commit_ms=1000),
        "krafka-30s": krafka(commit_ms=30_000, protocol="consumer"),
        "rdkafka-30s": rdkafka(commit_ms=30_000),
    }
    alone = frozenset({"kafkajs-auto", "rdkafka-30s"})
    play_healthy(bootstrap, truth, clock, "native-invoices", kinds, alone)


def play_1s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Go, Node and Rust, commits each second: a partition never committed, never fetched, or read again and again."""
    play_sick(bootstrap, truth, clock, "native-returns-1s", _sick("1s", 1000), 3.0, rhythm.EACH_SECOND)


def play_30s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Go, Node and Rust, commits each 30 s: a partition never committed, never fetched, or read again and again."""
    play_sick(bootstrap, truth, clock, "native-returns-30s", _sick("30s", 30_000), 1.5, rhythm.EACH_30_SECONDS)


def _sick(suffix: str, commit_ms: int) -> dict[str, Kind]:
    by_hand = {"commit_ms": commit_ms}
    kinds = {
        "franz-calm": franz(**by_hand),
        "franz-unmarked": franz(**by_hand, sickness="worker"),
        "kafkago-undone": kafka_go(**by_hand, sickness="worker"),
        "krafka-unpolled": krafka(**by_hand, sickness="worker", protocol="consumer"),
        "franz-paused": franz(**by_hand, sickness="pause", assignor="server"),
        "krafka-halted": krafka(**by_hand, sickness="pause"),
        "kafkajs-unresolved": kafkajs(**by_hand, sickness="unresolved", work_ms=commit_ms // 4),
        "kafkajs-thrown": kafkajs(commits="library", sickness="throws"),
    }
    return {f"{name}-{suffix}": kind for name, kind in kinds.items()}
