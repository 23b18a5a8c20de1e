"""A page of a stranger in the browser of somebody who reads a lake: it has a name, or an origin, that is not ours.

Before there was a gate, each request below was answered as if it came from the page itself, its web socket included,
through which all that the page shows can be read; ``before`` is what was answered then.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.page import HEALTH, STREAM, ask, handshake
from tests.paths import ROOT
from tests.pipeline.dashboard.web.browser.served import Served, serve
from tests.requirements import require_streamlit

pytestmark = pytest.mark.slow

PORT = "PORT"
"""Stands for the port of the page in a row."""

ATTACKS = {
    # name: header lines, before: of a request, of a web socket
    "another name (DNS rebinding)": (["Host: evil.example:PORT"], 200, 101),
    "another name and its origin": (["Host: evil.example:PORT", "Origin: http://evil.example:PORT"], 200, 101),
    "another name without a port": (["Host: evil.example"], 200, 101),
    "a name that begins like ours": (["Host: localhost.evil.example:PORT"], 200, 101),
    "a name that ends like ours": (["Host: evil-localhost"], 200, 101),
    "a name below ours": (["Host: evil.localhost:PORT"], 200, 101),
    "an address as the begin of a name": (["Host: 127.0.0.1.evil.example:PORT"], 200, 101),
    "an address of another machine": (["Host: 192.0.2.1:PORT"], 200, 101),
    "the address of no machine": (["Host: 0.0.0.0:PORT"], 200, 101),
    "ours as a user": (["Host: localhost@evil.example:PORT"], 200, 101),
    "ours as user and password": (["Host: localhost:PORT@evil.example"], 200, 101),
    "another one as a user": (["Host: evil.example@localhost:PORT"], 200, 101),
    "a path behind it": (["Host: evil.example/localhost"], 200, 101),
    "a fragment behind it": (["Host: localhost:PORT#evil.example"], 200, 101),
    "two in one": (["Host: localhost:PORT, evil.example"], 200, 101),
    "a space in it": (["Host: localhost evil.example"], 200, 101),
    "a percent sign in it": (["Host: localhost%2eevil.example"], 200, 101),
    "letters beyond ASCII": (["Host: loc\xe4lhost:PORT"], 200, 101),
    "an address in short": (["Host: 127.1:PORT"], 200, 101),
    "an address as one number": (["Host: 2130706433:PORT"], 200, 101),
    "an address in hexadecimal": (["Host: 0x7f.0.0.1:PORT"], 200, 101),
    "a port that is none": (["Host: localhost:99999"], 200, 101),
    "a port of letters": (["Host: localhost:evil"], 200, 101),
    "two dots at the end": (["Host: localhost..:PORT"], 200, 101),
    "nothing": (["Host:"], 200, 101),
    "a zone of IPv6": (["Host: [fe80::1%25lo]:PORT"], 200, 101),
    "IPv6 of another machine": (["Host: [2001:db8::1]:PORT"], 200, 101),
    "an IPv4 address in brackets": (["Host: [127.0.0.1]:PORT"], 200, 101),
    "a bracket too few": (["Host: [::1:PORT"], 200, 101),
    "ours in another header": (["Host: evil.example", "X-Forwarded-Host: localhost:PORT"], 200, 101),
    "a foreign origin": (["Host: localhost:PORT", "Origin: http://evil.example"], 200, 403),
    "the origin of another port": (["Host: localhost:PORT", "Origin: http://localhost:1"], 200, 101),
    "the origin of another name of ours": (["Host: localhost:PORT", "Origin: http://127.0.0.1:PORT"], 200, 101),
    "the origin of a page without one": (["Host: localhost:PORT", "Origin: null"], 200, 403),
    "the origin of a file": (["Host: localhost:PORT", "Origin: file://"], 200, 403),
    "the origin of an extension": (["Host: localhost:PORT", "Origin: chrome-extension://localhost:PORT"], 200, 101),
    "an origin with a user": (["Host: localhost:PORT", "Origin: http://localhost:PORT@evil.example"], 200, 403),
    "an origin that begins like ours": (["Host: localhost:PORT", "Origin: http://localhost.evil.example"], 200, 403),
    "an origin that is empty": (["Host: localhost:PORT", "Origin:"], 200, 403),
    "two origins": (["Host: localhost:PORT", "Origin: http://localhost:PORT", "Origin: http://evil.example"], 200, 101),
}
MALFORMED = {
    # What the server refuses by itself, as no request at all.
    "no name": [],
    "two names": ["Host: localhost:PORT", "Host: evil.example"],
    "two names, the other way": ["Host: evil.example", "Host: localhost:PORT"],
}
OURS = [
    ["Host: localhost:PORT"],
    ["Host: localhost:PORT", "Origin: http://localhost:PORT"],
    ["Host: 127.0.0.1:PORT", "Origin: http://127.0.0.1:PORT"],
    ["Host: LOCALHOST:PORT", "Origin: HTTP://localhost:PORT"],
    ["Host: localhost.:PORT", "Origin: http://localhost.:PORT"],
    ["Host: localhost"],
    ["Host: localhost", "Origin: http://localhost"],
    ["Host: localhost", "Origin: https://localhost:443"],
    ["Host: localhost:9999", "Origin: http://localhost:9999"],  # as ssh -L has it
    ["Host: [::1]:PORT", "Origin: http://[::1]:PORT"],
    ["Host: [0:0:0:0:0:0:0:1]:PORT", "Origin: http://[::1]:PORT"],
    ["Host: dash.example.org", "Origin: https://dash.example.org"],  # --allow-host
    ["Host: DASH.example.org.:443", "Origin: https://dash.example.org"],
]


@pytest.fixture(scope="module")
def served(hand_made_lake: Path) -> Iterator[Served]:
    require_streamlit()
    with serve(hand_made_lake, "--allow-host", "dash.example.org") as running:
        yield running


def lines(headers: list[str], served: Served) -> list[str]:
    return [line.replace(PORT, str(served.port)) for line in headers]


@pytest.mark.parametrize("attack", ATTACKS)
def test_who_is_foreign_reads_nothing(served: Served, attack: str) -> None:
    headers, before, before_socket = ATTACKS[attack]
    assert (before, before_socket in (101, 403)) == (200, True)
    for path in ("/", "/query?sql=FROM+findings", "/static/css", "/favicon.png", "/_stcore/host-config"):
        refused = ask(served.port, path, lines(headers, served))
        assert refused.status == 403, path
        assert b"<" not in refused.body, path
    assert handshake(served.port, lines(headers, served)).status in (403, 400)


@pytest.mark.parametrize("attack", MALFORMED)
def test_no_name_or_two_are_no_request(served: Served, attack: str) -> None:
    headers = lines(MALFORMED[attack], served)
    assert (ask(served.port, "/", headers).status, handshake(served.port, headers).status) == (400, 400)


def test_an_old_request_without_a_name_reads_nothing(served: Served) -> None:
    assert ask(served.port, "/", version="1.0").status == 403  # before: 200


@pytest.mark.parametrize("headers", OURS, ids=" ".join)
def test_who_is_ours_is_let_in(served: Served, headers: list[str]) -> None:
    page = ask(served.port, "/", lines(headers, served))
    assert (page.status, b"<title>Streamlit</title>" in page.body) == (200, True)
    assert handshake(served.port, lines(headers, served)).status == 101


def test_a_whole_address_as_the_target_does_not_replace_the_name(served: Served) -> None:
    target = f"http://localhost:{served.port}/"
    assert ask(served.port, target, ["Host: evil.example"]).status == 403  # before: 200
    assert ask(served.port, "http://evil.example/", [f"Host: localhost:{served.port}"]).status in (200, 404)


def test_everybody_may_ask_whether_it_runs_and_nothing_else(served: Served) -> None:
    foreign = ["Host: evil.example", "Origin: http://evil.example"]
    for method in ("GET", "HEAD"):
        answer = ask(served.port, HEALTH, foreign, method=method)
        assert (answer.status, "access-control-allow-origin" in answer.headers) == (200, False)
    assert ask(served.port, HEALTH).status == 400  # no name: not even HTTP
    for near in (HEALTH + "/", HEALTH + "/..", "/x/.." + HEALTH, HEALTH.upper(), "//_stcore/health", HEALTH + "%00"):
        assert ask(served.port, near, foreign).status == 403, near
    assert ask(served.port, HEALTH, foreign, method="OPTIONS").status == 403
    assert handshake(served.port, foreign, path=HEALTH).status == 403


def test_it_is_only_read(served: Served) -> None:
    ours = [f"Host: localhost:{served.port}", "Content-Length: 0"]
    for path in ("/", "/_stcore/upload_file/a/b", "/_stcore/agent/interact", "/_stcore/agent/mcp"):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "EVIL"):
            assert ask(served.port, path, ours, method=method).status == 405, (method, path)


def test_answers_make_a_browser_trust_nobody(served: Served) -> None:
    for path, host, status in (("/", "localhost", 200), ("/", "evil.example", 403), (HEALTH, "evil.example", 200)):
        answer = ask(served.port, path, [f"Host: {host}"])
        assert answer.status == status
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self' 'sha256-" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-eval" not in policy
        assert "*" not in policy


_ROUTES = """
import json, sys
from streamlit.starlette import App
from pipeline.dashboard.web.serving.server import _SCRIPT
routes = App(_SCRIPT)._build_starlette_app().routes
print(json.dumps([[route.path, sorted(getattr(route, "methods", None) or [])] for route in routes]))
"""


def test_no_route_of_streamlit_is_beside_the_gate(served: Served) -> None:
    listed = subprocess.run(
        [sys.executable, "-c", _ROUTES], capture_output=True, check=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    routes = json.loads(listed.stdout.splitlines()[-1])
    paths = {route for route, _ in routes}
    assert {STREAM, HEALTH, "/media/{file_id:path}", "/component/{path:path}"} <= paths
    for route, methods in routes:
        path = "/" + "/".join("x" if part.startswith("{") else part for part in route.strip("/").split("/"))
        for method in {*methods, "GET", "POST"} - ({"GET", "HEAD"} if route == HEALTH else set()):
            assert ask(served.port, path, ["Host: evil.example"], method=method).status == 403, (method, route)
        assert handshake(served.port, ["Host: evil.example"], path=path).status == 403, route


def test_what_is_refused_fills_no_log(served: Served) -> None:
    before = len(served.printed())
    for number in range(20):
        ask(served.port, "/?token=secret", [f"Host: evil{number}.example"])
        handshake(served.port, [f"Host: evil{number}.example"])
    assert len(served.printed()) == before
