"""Logins to MongoDB, from packets to findings: an accepted one is no trouble, a refused one is, by its code name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from tests.decoder.mongodb.build import command, compressed, reply
from tests.pipeline.capture.wire import Flow

SECRET = b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j"
OK = {"conversationId": 1, "done": True, "payload": SECRET, "ok": 1.0}


def login(outcome: dict[str, Any], how: str, **at: Any) -> Flow:
    """A client that says hello, logs in, and works if it may."""
    flow = Flow(server=("10.0.0.2", 27017), **at).open()
    is_accepted = bool(outcome["ok"])
    work = {"find": "orders", "$db": "shop"}
    asked = [
        {"hello": 1, "client": {"application": {"name": "shop"}}, "$db": "admin"},
        {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": SECRET, "$db": "admin"},
        {"saslContinue": 1, "conversationId": 1, "payload": SECRET, "$db": "admin"},
    ]
    answers = [{"isWritablePrimary": True, "maxBsonObjectSize": 1, "ok": 1.0}, OK | {"done": False}, outcome]
    if is_accepted:
        asked += [work] * 20
        answers += [{"cursor": {"id": 0, "ns": "shop.orders", "firstBatch": []}, "ok": 1.0}] * 20
    for number, (one, other) in enumerate(zip(asked, answers, strict=True), 1):
        answer = reply(other, response_to=number)
        flow.send(0, command(one, request_id=number)).send(1, compressed(answer, how) if how else answer)
    return flow.close()


def found(tmp_path: Path, outcome: dict[str, Any], logins: int, how: str = "") -> list[dict[str, Any]]:
    flows = [
        login(outcome, how, client=("10.0.0.5", 40000 + n), ts=1_760_000_000_000_000 + n * 2_000_000)
        for n in range(logins)
    ]
    flows[0].packets = [packet for flow in flows for packet in flow.packets]
    done = CliRunner().invoke(app, ["diagnose", str(flows[0].write(tmp_path / "logins.pcap")), "--json"])
    assert SECRET.decode() not in done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("how", ["", "zlib"])
def test_accepted_logins_are_no_trouble(tmp_path: Path, how: str) -> None:
    assert found(tmp_path, OK, 9, how) == []


@pytest.mark.parametrize(("code", "name"), [(18, "AuthenticationFailed"), (8000, "AtlasError"), (13, "Unauthorized")])
@pytest.mark.parametrize("logins", [1, 5])
def test_a_refused_login_is_reported_by_its_code_name(tmp_path: Path, code: int, name: str, logins: int) -> None:
    refused = {"ok": 0.0, "errmsg": f"not {SECRET.decode()}", "code": code, "codeName": name}
    (one,) = found(tmp_path, refused, logins)
    assert (one["rule"], one["subject"], one["severity"]) == (
        "mongo_command_failed",
        "admin/login of shop",
        "warning",
    )
    assert name in one["summary"]
