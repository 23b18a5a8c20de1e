"""Conversations written by their specifications, and bytes that follow none."""

from __future__ import annotations

import json
import random
import struct

from tests.pipeline.capture.other_protocols.conversation import Conversation, uint32, utf


def ssh(source: random.Random) -> Conversation:
    """RFC 4253: banners, then packets behind a length of four bytes: key exchange in plain, what follows encrypted."""
    names = b"".join(uint32(b"curve25519-sha256,ecdh-sha2-nistp256" * n) for n in (1, 2, 1, 1, 1, 1, 1, 1, 0, 0))

    def packet(payload: bytes) -> bytes:
        padding = 16 - (5 + len(payload)) % 16 + 16
        return uint32(bytes([padding]) + payload + source.randbytes(padding))

    sent = [(0, b"SSH-2.0-OpenSSH_9.2p1\r\n"), (1, b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")]
    sent += [(side, packet(b"\x14" + source.randbytes(16) + names + bytes(5))) for side in (0, 1)]
    sent.append((0, packet(b"\x1e" + uint32(source.randbytes(32)))))
    sent.append((1, packet(b"\x1f" + uint32(source.randbytes(51)) + uint32(source.randbytes(32)))))
    sent += [(side, packet(b"\x15")) for side in (0, 1)]
    return sent + [(i % 2, source.randbytes(source.randrange(36, 800))) for i in range(20)]


def postgresql(source: random.Random) -> Conversation:
    """Protocol 3.0: startup, password, queries with rows."""

    def message(kind: bytes, body: bytes = b"") -> bytes:
        return kind + struct.pack(">I", 4 + len(body)) + body

    startup = struct.pack(">I", 196608) + b"user\0shop\0database\0shop\0application_name\0psql\0\0"
    sent = [(0, struct.pack(">I", 4 + len(startup)) + startup), (1, message(b"R", struct.pack(">I", 5) + b"salt"))]
    sent.append((0, message(b"p", b"md5" + source.randbytes(16).hex().encode() + b"\0")))
    sent.append((1, message(b"R", bytes(4)) + message(b"S", b"server_version\x0016.2\0") + message(b"Z", b"I")))
    for _ in range(10):
        sent.append((0, message(b"Q", b"SELECT id, name FROM orders\0")))
        column = b"id\0" + struct.pack(">IHIHIH", 16384, 1, 23, 4, 0xFFFFFFFF, 0)
        rows = [struct.pack(">HI", 1, 4) + source.randbytes(4) for _ in range(source.randrange(30))]
        answer = message(b"T", b"\0\1" + column) + b"".join(message(b"D", row) for row in rows)
        sent.append((1, answer + message(b"C", b"SELECT 3\0") + message(b"Z", b"I")))
    return sent


def mysql(source: random.Random) -> Conversation:
    """Length of three bytes, little-endian, and a sequence number."""

    def packet(number: int, body: bytes) -> bytes:
        return struct.pack("<I", len(body) | number << 24) + body

    sent = [(1, packet(0, b"\x0a8.0.36\0" + source.randbytes(8) + bytes(20) + b"mysql_native_password\0"))]
    sent.append((0, packet(1, struct.pack("<IIB", 0x0FA685, 1 << 24, 45) + bytes(23) + b"root\0\x14" + bytes(20))))
    sent.append((1, packet(2, bytes(7))))
    for _ in range(10):
        sent.append((0, packet(0, b"\x03SELECT * FROM orders")))
        rows = [packet(3 + i, bytes([5]) + source.randbytes(5)) for i in range(source.randrange(20))]
        sent.append((1, packet(1, b"\x01") + packet(2, b"\x03def") + b"".join(rows) + packet(30, b"\xfe\0\0\2\0")))
    return sent


def redis(source: random.Random) -> Conversation:
    """RESP."""
    sent: Conversation = []
    for i in range(20):
        value = source.randbytes(source.randrange(300))
        sent.append((0, b"*3\r\n$3\r\nSET\r\n$%d\r\nkey:%d\r\n$%d\r\n%s\r\n" % (len(f"key:{i}"), i, len(value), value)))
        sent.append((1, b"+OK\r\n"))
    return sent


def mongodb(source: random.Random) -> Conversation:
    """OP_MSG with BSON, lengths little-endian."""
    sent: Conversation = []
    for number in range(1, 20):
        for side, fields in (
            (0, b"\x02find\0\7\0\0\0orders\0\x02$db\0\5\0\0\0shop\0"),
            (1, b"\x01ok\0" + bytes(6) + b"\xf0?"),
        ):
            blob = b"\x05blob\0" + struct.pack("<IB", 20, 0) + source.randbytes(20)
            document = struct.pack("<I", len(fields + blob) + 5) + fields + blob + b"\0"
            body = bytes(5) + document
            sent.append((side, struct.pack("<4I", 16 + len(body), number, side * number, 2013) + body))
    return sent


def zookeeper(source: random.Random) -> Conversation:
    """Jute: a length of four bytes, then xid and type, paths, and a Stat full of zeros and small numbers."""
    sent = [(0, uint32(struct.pack(">iqiqi", 0, 0, 30000, 0, 16) + bytes(17)))]
    sent.append((1, uint32(struct.pack(">iiqi", 0, 30000, source.getrandbits(60), 16) + source.randbytes(16) + b"\0")))
    for xid in range(1, 40):
        kind = source.choice((3, 4, 8, 12, 11))  # exists, getData, getChildren, getChildren2, ping
        path = f"/brokers/topics/orders/partitions/{xid}".encode()
        body = b"" if kind == 11 else uint32(path) + b"\0"
        sent.append((0, uint32(struct.pack(">ii", -2 if kind == 11 else xid, kind) + body)))
        stat = struct.pack(">qqqqiiiqiiq", 5, 5, 1700, 1700, 0, 0, 0, 0, 3, 0, xid)
        sent.append((1, uint32(struct.pack(">iqi", xid, 100 + xid, 0) + uint32(b"data") + stat)))
    return sent


def thrift(source: random.Random) -> Conversation:
    """Framed transport, binary protocol."""
    sent: Conversation = []
    for number in range(1, 30):
        call = struct.pack(">I", 0x80010001) + uint32(b"getOrder") + struct.pack(">I", number)
        sent.append((0, uint32(call + struct.pack(">BHI", 8, 1, source.randrange(99)) + b"\0")))
        reply = struct.pack(">I", 0x80010002) + uint32(b"getOrder") + struct.pack(">I", number)
        sent.append((1, uint32(reply + b"\x0b\0\0" + uint32(source.randbytes(source.randrange(50))) + b"\0")))
    return sent


def hadoop_rpc(source: random.Random) -> Conversation:
    """Hadoop RPC version 9: lengths of four bytes around protobuf."""
    sent: Conversation = [(0, b"hrpc\x09\0\0" + uint32(b"\x1e\x08\x02\x10\0\x18\x05\x22\x10" + source.randbytes(16)))]
    for number in range(30):
        call = bytes([30, 8, 2, 16, 0, 24, number * 2, 34, 16]) + source.randbytes(16) + b"\x0agetListing"
        sent += [(0, uint32(call)), (1, uint32(bytes([10, 8, number * 2, 16, 0, 24, 9]) + source.randbytes(40)))]
    return sent


def pulsar(source: random.Random) -> Conversation:
    """Total size and command size, four bytes each, and protobuf."""
    sent: Conversation = []
    for number in range(40):
        command = b"\x08\x06\x32" + bytes([8, 8, 1, 16, number, 24, 1, 32, 1])
        sent += [(0, uint32(uint32(command) + source.randbytes(source.randrange(60)))), (1, uint32(uint32(command)))]
    return sent


def rocketmq(source: random.Random) -> Conversation:
    """Total length, header length (four bytes each), a header of JSON, a body."""
    sent: Conversation = []
    for number in range(30):
        for side in (0, 1):
            header = json.dumps({"code": 105, "flag": side, "language": "JAVA", "opaque": number}).encode()
            sent.append((side, uint32(uint32(header) + source.randbytes(source.randrange(100)))))
    return sent


def java_utf(source: random.Random) -> Conversation:
    """As a Java program may write it: length, kind, flags, call number, a name by writeUTF, arguments."""
    sent: Conversation = []
    for number in range(1, 40):
        name = source.choice(("getOrder", "putOrder", "listOrders", "x"))
        call = struct.pack(">hhi", source.randrange(30), source.randrange(4), number) + utf(name)
        sent.append((0, uint32(call + struct.pack(">ii", source.randrange(9), number) + utf("orders") + b"\0\0\0")))
        sent.append((1, uint32(struct.pack(">i", number) + utf("ok"))))
    return sent


def onc_rpc(source: random.Random) -> Conversation:
    """RFC 5531 with record marks (NFS)."""
    sent: Conversation = []
    for number in range(40):
        call = struct.pack(">IIIIII", number, 0, 2, 100003, 3, 1) + bytes(16) + uint32(source.randbytes(32))
        reply = struct.pack(">III", number, 1, 0) + bytes(12) + source.randbytes(84)
        sent += [(side, struct.pack(">I", 1 << 31 | len(data)) + data) for side, data in ((0, call), (1, reply))]
    return sent


def smb(source: random.Random) -> Conversation:
    """SMB 2 over TCP: a length of four bytes."""
    sent: Conversation = []
    for number in range(30):
        for side in (0, 1):
            header = b"\xfeSMB" + struct.pack("<HHIHHIIQ", 64, 1, 0, 8, 1, side, 0, number) + bytes(32)
            sent.append((side, uint32(header + source.randbytes(source.randrange(200)))))
    return sent


def amqp(source: random.Random) -> Conversation:
    """AMQP 0-9-1: type, channel, size, payload, an end mark."""

    def frame(kind: int, payload: bytes) -> bytes:
        return struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce"

    sent: Conversation = [(0, b"AMQP\0\0\x09\x01"), (1, frame(1, b"\0\x0a\0\x0a\0\x09" + bytes(40)))]
    for _ in range(20):
        publish = frame(1, struct.pack(">HHH", 60, 40, 0) + b"\x06orders\x03key\0")
        sent.append((0, publish + frame(2, bytes(14)) + frame(3, source.randbytes(source.randrange(300)))))
        sent.append((1, frame(1, struct.pack(">HHQB", 60, 80, 1, 0))))
    return sent


def cassandra(source: random.Random) -> Conversation:
    """CQL version 4."""
    sent: Conversation = []
    for number in range(30):
        query = uint32(b"SELECT * FROM orders WHERE id = ?") + struct.pack(">HB", 1, 0)
        sent.append((0, struct.pack(">BBHB", 4, 0, number, 7) + uint32(query)))
        sent.append((1, struct.pack(">BBHB", 0x84, 0, number, 8) + uint32(bytes(4) + source.randbytes(60))))
    return sent


def ldap(source: random.Random) -> Conversation:
    """BER."""
    sent: Conversation = []
    for number in range(1, 30):
        bind = b"\x02\x01" + bytes([number]) + b"\x60\x10\x02\x01\x03\x04\x04cn=x\x80\x05" + source.randbytes(5)
        sent += [
            (0, b"\x30" + bytes([len(bind)]) + bind),
            (1, b"\x30\x0c\x02\x01" + bytes([number]) + b"\x61\7\n\1\0\4\0\4\0"),
        ]
    return sent


def mqtt(source: random.Random) -> Conversation:
    """Version 3.1.1."""
    sent: Conversation = [(0, b"\x10\x13\0\4MQTT\4\2\0\x3c\0\7sensor1"), (1, b"\x20\2\0\0")]
    for number in range(1, 30):
        body = utf("a/b") + struct.pack(">H", number) + source.randbytes(source.randrange(60))
        sent += [(0, b"\x32" + bytes([len(body)]) + body), (1, b"\x40\2" + struct.pack(">H", number))]
    return sent


def dns(source: random.Random) -> Conversation:
    """Over TCP: a length of two bytes."""
    sent: Conversation = []
    for _ in range(20):
        question = struct.pack(">6H", source.getrandbits(16), 0x100, 1, 0, 0, 0) + b"\6broker\7example\0\0\1\0\1"
        sent += [(side, struct.pack(">H", len(question)) + question) for side in (0, 1)]
    return sent


def length_and_noise(source: random.Random) -> Conversation:
    """Random bytes behind a length of four bytes."""
    return [(i % 2, uint32(source.randbytes(source.randrange(1, 300)))) for i in range(30)]


def length_and_small_numbers(source: random.Random) -> Conversation:
    """The bytes that Kafka's headers are made of, at random, behind a length of four bytes."""
    alphabet = b"\0\0\0\0\1\2\3\4\x08\x12\xffabc"
    return [(i % 2, uint32(bytes(source.choices(alphabet, k=source.randrange(10, 120))))) for i in range(30)]


def length_and_zeros(source: random.Random) -> Conversation:
    return [(i % 2, uint32(bytes(source.randrange(100)))) for i in range(30)]


def noise(source: random.Random) -> Conversation:
    return [(i % 2, source.randbytes(source.randrange(1, 3000))) for i in range(10)]


def zeros(source: random.Random) -> Conversation:
    return [(i % 2, bytes(source.randrange(1, 3000))) for i in range(10)]


SPECIFIED = (ssh, postgresql, mysql, redis, zookeeper, thrift, hadoop_rpc, pulsar, rocketmq, java_utf, onc_rpc,
             smb, amqp, cassandra, ldap, mqtt, dns, length_and_noise, length_and_small_numbers, length_and_zeros, noise,
             zeros)  # fmt: skip
"""Written by their specifications."""
