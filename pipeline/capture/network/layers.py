"""What is in front of an IP packet: link layers, tags and labels, and the tunnels of mirrored traffic.

Every layer is a function of the packet's bytes and its own offset; it gives the ethertype of what follows and where it
begins. A layer that is cut off raises IndexError or struct.error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Literal

IPV4 = 0x0800
IPV6 = 0x86DD
_ETHERNET = 0x6558  # transparent Ethernet bridging
_VLAN_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)
_MPLS = 0x8847
_MPLS_MULTICAST = 0x8848
_PPPOE_SESSION = 0x8864
_PROVIDER_BACKBONE = 0x88E7  # 802.1ah
_ERSPAN_3 = 0x22EB
_ERSPAN = 0x88BE

_AF_INET = 2
_AF_INET6 = frozenset((10, 23, 24, 28, 30))  # Linux, Windows, NetBSD, FreeBSD, Darwin
_PPP_PROTOCOLS = {0x0021: IPV4, 0x0057: IPV6, 0x0281: _MPLS}
_GRE_FIELDS = (0x8000, 0x2000, 0x1000)  # checksum, key, sequence number: 4 bytes each if the flag is set
_GRE_ROUTING_OR_VERSION = 0x4007
_UDP_HEADER = 8
_PKTAP_PACKET = 1  # a packet follows; 0: nothing does
_PKTAP_SHORTEST, _PKTAP_WHOLE, _PKTAP_LONGEST = 12, 108, 4096  # bytes: the fields that are read; all that Apple writes
_PKTAP_LINKS = (149, 258)
_LARGEST_LINK = 400
"""Link types are numbered below it; what a packet states beyond it is not counted by its number."""

_UINT16 = struct.Struct("!H")
_UINT32 = struct.Struct("!I")

Layer = Callable[[bytes, int], tuple[int, int]]
"""Bytes of the packet and offset of the layer; ethertype and offset of what follows."""


class Skip(Exception):  # noqa: N818 - not an error: the packet is of no use to us
    """Why a packet gives no segment."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _ethernet(data: bytes, at: int) -> tuple[int, int]:
    ethertype: int = _UINT16.unpack_from(data, at + 12)[0]
    if ethertype > 1500:
        return ethertype, at + 14
    return _llc(data, at + 14)  # IEEE 802.3: a length, and LLC behind it


def _llc(data: bytes, at: int) -> tuple[int, int]:
    if data[at : at + 6] != b"\xaa\xaa\x03\x00\x00\x00":  # SNAP with an ethertype
        raise Skip("not_ip")
    return _UINT16.unpack_from(data, at + 6)[0], at + 8


def _linux_cooked(data: bytes, at: int) -> tuple[int, int]:
    return _UINT16.unpack_from(data, at + 14)[0], at + 16


def _linux_cooked_2(data: bytes, at: int) -> tuple[int, int]:
    return _UINT16.unpack_from(data, at)[0], at + 20


def _bsd_loopback(data: bytes, at: int) -> tuple[int, int]:
    """The address family in the byte order of the capturing host (LOOP: network order)."""
    family = _UINT32.unpack_from(data, at)[0]
    if family > 0xFFFF:
        family = int.from_bytes(data[at : at + 4], "little")
    if family == _AF_INET:
        return IPV4, at + 4
    if family in _AF_INET6:
        return IPV6, at + 4
    raise Skip("not_ip")


def _raw_ip(data: bytes, at: int) -> tuple[int, int]:
    version = data[at] >> 4
    if version == 4:
        return IPV4, at
    if version == 6:
        return IPV6, at
    raise Skip("not_ip")


def _pktap(data: bytes, at: int) -> tuple[int, int]:
    """Apple's header of ``tcpdump -i any`` and ``-i pktap``: its length, what follows it, and its link type.

    Numbers are in the byte order of the capturing host: little-endian, but for Macs older than this header.
    """
    order: Literal["little", "big"] = (
        "little" if int.from_bytes(data[at : at + 4], "little") <= _PKTAP_LONGEST else "big"
    )
    length, following, link = (_number(data, at + place, order) for place in (0, 4, 8))
    if not _PKTAP_SHORTEST <= length <= _PKTAP_LONGEST:
        raise Skip("bad_pktap_header")
    if following != _PKTAP_PACKET:
        raise Skip("not_ip")
    inner = LINKS.get(link)
    if inner is None or link in _PKTAP_LINKS:
        raise Skip(f"link_type_{link}" if link <= _LARGEST_LINK else "bad_pktap_header")
    return inner(data, at + length)


def _user_2(data: bytes, at: int) -> tuple[int, int]:
    """Apple's header had this number before 258 was given to it; others use the number for their own link layers."""
    length, following = (_number(data, at + place, "little") for place in (0, 4))
    if not _PKTAP_WHOLE <= length <= _PKTAP_LONGEST or following != _PKTAP_PACKET:
        raise Skip("link_type_149")
    return _pktap(data, at)


