"""What goes wrong with connections is found within three seconds of its last packet, while the capture continues.

Times are those of the capture: packets are taken in their order, none follows, and three seconds pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from pipeline.capture.landing.stores import LocalStore
from pipeline.capture.network.link import FIN, RST, Dissector
from pipeline.capture.packets.packet import Packet
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.run import CaptureRun
from pipeline.config.settings import StreamSettings
from pipeline.embedded.new_files import NewFiles
from pipeline.embedded.streaming_diagnoser import StreamingDiagnoser
from tests.captures.connections.record import HERE
from tests.captures.connections.stories import STORIES
from tests.captures.connections.story import Pair, Story
from tests.cases.test_cases import CASES
from tests.pipeline.analysis.rules.connections.test_unheard import asks_again

SOON_US = 3_000_000
LATER = ("old_address", "long_polls")
"""SYNs that are sent once, and requests that are given up: whether more follows is known later, or at the end."""
SICK = [one for one in STORIES if one.findings and one.name not in LATER]
OPEN_FOR_LONG = (
    "client_full", "server_full", "large_requests", "large_responses", "idle", "one_way", "mongodb_one_way", "away",
    "away_behind_handshakes", "mongodb_away", "host_cut", "host_shut_out", "rejected", "mongodb_rejected", "no_route",
    "rejected_amid_work",
)  # fmt: skip
OPEN = [one for one in SICK if one.name in OPEN_FOR_LONG]
"""Stories whose connections may stay open for long, and show what is wrong meanwhile."""
FAILED, OTHER = "connection_failed", "other_protocol"
CASE = {
    "advertised-listener/advertised_internal_name.pcap": (
        FAILED,
        "10.0.0.9:9092/advertised/consumer-orders-1/10.0.0.5",
    ),
    "advertised-listener/advertised_localhost.pcap": (FAILED, "10.0.0.9:9092/advertised/consumer-orders-1/10.0.0.5"),
    "advertised-listener/real_kafka_python.pcap": (FAILED, "127.0.0.1:29192/advertised/kp-1/127.0.0.1"),
    "advertised-listener/real_librdkafka.pcap": (FAILED, "127.0.0.1:29192/advertised/orders-1/127.0.0.1"),
    "client-closes-in-the-answer/client_closes.pcap.zst": ("connection_churn", "A/10.0.0.5"),
    "connection-refused/real_librdkafka.pcap": (FAILED, "127.0.0.1:29199/refused"),
    "connection-refused/refused.pcap": (FAILED, "10.0.0.9:9092/refused"),
    "connection-refused/syn_unanswered.pcap": (FAILED, "10.0.0.9:9092/unanswered"),
    "http-answers/http_probe.pcap": None,
    "http-answers/kafka_http_answers.pcap": (OTHER, "10.0.0.9:9092/Kafka/HTTP"),
    "http-answers/mongo_http_answers.pcap": (OTHER, "10.0.0.20:27017/MongoDB/HTTP"),
    "idle-connection-dropped/lb_idle_timeout.pcap": (FAILED, "10.0.0.9:9092/idle/producer-x/10.0.0.5"),
    "plaintext-to-tls-listener/plain_to_tls.pcap": (OTHER, "10.0.0.9:9093/Kafka/TLS"),
    "plaintext-to-tls-listener/real_librdkafka.pcap": (OTHER, "127.0.0.1:29196/Kafka/nothing"),
    "proxy-protocol/mongo_proxy_v1.pcap": None,
    "proxy-protocol/proxy_protocol_v2.pcap": None,
    "sasl-needed/real_kafka_python.pcap": (FAILED, "127.0.0.1:29193/sasl/kp-1/127.0.0.1"),
    "sasl-needed/real_librdkafka.pcap": (FAILED, "127.0.0.1:29193/sasl/orders-1/127.0.0.1"),
    "sasl-needed/sasl_needed.pcap": (FAILED, "10.0.0.9:9092/sasl/consumer-1/10.0.0.5"),
}
"""What is found in each; None: nothing is wrong."""


def loud_after(tmp_path: Path, packets: Iterable[Packet], *, by_blocks: bool = False) -> set[Pair]:
    """Rules and subjects above info once these packets have come, and none for three seconds."""
    with CaptureRun(LocalStore(tmp_path), agent_id="a") as run:
        if by_blocks:
            run.hurry()
        for packet in packets:
            run.take(packet)
            run.catch_up()
        run.add(run.agent.wait(SOON_US))
        run.publish()
    following, landed = StreamingDiagnoser(StreamSettings(), by_kernel=False), NewFiles(tmp_path).take()
    if landed is None:
        return set()  # TLS connections that stay open have no row
    following.add(*landed)
    following.judge()
    return {(row["rule"], row["subject"]) for row in following.findings if row["severity"] != "info"}


def test_a_client_that_its_server_does_not_reach(tmp_path: Path) -> None:
    flows = [asks_again(number) for number in range(3)]
    packets = sorted((packet for one in flows for packet in one.packets), key=lambda packet: packet.ts_us)
    assert loud_after(tmp_path, packets) == {("connection_failed", "10.0.0.9:9092/one-way")}


def without_ends(packets: Iterable[Packet]) -> list[Packet]:
    """Packets but those by which a side ends a connection."""
    dissector = Dissector()

    def is_end(packet: Packet) -> bool:
        segment = dissector.segment(packet)
        return segment is not None and bool(segment.flags & (FIN | RST))

    return [packet for packet in packets if not is_end(packet)]


@pytest.mark.parametrize("story", SICK, ids=lambda one: one.name)
def test_a_cause_is_found_before_the_capture_ends(tmp_path: Path, story: Story) -> None:
    assert loud_after(tmp_path, read_packets(str(story.capture(HERE)))) == story.named(story.findings)


@pytest.mark.parametrize("by_blocks", [False, True], ids=["packet by packet", "by blocks"])
@pytest.mark.parametrize("story", OPEN, ids=lambda one: one.name)
def test_a_cause_is_found_while_all_connections_stay_open(tmp_path: Path, story: Story, by_blocks: bool) -> None:
    packets = without_ends(read_packets(str(story.capture(HERE))))
    assert loud_after(tmp_path, packets, by_blocks=by_blocks) >= story.named(story.findings)


@pytest.mark.parametrize("change", [list, without_ends], ids=["whole", "open"])
@pytest.mark.parametrize("story", [one for one in STORIES if not one.findings], ids=lambda one: one.name)
def test_healthy_connections_show_nothing_meanwhile(
    tmp_path: Path, story: Story, change: Callable[[Iterable[Packet]], list[Packet]]
) -> None:
    assert loud_after(tmp_path, change(read_packets(str(story.capture(HERE))))) == set()


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are beside the checkout where they are kept")
@pytest.mark.parametrize(("path", "pair"), CASE.items(), ids=list(CASE))
def test_a_case_is_found_before_the_capture_ends(tmp_path: Path, path: str, pair: Pair | None) -> None:
    assert loud_after(tmp_path, read_packets(str(CASES / path))) == (set() if pair is None else {pair})
