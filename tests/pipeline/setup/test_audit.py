"""What an audit reports of licences and advisories, and that what could not be looked up is never called sound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pipeline.setup.audit import audit, licence_faults, main, versions
from tests.paths import ROOT

BAD = "pkg:pypi/bad-one@1.0"
BOM: dict[str, Any] = {
    "components": [
        {"bom-ref": "a", "name": "a", "version": "1", "purl": "pkg:pypi/a@1", "licenses": [{"license": {"id": "MIT"}}]},
        {"bom-ref": "jar:b-2", "name": "b", "version": "2", "purl": "pkg:maven/org.b/b@2"},
        {"bom-ref": "jar:c-3", "name": "c", "version": "3"},
    ]
}


class _Answers(BaseHTTPRequestHandler):
    """As OSV's /v1/querybatch, which knows something against BAD alone."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        results = [{"vulns": [{"id": "X-1"}]} if query["package"]["purl"] == BAD else {} for query in asked]
        body = json.dumps({"results": results}).encode() if self.path == "/v1/querybatch" else b"{}"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def test_what_is_known_is_reported_and_jars_without_an_origin_are_named(server: str) -> None:
    assert audit(BOM, "", server)[0]
    is_good, report = audit(BOM, "Bad_One==1.0 ; python_version < '3'\n    --hash=sha256:00\n", server)
    assert not is_good
    assert f"{BAD}: X-1" in report
    assert report[-1].endswith(": c-3")


@pytest.mark.parametrize("path", ["/elsewhere", None])
def test_without_an_answer_it_reports_that_nothing_was_looked_up(
    path: str | None, server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bom").write_text(json.dumps(BOM))
    assert main([str(tmp_path / "bom"), "--server", server + path if path else "http://127.0.0.1:1"]) == 0
    assert "NOT LOOKED UP" in capsys.readouterr().out


def test_of_a_folder_the_newest_bill_is_read(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("new", "old")):
        bom = BOM if name == "new" else {"components": [*BOM["components"], {**BOM["components"][0], "licenses": []}]}
        (tmp_path / f"{name}.cdx.json").write_text(json.dumps(bom))
        os.utime(tmp_path / f"{name}.cdx.json", (1000 - number, 1000 - number))
    assert main([str(tmp_path), "--server", "http://127.0.0.1:1"]) == 0
    assert capsys.readouterr().out.startswith(f"looked at: {tmp_path / 'new.cdx.json'}\n")


def test_without_a_bill_only_a_network_makes_it_a_fault(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "dist"), "--server", "http://127.0.0.1:1"]) == 0
    assert main([str(tmp_path / "dist"), "--server", server]) == 1
    without, with_network = capsys.readouterr().out.splitlines()
    assert without.startswith("NOT LOOKED UP, neither licences nor advisories")
    assert "none can be built without a network" in without
    assert "type `make dist`" in with_network


@pytest.mark.parametrize("has_bill", [True, False])
def test_make_audit_ends_with_0_where_nothing_can_be_built(has_bill: bool, tmp_path: Path) -> None:
    """In a checkout of its own, whose environment is set up, and which reaches neither packages nor OSV."""
    for name in ("Makefile", "pipeline", "release", "requirements.lock", "pyproject.toml", "README.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    for stamp in (".venv/.stamps/venv", "packages", "project", "system", "kernel", ".venv-release/.stamp"):
        file = tmp_path / (stamp if "/" in stamp else f".venv/.stamps/{stamp}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / ".venv" / "bin").mkdir()
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    if has_bill:
        (tmp_path / "dist").mkdir()
        (tmp_path / "dist" / "wirelake-0.cdx.json").write_text(json.dumps(BOM))
    nowhere = "http://127.0.0.1:1"
    closed = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1", "https_proxy": nowhere, "HTTPS_PROXY": nowhere, "no_proxy": ""}
    done = subprocess.run(
        ["make", "-C", str(tmp_path), "audit"],
        env={**os.environ, **closed, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "uv build failed" in done.stderr
    assert "No wheel can be built now" in done.stdout
    assert ("looked at: dist/wirelake-0.cdx.json" in done.stdout) is has_bill
    assert "NOT LOOKED UP" in done.stdout


def test_licences_must_be_permitted_one_and_all() -> None:
    def faults(*licences: dict[str, Any], name: str = "x") -> list[str]:
        component = {"name": name, "version": "1", "purl": "pkg:pypi/x@1", "licenses": list(licences)}
        return licence_faults({"components": [component]})

    assert faults({"expression": "MIT OR (Apache-2.0 WITH LLVM-exception)"}) == []
    assert faults({"license": {"name": "License :: OSI Approved :: BSD License"}}) == []
    assert faults({"expression": "MIT AND AGPL-3.0-only"}) == ["x 1: AGPL-3.0-only"]
    assert faults() == ["x 1: not in its metadata"]
    assert faults(name="protobuf") == []


def test_every_pinned_version_is_looked_up_whatever_python_it_is_for() -> None:
    purls, unknown = versions(BOM, "a==1 \\\n    --hash=x\na==2 ; python_full_version < '3.11' \\\n")
    assert purls == ["pkg:maven/org.b/b@2", "pkg:pypi/a@1", "pkg:pypi/a@2"]
    assert unknown == ["c-3"]
