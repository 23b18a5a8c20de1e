"""Packets crafted by scapy, in every encapsulation that the agent reads."""

from __future__ import annotations

from collections.abc import Callable

from scapy.contrib.erspan import ERSPAN_I, ERSPAN_II, ERSPAN_III, ERSPAN_PlatformSpecific
from scapy.contrib.etherip import EtherIP
from scapy.contrib.geneve import GENEVE, GeneveOptions
from scapy.contrib.mpls import MPLS, EoMCW
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting
from scapy.layers.ipsec import AH
from scapy.layers.l2 import GRE, LLC, SNAP, CookedLinux, CookedLinuxV2, Dot1AD, Dot1AH, Dot1Q, Dot3, Ether, Loopback
from scapy.layers.ppp import PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet as Scapy
from scapy.packet import Raw

MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
OUTER, OUTER6 = {"src": "192.0.2.1", "dst": "192.0.2.2"}, {"src": "2001:db8:9::1", "dst": "2001:db8:9::2"}
WIRE, BARE_WIRE = 101, 102
"""Labels of Ethernet pseudo-wires with and without a control word."""
INNER, INNER6 = {"src": "10.0.0.1", "dst": "10.0.0.2"}, {"src": "2001:db8::1", "dst": "2001:db8::2"}


def is_four(packet: Scapy) -> bool:
    return isinstance(packet, IP)


def ether(packet: Scapy, **macs: str) -> Scapy:
    return Ether(**{**MACS, **macs}) / packet


def ethertype(packet: Scapy) -> int:
    return 0x0800 if is_four(packet) else 0x86DD


TUNNELS: dict[str, Callable[[Scapy], Scapy]] = {
    "vxlan": lambda p: IP(**OUTER) / UDP(sport=5555, dport=4789) / VXLAN(vni=7, flags=8) / ether(p),
    "vxlan_linux_port": lambda p: IP(**OUTER) / UDP(sport=5555, dport=8472) / VXLAN(vni=7, flags=8) / ether(p),
    "vxlan_policy": lambda p: IP(**OUTER) / UDP(sport=5555, dport=4789) / VXLAN(vni=7, flags=0x88, gpid=3) / ether(p),
    "vxlan_over_ipv6": lambda p: IPv6(**OUTER6) / UDP(sport=5555, dport=4789) / VXLAN(vni=7, flags=8) / ether(p),
    "geneve": lambda p: IP(**OUTER) / UDP(sport=5555, dport=6081) / GENEVE(vni=7, proto=0x6558) / ether(p),
    "geneve_of_ip": lambda p: IP(**OUTER) / UDP(sport=5555, dport=6081) / GENEVE(vni=7, proto=ethertype(p)) / p,
    "geneve_options": lambda p: (
        IP(**OUTER) / UDP(sport=5555, dport=6081)
        / GENEVE(vni=7, proto=0x6558, options=[GeneveOptions(classid=1, type=2, data=bytes(12))]) / ether(p)
    ),
    "gre": lambda p: IP(**OUTER) / GRE(proto=ethertype(p)) / p,
    "gre_key_checksum_sequence": lambda p: (
        IP(**OUTER) / GRE(proto=ethertype(p), key_present=1, chksum_present=1, seqnum_present=1, key=9) / p
    ),
    "gre_key": lambda p: IP(**OUTER) / GRE(proto=ethertype(p), key_present=1, key=9) / p,
    "gre_bridge": lambda p: IPv6(**OUTER6) / GRE(proto=0x6558, key_present=1) / ether(p),
    "erspan_1": lambda p: IP(**OUTER) / GRE(proto=0x88BE) / ERSPAN_I() / ether(p),
    "erspan_2": lambda p: IP(**OUTER) / GRE(proto=0x88BE, seqnum_present=1) / ERSPAN_II(session_id=5) / ether(p),
    "erspan_3": lambda p: IP(**OUTER) / GRE(proto=0x22EB, seqnum_present=1) / ERSPAN_III(session_id=5) / ether(p),
    "erspan_3_subheader": lambda p: (
        IP(**OUTER) / GRE(proto=0x22EB, seqnum_present=1) / ERSPAN_III(o=1) / ERSPAN_PlatformSpecific() / ether(p)
    ),
    "ip_in_ip": lambda p: (IP(**OUTER, proto=4) if is_four(p) else IP(**OUTER, proto=41)) / p,
    "ip_in_ipv6": lambda p: IPv6(**OUTER6, nh=4 if is_four(p) else 41) / p,
    "ether_ip": lambda p: IP(**OUTER) / EtherIP() / ether(p),
    "mpls_in_ip": lambda p: IP(**OUTER, proto=137) / MPLS(label=16, s=1) / p,
    "authenticated": lambda p: IP(**OUTER, proto=51) / AH(nh=4 if is_four(p) else 41, icv=bytes(12), payloadlen=4) / p,
    "extension_headers": lambda p: (
        IPv6(**OUTER6) / IPv6ExtHdrHopByHop() / IPv6ExtHdrRouting() / IPv6ExtHdrDestOpt(nh=4 if is_four(p) else 41) / p
    ),
    "atomic_fragment": lambda p: IPv6(**OUTER6) / IPv6ExtHdrFragment(nh=4 if is_four(p) else 41, id=3) / p,
}  # fmt: skip
"""IP in IP, by what is between."""

