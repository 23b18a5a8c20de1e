"""Packets crafted by scapy, in every encapsulation and in random stacks of them: what tshark sees in them, we see."""

from __future__ import annotations

import ipaddress
import random
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, fragment6
from scapy.layers.l2 import GRE, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet as Scapy
from scapy.packet import Raw

from pipeline.capture.network.link import MAX_TUNNELS, Dissector
from pipeline.capture.packets.packet import Packet
from tests.pipeline.capture.encapsulations import (
    BARE_WIRE,
    FRAMES,
    LINK_LAYERS,
    MACS,
    OUTER,
    OUTER6,
    TUNNELS,
    WIRE,
    ether,
    tcp,
)
from tests.pipeline.capture.reading import SMALL, original, packets_of, read_packets_of
from tests.pipeline.capture.wire import T0, enhanced, interface, section
from tests.requirements import require_tshark

_FIELDS = ("frame.number", "frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst",
           "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.len")  # fmt: skip
_DECODE_AS = ("udp.port==8472,vxlan", "ethertype==0x9200,vlan", f"mpls.label=={WIRE},pwethcw",
              f"mpls.label=={BARE_WIRE},pwethnocw")  # fmt: skip

Link = tuple[int, bytes]
"""Link type, and a packet of it."""


def captured(items: Sequence[Link], snap: int = 0) -> list[Packet]:
    """Each without its last ``snap`` bytes."""
    return [Packet(T0 + i, link, data[: len(data) - snap], len(data)) for i, (link, data) in enumerate(items)]


def ours(packets: Sequence[Packet]) -> list[str]:
    """A line a segment: number of its packet, addresses, ports, sequence number, payload bytes on the wire."""
    dissector, lines = Dissector(), []
    for number, packet in enumerate(packets, 1):
        segment = dissector.segment(packet)
        if segment is not None:
            source, destination = (ipaddress.ip_address(end[0]) for end in (segment.source, segment.destination))
            ports = segment.source[1], segment.destination[1]
            lines.append(" ".join(map(str, (number, source, destination, *ports, segment.seq, segment.length))))
    return lines


def tsharks(packets: Sequence[Packet], path: Path) -> list[str]:
    """The same lines as tshark prints them of the innermost segments."""
    require_tshark()
    links = sorted({p.linktype for p in packets})
    blocks = [section(), *map(interface, links), *(enhanced(p, number=links.index(p.linktype)) for p in packets)]
    path.write_bytes(b"".join(blocks))
    command = ["tshark", "-r", str(path), "-Y", "tcp", "--disable-protocol", "kafka", "-T", "fields"]
    command += ["-E", "occurrence=l", *(option for rule in _DECODE_AS for option in ("-d", rule))]
    command += [option for field in _FIELDS for option in ("-e", field)]
    lines = []
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        number, protocols, *addresses_and_tcp = line.split("\t")
        addresses, numbers = addresses_and_tcp[:4], addresses_and_tcp[4:]
        inner = next(layer for layer in reversed(protocols.split(":")) if layer in ("ip", "ipv6"))
        lines.append(" ".join([number, *(addresses[:2] if inner == "ip" else addresses[2:]), *numbers]))
    return lines


def pieces(packet: Scapy, identification: int) -> list[Scapy]:
    """Fragments of about 500 bytes."""
    if packet.version == 6:
        whole: Scapy = IPv6(bytes(packet))  # with its lengths and checksums
        header = IPv6ExtHdrFragment(nh=whole.nh, id=identification)
        return fragment6(IPv6(src=whole.src, dst=whole.dst) / header / whole.payload, 552)
    packet.id = identification
    return fragment(IP(bytes(packet)), 504)


@cache
def everything() -> dict[str, Link]:
    """IPv4 and IPv6 in each tunnel and frame, once."""
    packets: dict[str, Link] = {}
    for version in (4, 6):
        segment = tcp(version=version)
        for name, tunnel in TUNNELS.items():
            packets[f"{name}-{version}"] = (1, bytes(ether(tunnel(segment))))
        for name, frame in FRAMES.items():
            packets[f"{name}-{version}"] = (1, bytes(frame(segment)))
        for name, (link, wrap) in LINK_LAYERS.items():
            packets[f"{name}-{version}"] = (link, bytes(wrap(segment)))
    return packets


def stacks(seed: int, count: int) -> list[Link]:
    """Up to four tunnels in each other, in any frame on any link."""
    source, packets = random.Random(seed), []
    for port in range(1025, 1025 + count):
        packet: Scapy = tcp(version=source.choice((4, 6)), size=source.randrange(300), port=port)
        for _ in range(source.randrange(5)):
            packet = source.choice(list(TUNNELS.values()))(packet)
        link, wrap = source.choice([*LINK_LAYERS.values(), *((1, frame) for frame in FRAMES.values())])
        packets.append((link, bytes(wrap(packet))))
    return packets


@pytest.mark.parametrize("name", everything())
def test_the_segment_inside_is_found(name):
    link, data = everything()[name]
    for snap in (0, 100):
        (packet,) = captured([(link, data)], snap)
        dissector = Dissector()
        segment = dissector.segment(packet)
        assert segment is not None, dissector.skipped
        assert (segment.source[1], segment.destination[1], segment.seq) == (40_000, 9092, 280_000)
        assert (segment.payload, segment.length) == (bytes(i % 251 for i in range(300 - snap)), 300)