def _number(data: bytes, at: int, order: Literal["little", "big"]) -> int:
    if at + 4 > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + 4], order)


def _vlan(data: bytes, at: int) -> tuple[int, int]:
    ethertype: int = _UINT16.unpack_from(data, at + 2)[0]
    return (ethertype, at + 4) if ethertype > 1500 else _llc(data, at + 4)


def _provider_backbone(_: bytes, at: int) -> tuple[int, int]:
    return _ETHERNET, at + 4


def _pppoe(data: bytes, at: int) -> tuple[int, int]:
    return _PPP_PROTOCOLS.get(_UINT16.unpack_from(data, at + 6)[0], 0), at + 8


def _mpls(data: bytes, at: int) -> tuple[int, int]:
    """Labels do not show what follows the last one: IP by its version, as routers guess (RFC 4928), or a pseudo-wire.

    An Ethernet pseudo-wire has a control word (RFC 4385) that begins with 0; without one, the destination address may.
    """
    is_last, at = data[at + 2] & 1, at + 4
    if not is_last:
        return _MPLS, at
    version = data[at] >> 4
    if version == 4:
        return IPV4, at
    if version == 6:
        return IPV6, at
    if version == 0 and (_holds_known(data, at + 4) or not _holds_known(data, at)):
        at += 4
    return _ETHERNET, at


def _holds_known(data: bytes, at: int) -> bool:
    """Whether an Ethernet frame at this place holds something that we know."""
    ethertype = _UINT16.unpack_from(data, at + 12)[0]
    return ethertype in (IPV4, IPV6) or ethertype in LAYERS


def _erspan(data: bytes, at: int) -> tuple[int, int]:
    version = data[at] >> 4
    if version == 1:  # type II
        return _ETHERNET, at + 8
    if version != 2:
        raise Skip("erspan_version")
    frame_type, has_subheader = data[at + 10] >> 2 & 0x1F, data[at + 11] & 1
    at += 20 if has_subheader else 12
    return _raw_ip(data, at) if frame_type == 2 else (_ETHERNET, at)


def _gre(data: bytes, at: int) -> tuple[int, int]:
    """RFC 2784 and 2890; ERSPAN without a sequence number is type I: an Ethernet frame without a header."""
    flags, ethertype = struct.unpack_from("!HH", data, at)
    if flags & _GRE_ROUTING_OR_VERSION:
        raise Skip("gre_version")
    has_sequence = flags & 0x1000
    at += 4 + 4 * sum(bool(flags & field) for field in _GRE_FIELDS)
    return (_ETHERNET if ethertype == _ERSPAN and not has_sequence else ethertype), at


def _udp(data: bytes, at: int) -> tuple[int, int]:
    layer = _UDP_TUNNELS.get(_UINT16.unpack_from(data, at + 2)[0])
    if layer is None:
        raise Skip("not_tcp")
    return layer(data, at + _UDP_HEADER)


def _vxlan(data: bytes, at: int) -> tuple[int, int]:
    """RFC 7348. Without the flag of a valid network identifier it is something else."""
    if not data[at] & 0x08:
        raise Skip("not_tcp")
    return _ETHERNET, at + 8


def _geneve(data: bytes, at: int) -> tuple[int, int]:
    """RFC 8926: version (2 bits), options length (6 bits, in words of 4 bytes)."""
    if data[at] >> 6:
        raise Skip("not_tcp")
    return _UINT16.unpack_from(data, at + 2)[0], at + 8 + (data[at] & 0x3F) * 4


_UDP_TUNNELS: Mapping[int, Layer] = {4789: _vxlan, 8472: _vxlan, 6081: _geneve}

LINKS: Mapping[int, Layer] = {
    0: _bsd_loopback,
    1: _ethernet,
    12: _raw_ip,
    14: _raw_ip,
    101: _raw_ip,
    108: _bsd_loopback,
    113: _linux_cooked,
    149: _user_2,
    228: lambda _, at: (IPV4, at),
    229: lambda _, at: (IPV6, at),
    258: _pktap,
    276: _linux_cooked_2,
}
"""By LINKTYPE_ number."""

LAYERS: Mapping[int, Layer] = {
    **dict.fromkeys(_VLAN_TAGS, _vlan),
    0x0004: _llc,  # in a Linux cooked header
    _ETHERNET: _ethernet,
    _MPLS: _mpls,
    _MPLS_MULTICAST: _mpls,
    _PPPOE_SESSION: _pppoe,
    _PROVIDER_BACKBONE: _provider_backbone,
    _ERSPAN: _erspan,
    _ERSPAN_3: _erspan,
}
"""By ethertype: what is neither IPv4 nor IPv6 but may hold it."""

TUNNELS: Mapping[int, Layer] = {
    4: lambda _, at: (IPV4, at),
    17: _udp,
    41: lambda _, at: (IPV6, at),
    47: _gre,
    97: lambda _, at: (_ETHERNET, at + 2),  # EtherIP
    137: _mpls,
}
"""By IP protocol number."""