FRAMES: dict[str, Callable[[Scapy], Scapy]] = {
    "ethernet": ether,
    "vlan": lambda p: Ether(**MACS) / Dot1Q(vlan=5) / p,
    "qinq": lambda p: Ether(**MACS) / Dot1AD(vlan=5) / Dot1Q(vlan=6) / p,
    "qinq_9100": lambda p: Ether(**MACS, type=0x9100) / Dot1Q(vlan=5) / Dot1Q(vlan=6) / p,
    "qinq_9200": lambda p: Ether(**MACS, type=0x9200) / Dot1Q(vlan=5) / Dot1Q(vlan=6) / p,
    "snap": lambda p: Dot3(**MACS) / LLC() / SNAP(OUI=0, code=ethertype(p)) / p,
    "mpls": lambda p: Ether(**MACS) / MPLS(label=16, s=0) / MPLS(label=17, s=1) / p,
    "mpls_pseudo_wire": lambda p: Ether(**MACS) / MPLS(label=WIRE, s=1) / EoMCW(seq=3) / ether(p),
    "mpls_pseudo_wire_bare": lambda p: Ether(**MACS) / MPLS(label=BARE_WIRE, s=1) / Raw(bytes(ether(p))),
    "pppoe": lambda p: Ether(**MACS) / PPPoE(sessionid=3) / PPP(proto=0x21 if is_four(p) else 0x57) / p,
    "provider_backbone": lambda p: Ether(**MACS) / Dot1AD(vlan=2) / Dot1AH(isid=4) / ether(p),
}
"""Ethernet, by what is between it and IP."""

LINK_LAYERS: dict[str, tuple[int, Callable[[Scapy], Scapy]]] = {
    "sll": (113, lambda p: CookedLinux(proto=ethertype(p)) / p),
    "sll_vlan": (113, lambda p: CookedLinux(proto=0x8100) / Dot1Q(vlan=5) / p),
    "sll2": (276, lambda p: CookedLinuxV2(proto=ethertype(p)) / p),
    "sll2_vlan": (276, lambda p: CookedLinuxV2(proto=0x8100) / Dot1Q(vlan=5) / p),
    "loopback": (0, lambda p: Loopback(type=2 if is_four(p) else 24) / p),
    "raw": (101, lambda p: p),
}


def tcp(*, version: int = 4, size: int = 300, port: int = 40_000) -> Scapy:
    network = IP(**INNER) if version == 4 else IPv6(**INNER6)
    return (
        network / TCP(sport=port, dport=9092, seq=port * 7, ack=9, flags="A") / Raw(bytes(i % 251 for i in range(size)))
    )