@pytest.mark.parametrize("snap", [0, 100])
def test_tshark_sees_the_same_in_each_encapsulation(tmp_path, snap):
    packets = captured(list(everything().values()), snap)
    lines = ours(packets)
    assert len(lines) == len(packets)
    assert tsharks(packets, tmp_path / "x.pcapng") == lines


@pytest.mark.parametrize("seed", range(3))
def test_tshark_sees_the_same_in_stacks_of_them(tmp_path, seed):
    packets = captured(stacks(seed, 200))
    lines = ours(packets)
    assert len(lines) == len(packets)
    assert tsharks(packets, tmp_path / "x.pcapng") == lines


@pytest.mark.parametrize("seed", range(3))
def test_tshark_sees_the_same_in_fragments(tmp_path, seed):
    """In any order, some twice, also of the packets of a tunnel."""
    source, packets = random.Random(seed), []
    for port in range(1025, 1075):
        packet = tcp(version=source.choice((4, 6)), size=source.randrange(600, 3000), port=port)
        tunnel = source.choice([None, TUNNELS["vxlan"], TUNNELS["vxlan_over_ipv6"], TUNNELS["gre"]])
        packet = tunnel(packet) if tunnel else packet
        parts = pieces(packet, port)
        for part in source.sample(parts, len(parts)):
            packets += [(1, bytes(ether(part)))] * source.choice((1, 1, 2))
    assert len(packets) > 100
    lines = ours(captured(packets))
    assert len(lines) == 50
    assert tsharks(captured(packets), tmp_path / "x.pcapng") == lines


@pytest.mark.parametrize("name", everything())
def test_what_is_cut_or_damaged_is_counted(name):
    link, data = everything()[name]
    header = len(data) - 300 - 6  # of the TCP header its window, checksum and urgent pointer are of no use
    for end in range(header):
        dissector = Dissector()
        assert dissector.segment(Packet(T0, link, data[:end], len(data))) is None
        assert sum(dissector.skipped.values()) == 1
    source = random.Random(name)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(source.randrange(1, 4)):
            damaged[source.randrange(header)] = source.randrange(256)
        dissector = Dissector()
        found = dissector.segment(Packet(T0, link, bytes(damaged), len(data)))
        dissector.finish()
        assert (found is None) == (sum(dissector.skipped.values()) == 1)


@pytest.mark.parametrize(
    ("ethertype", "layer"),
    [
        (0x8100, Dot1Q(type=0x8100)),
        (0x8847, MPLS(s=0)),
        (0x0800, IP(**OUTER, proto=4)),
        (0x86DD, IPv6(**OUTER6, nh=41)),
        (0x86DD, IPv6(**OUTER6, nh=60) / Raw(bytes([60, 0, 0, 0, 0, 0, 0, 0]) * 100)),
        (0x0800, IP(**OUTER, proto=47) / GRE(proto=0x0800)),
    ],
    ids=["vlan", "mpls", "ipv4", "ipv6", "extension_headers", "gre"],
)
def test_layers_without_end(ethertype, layer):
    data = bytes(Ether(**MACS, type=ethertype)) + bytes(layer) * 1000
    dissector = Dissector()
    assert dissector.segment(Packet(T0, 1, data, len(data))) is None
    assert dissector.skipped == {"nested_too_deep": 1}


def test_tunnels_as_deep_as_allowed():
    packet = tcp()
    for _ in range(MAX_TUNNELS):
        packet = TUNNELS["gre"](packet)
    for wrap, found in ((ether, True), (lambda p: ether(TUNNELS["gre"](p)), False)):
        data = bytes(wrap(packet))
        assert (Dissector().segment(Packet(T0, 1, data, len(data))) is not None) == found


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (IP(**OUTER) / UDP(sport=4789, dport=53) / Raw(bytes(99)), "not_tcp"),
        (IP(**OUTER) / UDP(sport=1, dport=4789) / VXLAN(flags=0) / ether(tcp()), "not_tcp"),
        (IP(**OUTER) / UDP(sport=1, dport=6081) / Raw(b"\x40" + bytes(99)), "not_tcp"),
        (IP(**OUTER, proto=47) / GRE(version=1, proto=0x0800) / tcp(), "gre_version"),
        (IP(**OUTER, proto=47) / GRE(proto=0x22EB) / Raw(b"\x30" + bytes(99)), "erspan_version"),
        (IP(**OUTER, proto=47) / GRE(proto=0x0806) / Raw(bytes(99)), "not_ip"),
        (IP(**OUTER, proto=50) / Raw(bytes(99)), "encrypted_ipsec"),
    ],
    ids=["udp", "no_vxlan", "no_geneve", "pptp", "erspan", "arp_in_gre", "ipsec"],
)
def test_what_holds_no_segment_is_counted_by_reason(packet, reason):
    data = bytes(ether(packet))
    dissector = Dissector()
    assert dissector.segment(Packet(T0, 1, data, len(data))) is None
    assert dissector.skipped == {reason: 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vxlan", "erspan_2"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0), (1,)], ids=["plain_first", "mirror_first", "mirror_only"])
def test_a_connection_mirrored_and_captured_in_plain_is_one(tmp_path, name, order):
    packets = []
    for plain in packets_of(SMALL):
        mirrored = bytes(ether(TUNNELS[name](IP(plain.data[14:]))))
        both = plain, plain._replace(data=mirrored, original_length=len(mirrored))
        packets += [both[i] for i in order]
    frames, gaps, _ = read_packets_of(tmp_path, packets)
    assert frames == original(SMALL)
    assert not gaps
