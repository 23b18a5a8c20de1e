"""Recorded Kafka messages spoken over real TLS: with the keys they land as they were sent, without them they do not."""

from __future__ import annotations

import json
import random
import re
import ssl
import struct
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoder.model import Frame, FrameFlags
from pipeline.capture.network.link import RST, SYN, Dissector
from pipeline.capture.packets.packet import CaptureError, Packet
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.one_capture import frames_of
from pipeline.cli import app
from tests.pipeline.capture.landing.test_landing import everything
from tests.pipeline.capture.reading import SMALL, read
from tests.pipeline.capture.test_cli import run
from tests.pipeline.capture.tls_peers import SERVER_NAME, Dialogue, Recording, record
from tests.pipeline.capture.wire import block, enhanced, interface, pcap, prefixed, produce, request, response, section
from tests.requirements import require_openssl, require_tcpdump, require_tshark

pytestmark = pytest.mark.slow

LARGE: Dialogue = [
    (0, request(1)),
    (1, response(1, bytes(300_000))),
    (0, produce(2, acks=1, fill=30_000)),
    (1, response(2)),
    (0, request(3)),
    (1, response(3)),
]

KINDS = {
    "1.3": (ssl.TLSVersion.TLSv1_3, None, False),
    "1.3_resumed": (ssl.TLSVersion.TLSv1_3, None, True),
    "1.2": (ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-CHACHA20-POLY1305", False),
    "1.2_resumed": (ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-AES128-GCM-SHA256", True),
    "1.2_cbc": (ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-AES256-SHA384", False),
}


@cache
def dialogues() -> list[Dialogue]:
    """What the clients and brokers of a capture sent to each other, and large messages."""
    talks: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for frame in frames_of(SMALL, payload_policy="full"):
        assert isinstance(frame, Frame)
        talks[frame.connection_id].append((int(frame.direction == "response"), prefixed(frame.frame)))
    return [*talks.values(), LARGE]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Records each of KINDS once."""
    require_tcpdump()
    require_tshark()
    require_openssl()

    @cache
    def recording(name: str) -> Recording:
        version, ciphers, resume = KINDS[name]
        return record(tmp_path_factory.mktemp("tls"), dialogues(), version, ciphers=ciphers, resume=resume)

    return recording


@pytest.fixture
def recording(recorded) -> Recording:
    return recorded("1.3")


def sent() -> list[list[tuple[str, bytes]]]:
    return [[(("request", "response")[side], data[4:]) for side, data in dialogue] for dialogue in dialogues()]


def landed(frames: Sequence[Frame]) -> list[list[tuple[str, bytes]]]:
    """By connection, in the order of the first frames; the frames in the order of their first bytes."""
    by_connection: dict[str, list[Frame]] = defaultdict(list)
    for frame in sorted(frames, key=lambda f: (f.ts, f.direction)):
        by_connection[frame.connection_id].append(frame)
    return [[(f.direction, f.frame) for f in talk] for talk in by_connection.values()]


def rewritten(path: Path, packets: Sequence[Packet]) -> Path:
    path.write_bytes(pcap(packets))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_with_the_keys_frames_land_as_they_were_sent(recorded, kind):
    recording = recorded(kind)
    assert any(resumed for _, resumed in recording.versions) == KINDS[kind][2]
    frames, gaps, stats = read(recording.capture, tls_keylog=recording.key_log, payload_policy="full")
    assert landed(frames) == sent()
    assert not gaps
    assert stats.connections == {"kafka": len(dialogues())}
    assert stats.decrypted == len(dialogues())
    assert not stats.tls
    assert {(f.client_ip, f.server_ip, f.server_port) for f in frames} == {("127.0.0.1", "127.0.0.1", recording.port)}
    assert {f.ts for f in frames} | {f.ts_end for f in frames} <= {
        p.ts_us for p in read_packets(str(recording.capture))
    }


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_keys_nothing_lands_but_the_news_of_it(recorded, kind):
    recording = recorded(kind)
    frames, gaps, stats = read(recording.capture)
    assert not frames
    assert not gaps
    assert stats.not_recognised == {"tls": len(dialogues())}
    (peers,) = stats.tls
    assert peers == ("127.0.0.1", "127.0.0.1", recording.port, SERVER_NAME)


def test_ids_are_those_of_the_connection_on_the_wire(recording, tmp_path):
    """A capture of the same connections with other keys must not make others of them."""
    whole, _, _ = read(recording.capture, tls_keylog=recording.key_log)
    again, _, _ = read(recording.capture, tls_keylog=recording.key_log, agent_id="other")
    assert [f.flow_id for f in whole] == [f.flow_id for f in again]
    assert len({f.flow_id for f in whole}) == len({f.connection_id for f in whole}) == len(dialogues())


def with_keys(path: Path, recording: Recording) -> Path:
    """The recording as a pcapng file that holds its keys."""
    keys = recording.key_log.read_bytes()
    packets = list(read_packets(str(recording.capture)))
    secrets = block(10, struct.pack("<II", 0x544C534B, len(keys)) + keys)
    blocks = [section(), interface(packets[0].linktype), enhanced(packets[0]), secrets, *map(enhanced, packets[1:])]
    path.write_bytes(b"".join(blocks))
    return path


def test_keys_inside_a_pcapng_file(recording, tmp_path):
    path = with_keys(tmp_path / "with_keys.pcapng", recording)
    frames, _, stats = read(path, payload_policy="full", tls_embedded_keys=True)
    assert landed(frames) == sent()
    assert not stats.unused_keys
    arguments = "-", "--landing", tmp_path / "landing", "--tls-embedded-keys"
    result = run(*arguments, stdin=path.read_bytes())
    assert result.exit_code == 2
    assert "save the capture to a file" in result.stderr


def test_no_capture_can_have_tshark_read_it_unasked(recording, tmp_path, monkeypatch):
    """Whoever makes a capture chooses its blocks: they alone must not start a large program on it."""
    path, started = with_keys(tmp_path / "with_keys.pcapng", recording), tmp_path / "started"
    tshark = tmp_path / "bin" / "tshark"
    tshark.parent.mkdir()
    tshark.write_text(f"#!/bin/sh\ntouch '{started}'\n")
    tshark.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tshark.parent}:/usr/bin:/bin")
    landing = tmp_path / "landing"
    results = run(path, "--landing", landing), run("-", "--landing", landing, stdin=path.read_bytes())
    for result in results:
        assert result.exit_code == 0
        assert "--tls-embedded-keys decrypts with them" in result.stdout
    assert json.loads(run(path, "--landing", landing, "--json").stdout)["unused_keys"] == 1
    for command in (["decode", str(path)], ["explain", str(path), "--frame", "1"]):
        result = CliRunner().invoke(app, command)
        assert "--tls-embedded-keys" in result.stderr + str(result.exception)
    assert not started.exists()
    run(path, "--landing", landing, "--tls-embedded-keys")
    assert started.exists(), "asked for, it is started"


def test_keys_of_other_connections_are_no_use(recorded):
    frames, _, stats = read(recorded("1.3").capture, tls_keylog=recorded("1.2").key_log)
    assert not frames
    assert stats.not_recognised == {"tls": len(dialogues())}


def test_a_capture_that_holds_plain_traffic_too(recording, tmp_path):
    plain = list(read_packets(str(SMALL)))
    both = sorted([*plain, *read_packets(str(recording.capture))], key=lambda p: p.ts_us)
    frames, _, stats = read(rewritten(tmp_path / "x.pcap", both), tls_keylog=recording.key_log)
    alone = read(SMALL)[0] + read(recording.capture, tls_keylog=recording.key_log)[0]
    assert Counter(f.frame for f in frames) == Counter(f.frame for f in alone)
    assert stats.connections == {"kafka": 2 * len(dialogues()) - 1}


@pytest.mark.parametrize("seed", range(3))
def test_copies_and_the_order_of_neighbours_do_not_matter(recording, tmp_path, seed):
    source, mixed = random.Random(seed), []
    packets = list(read_packets(str(recording.capture)))
    while packets:
        some = [packets.pop(0) for _ in range(min(len(packets), source.randrange(1, 3)))]
        segments = [Dissector().segment(p) for p in some]
        one_way = len({s.source for s in segments if s}) == 1 and not any(s.flags & (SYN | RST) for s in segments if s)
        mixed += [p for p in (reversed(some) if one_way else some) for _ in range(source.choice((1, 1, 2)))]
    frames, gaps, _ = read(rewritten(tmp_path / "x.pcap", mixed), tls_keylog=recording.key_log, payload_policy="full")
    assert Counter(f.frame for f in frames) == Counter(frame for talk in sent() for _, frame in talk)
    assert not gaps


def _sent_once(packets: Sequence[Packet]) -> list[int]:
    """Which large packets hold bytes that no other one brings again: a busy machine sends some twice."""
    segments = {i: s for i, p in enumerate(packets) if (s := Dissector().segment(p)) is not None}
    return [
        i
        for i, one in segments.items()
        if one.length > 10_000
        and not any(
            (other.source, other.destination) == (one.source, one.destination)
            and other.seq < one.seq + one.length
            and one.seq < other.seq + other.length
            for j, other in segments.items()
            if j != i
        )
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_lost_packet_is_reported_and_nothing_is_invented(recorded, tmp_path, kind, seed):
    recording = recorded(kind)
    packets = list(read_packets(str(recording.capture)))
    lost = random.Random(seed).choice(_sent_once(packets))
    path = rewritten(tmp_path / "x.pcap", packets[:lost] + packets[lost + 1 :])
    frames, gaps, stats = read(path, tls_keylog=recording.key_log, payload_policy="full")
    assert stats.connections == {"kafka": len(dialogues())}
    whole = Counter(frame for talk in sent() for _, frame in talk)
    assert not Counter(f.frame for f in frames if not f.flags & FrameFlags.TRUNCATED) - whole
    assert len({g.connection_id for g in gaps}) == 1
    assert sum(g.bytes_lost for g in gaps) > 9_000
    assert len(frames) >= sum(whole.values()) - len(LARGE)


def test_joined_midway(recording, tmp_path):
    """The handshake is not in the capture: no key helps, but the records show what it is, and the lower port whose."""
    data = [(p, s) for p in read_packets(str(recording.capture)) if (s := Dissector().segment(p)) is not None]
    ports = Counter(s.source[1] for _, s in data if s.source[1] != recording.port)
    client = ports.most_common(1)[0][0]  # of the large messages
    later = [p for p, s in data if client in (s.source[1], s.destination[1])][12:]
    for keys in (None, recording.key_log):
        frames, _, stats = read(rewritten(tmp_path / "x.pcap", later), tls_keylog=keys)
        assert not frames
        assert stats.not_recognised == {"tls": 1}
        ((_, _, port, name),) = stats.tls
        assert (port, name) == (min(recording.port, client), None)


class TestCommandLine:
    def test_a_summary_for_people_shows_what_to_do(self, recording, tmp_path):
        result = run(recording.capture, "--landing", tmp_path / "landing")
        assert result.exit_code == 0
        assert f"{len(dialogues())} connections, encrypted (TLS)" in result.stdout
        assert f"127.0.0.1 to 127.0.0.1 port {recording.port} ({SERVER_NAME})" in result.stdout
        assert "--tls-keylog" in result.stdout

    def test_a_summary_for_programs(self, recording, tmp_path):
        summary = json.loads(run(recording.capture, "--landing", tmp_path / "landing", "--json").stdout)
        assert summary["tls"] == [
            {
                "client_ip": "127.0.0.1",
                "server_ip": "127.0.0.1",
                "server_port": recording.port,
                "server_name": SERVER_NAME,
                "connections": len(dialogues()),
            }
        ]

    def test_decode_and_explain_read_it_too(self, recording):
        options = "--tls-keylog", str(recording.key_log)
        lines = CliRunner().invoke(app, ["decode", str(recording.capture), "--json", *options]).stdout.splitlines()
        assert len(lines) == sum(map(len, sent()))
        shown = CliRunner().invoke(app, ["explain", str(recording.capture), "--frame", str(len(lines)), *options])
        assert shown.stdout.startswith("ApiVersions v0 response")

    def test_no_key_lands_or_is_shown(self, recording, tmp_path):
        arguments = recording.capture, "--landing", tmp_path / "landing", "--tls-keylog", recording.key_log
        result = run(*arguments)
        assert f"decrypted: {len(dialogues())} connections" in result.stdout
        secrets = set(re.findall(r"\b[0-9a-f]{64,}\b", recording.key_log.read_text()))
        written = [path.read_bytes() for path in (tmp_path / "landing").rglob("*") if path.is_file()]
        assert secrets
        assert written
        for secret in secrets:
            assert secret not in result.output
            assert not any(secret.encode() in data or bytes.fromhex(secret) in data for data in written)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (None, "cannot be read"),
            (b"", "is not a TLS key log"),
            (b"CLIENT_RANDOM 0123 5ec2e7\n", "is not a TLS key log"),
            (b"\x30\x82\x04\xa4" * 100, "is not a TLS key log"),
        ],
    )
    def test_a_bad_key_log_is_refused_before_anything_lands(self, recording, tmp_path, content, reason):
        path = tmp_path / "keys"
        if content is not None:
            path.write_bytes(content)
        result = run(recording.capture, "--landing", tmp_path / "landing", "--tls-keylog", path)
        assert result.exit_code == 2
        assert reason in result.stderr
        assert "5ec2e7" not in result.output
        assert not (tmp_path / "landing").exists() or everything(tmp_path / "landing") == []

    def test_standard_input_is_refused(self, recording, tmp_path):
        arguments = "-", "--landing", tmp_path / "landing", "--tls-keylog", recording.key_log
        result = run(*arguments, stdin=recording.capture.read_bytes())
        assert result.exit_code == 2
        assert "save the capture to a file" in result.stderr


def test_without_tshark(recording, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CaptureError, match=r"needs tshark to decrypt TLS: .*install"):
        read(recording.capture, tls_keylog=recording.key_log)


def test_a_cut_off_capture(recording, tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(recording.capture.read_bytes()[:-20])
    with pytest.raises(CaptureError, match="truncated"):
        read(path, tls_keylog=recording.key_log)
    frames, _, _ = read(path, tls_keylog=recording.key_log, allow_truncated=True, payload_policy="full")
    assert landed(frames) == sent()
