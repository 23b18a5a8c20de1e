"""Planted secrets are not in landing files, manifests, summaries, messages, or output of decode and explain."""

from __future__ import annotations

import random
import traceback
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from decoder.field_hash import FieldHash
from decoder.model import Frame, PayloadPolicy
from pipeline.capture.runs.one_capture import frames_of
from pipeline.cli import app
from tests.canaries import (
    canary,
    compressed_traces,
    conversations,
    flows,
    harmed,
    seen_in,
    seen_in_files,
    traces,
    write_capture,
)
from tests.decoder.kafka.credentials import credentials
from tests.pipeline.capture.wire import pcap

POLICIES = get_args(PayloadPolicy)
CREDENTIAL, PAYLOAD, KEY = canary("credential"), canary("payload"), canary("key")
CREDENTIAL_TRACES = traces(CREDENTIAL, KEY)
PAYLOAD_TRACES = [*traces(PAYLOAD), *compressed_traces(PAYLOAD)]


def hidden(policy: str) -> list[bytes]:
    """What must not be seen."""
    return CREDENTIAL_TRACES if policy == "full" else CREDENTIAL_TRACES + PAYLOAD_TRACES


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return write_capture(tmp_path / "planted.pcap", CREDENTIAL, PAYLOAD)


def run(*arguments: object) -> tuple[int, bytes]:
    """Exit code and all output, a traceback included."""
    done = CliRunner().invoke(app, [*map(str, arguments)], env={"WIRELAKE_PAYLOAD_KEY": KEY.decode(), "COLUMNS": "200"})
    output = done.stdout + done.stderr
    if done.exception is not None:
        output += "".join(traceback.format_exception(done.exception)) + repr(done.exception.__dict__)
    return done.exit_code, output.encode()


def test_the_canaries_are_in_the_capture(capture):
    """Else nothing here would prove anything."""
    data = capture.read_bytes()
    assert data.count(CREDENTIAL) > len(credentials(CREDENTIAL)) * 3
    assert data.count(PAYLOAD) > 100
    assert all(piece in data for piece in compressed_traces(PAYLOAD))


@pytest.mark.parametrize(
    "form", [bytes, lambda b: b.hex().encode(), lambda b: b.decode().encode("utf-16-le")], ids=["raw", "hex", "utf-16"]
)
def test_the_search_finds_a_piece_in_any_form(form):
    assert seen_in(b"xx" + form(CREDENTIAL[5:16]) + b"yy", CREDENTIAL_TRACES)


class TestLandingFiles:
    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
    def test_hold_none(self, capture, tmp_path, policy, options):
        landing = tmp_path / "landing"
        code, output = run("capture", "read", capture, "--landing", landing, "--payload", policy, *options)
        assert code == 0, output
        assert seen_in(output, hidden(policy)) == []
        assert seen_in_files(landing, hidden(policy)) == []
        assert bool(seen_in_files(landing, PAYLOAD_TRACES)) == (policy == "full")

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("options", [[], ["--allow-truncated"]], ids=["", "allow-truncated"])
    @pytest.mark.parametrize("damage", ["cut", "record header", "lost packets"])
    def test_nor_do_those_of_a_damaged_capture(self, capture, tmp_path, policy, options, damage):
        data = capture.read_bytes()
        if damage == "cut":
            capture.write_bytes(data[:-700])
        elif damage == "record header":
            capture.write_bytes(data[:40_000] + b"\xff" * 40 + data[40_040:])
        else:
            packets = [p for flow in flows(conversations(CREDENTIAL, PAYLOAD)) for p in flow.packets]
            capture.write_bytes(pcap(p for number, p in enumerate(packets) if number % 7))
        landing = tmp_path / "landing"
        code, output = run("capture", "read", capture, "--landing", landing, "--payload", policy, "--json", *options)
        assert code in (0, 2), output
        assert seen_in(output, hidden(policy)) == []
        assert seen_in_files(tmp_path / "landing", hidden(policy)) == []


class TestWhatIsPrinted:
    @pytest.mark.parametrize("options", [[], ["--json"], ["--records"], ["--records", "--json"]], ids=" ".join)
    def test_by_decode(self, capture, options):
        code, output = run("decode", capture, *options)
        assert code == 0, output
        assert len(output.splitlines()) > 100
        assert seen_in(output, hidden("lengths")) == []

    def test_by_decode_with_the_records(self, capture):
        """Payload is what was asked for; credentials are not."""
        for options in ([], ["--json"]):
            code, output = run("decode", capture, "--records", "--payload", "full", *options)
            assert code == 0, output
            assert seen_in(output, PAYLOAD_TRACES)
            assert seen_in(output, CREDENTIAL_TRACES) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
    def test_by_explain(self, capture, options):
        _, lines = run("decode", capture)
        count = sum(not line.startswith(b"warning: ") for line in lines.splitlines())
        for number in range(1, count + 1, 11):
            code, output = run("explain", capture, "--frame", number, *options)
            assert code == 0, output
            assert seen_in(output, hidden("lengths")) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_harm_to_the_capture_brings_no_secret_to_light(tmp_path, seed):
    source = random.Random(seed)
    policy = POLICIES[seed % len(POLICIES)]
    path = tmp_path / "harmed.pcap"
    path.write_bytes(pcap(harmed(source, CREDENTIAL, PAYLOAD)))
    items = list(frames_of(path, payload_policy=policy, field_hash=FieldHash(KEY), allow_truncated=True))
    frames = [item for item in items if isinstance(item, Frame)]
    assert len(frames) > 50
    rest = repr([replace(item, frame=b"") if isinstance(item, Frame) else item for item in items])
    assert seen_in(b"|".join([rest.encode(), *(frame.frame for frame in frames)]), hidden(policy)) == []
