"""Somebody who can reach the page, and was not meant: beyond this machine, it asks for a token or for its proxy's word.

Before, whoever reached the address was answered: each row below with 200, and 101 on the web socket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.hostile.page import HEALTH, ask, handshake
from tests.pipeline.dashboard.web.browser.served import Served, serve
from tests.requirements import require_streamlit

pytestmark = pytest.mark.slow

EVERYWHERE = ("--host", "0.0.0.0")  # noqa: S104 - what is tested
TOKEN = "of this service/ö+&=%".replace(" ", "-")
"""With all that an address has to write otherwise."""


@pytest.fixture(scope="module", autouse=True)
def _streamlit() -> None:
    require_streamlit()


@pytest.fixture(scope="module")
def open_to_all(hand_made_lake: Path) -> Iterator[Served]:
    with serve(hand_made_lake, *EVERYWHERE) as running:
        yield running


def token_of(served: Served) -> str:
    found = re.search(r"\?token=(\S+)", served.printed())
    assert found is not None
    return found[1]


def ours(served: Served, *more: str) -> list[str]:
    return [f"Host: localhost:{served.port}", *more]


def cookie(served: Served, path: str) -> str:
    """What the link leaves in a browser."""
    answer = ask(served.port, path, ours(served))
    assert answer.status == 303
    return answer.headers["set-cookie"].partition(";")[0]


def test_without_the_token_nothing_is_read(open_to_all: Served) -> None:
    for path in ("/", "/static/js", "/favicon.png", "/query?sql=FROM+findings", "/_stcore/host-config", "/media/x"):
        refused = ask(open_to_all.port, path, ours(open_to_all))
        assert (refused.status, b"open the link" in refused.body) == (403, True)
    assert handshake(open_to_all.port, ours(open_to_all)).status == 403
    assert ask(open_to_all.port, HEALTH, ["Host: a.load.balancer"]).status == 200


def test_the_link_opens_it_and_the_token_leaves_the_address(open_to_all: Served) -> None:
    token = token_of(open_to_all)
    answer = ask(open_to_all.port, f"/query?sql=FROM+a%26b&token={token}&range=all", ours(open_to_all))
    assert (answer.status, answer.headers["location"]) == (303, "/query?sql=FROM+a%26b&range=all")
    assert answer.headers["cache-control"] == "no-store"
    set_cookie = answer.headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in set_cookie.split(";")}
    assert token.lower() not in set_cookie
    kept = f"Cookie: other=1; {answer.headers['set-cookie'].partition(';')[0]}; more=2"
    assert ask(open_to_all.port, "/", ours(open_to_all, kept)).status == 200
    assert handshake(open_to_all.port, ours(open_to_all, kept)).status == 101


@pytest.mark.parametrize(
    "wrong",
    [
        "/?token=",
        "/?token",
        "/?token=x",
        "/?token={token}x",
        "/?token={token:.42}",
        "/?token={upper}",
        "/?TOKEN={token}",
        "/?token%00={token}",
        "/?token=x%26token={token}",
        "/{token}",
        "/#token={token}",
        "/?token={cookie}",
    ],
)
def test_almost_the_token_is_none(open_to_all: Served, wrong: str) -> None:
    token = token_of(open_to_all)
    value = cookie(open_to_all, f"/?token={token}").partition("=")[2]
    path = wrong.format(token=token, upper=token.swapcase(), cookie=value)
    refused = ask(open_to_all.port, path, ours(open_to_all))
    assert (refused.status, "set-cookie" in refused.headers) == (403, False)


def test_almost_the_cookie_is_none(open_to_all: Served) -> None:
    token = token_of(open_to_all)
    name, _, value = cookie(open_to_all, f"/?token={token}").partition("=")
    for wrong in (f"{name}={token}", f"{name}=", name, f"{name}={value}x", f"x{name}={value}", f'{name}="{value}"'):
        assert ask(open_to_all.port, "/", ours(open_to_all, f"Cookie: {wrong}")).status == 403, wrong
        assert handshake(open_to_all.port, ours(open_to_all, f"Cookie: {wrong}")).status == 403, wrong


def test_the_token_opens_no_web_socket_by_itself_and_lets_no_foreign_page_in(open_to_all: Served) -> None:
    token, port = token_of(open_to_all), open_to_all.port
    kept = "Cookie: " + cookie(open_to_all, f"/?token={token}")
    assert handshake(port, ours(open_to_all), path=f"/_stcore/stream?token={token}").status == 403
    for foreign in (["Host: evil.example"], ours(open_to_all, "Origin: http://evil.example")):
        assert ask(port, f"/?token={token}", foreign).status == 403
        assert ask(port, "/", [*foreign, kept]).status == 403
        assert handshake(port, [*foreign, kept]).status == 403


def test_the_link_leads_nowhere_else(open_to_all: Served) -> None:
    token = token_of(open_to_all)
    for path in ("//evil.example/", "///evil.example", "/\\evil.example", "/%5cevil.example", "/%0d%0aSet-Cookie:x=y"):
        where = ask(open_to_all.port, f"{path}?token={token}", ours(open_to_all)).headers.get("location", "/")
        assert re.match(r"/(?![/\\])", where), path
        assert "\n" not in where


def test_an_address_that_the_request_came_to_is_a_name_of_ours(open_to_all: Served) -> None:
    token = token_of(open_to_all)
    for host, status in (("127.0.0.1", 303), ("[::ffff:127.0.0.1]", 303), ("192.0.2.1", 403)):
        answer = ask(open_to_all.port, f"/?token={token}", [f"Host: {host}:{open_to_all.port}"])
        assert answer.status == status


def test_the_token_of_a_service_is_asked_for_on_this_machine_too(hand_made_lake: Path) -> None:
    with serve(hand_made_lake, WIRELAKE_PAGE_TOKEN=TOKEN, WIRELAKE_PAGE_ALLOW_HOST="a.example b.example") as served:
        assert ask(served.port, "/", ours(served)).status == 403
        assert handshake(served.port, ours(served)).status == 403
        kept = "Cookie: " + cookie(served, f"/?token={quote(TOKEN, safe='')}")
        for host in ("localhost", "a.example", "b.example"):
            assert ask(served.port, "/", [f"Host: {host}", kept]).status == 200
        assert ask(served.port, "/", ["Host: c.example", kept]).status == 403
        assert TOKEN not in served.printed()


def test_a_proxy_is_believed_where_it_comes_from(hand_made_lake: Path) -> None:
    proxy = ("--behind-proxy", "X-Forwarded-User", "--proxy-from", "127.0.0.2", "--proxy-from", "192.0.2.0/24")
    user = "X-Forwarded-User: alice"
    with serve(hand_made_lake, *EVERYWHERE, *proxy) as served:
        for source, headers, status in (
            ("127.0.0.2", [user], 200),
            ("127.0.0.1", [user], 403),  # who sets the header without being the proxy
            ("127.0.0.1", [user, "X-Forwarded-For: 127.0.0.2"], 403),
            ("127.0.0.1", [user, "X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.1"], 403),
            ("127.0.0.1", [user, "Forwarded: for=127.0.0.2"], 403),
            ("127.0.0.2", [], 403),  # whom the proxy has not asked
            ("127.0.0.2", ["X-Forwarded-User:"], 403),
            ("127.0.0.2", [user, "X-Forwarded-User: mallory"], 403),  # who sends one along
            ("127.0.0.2", ["X_Forwarded_User: mallory"], 403),
        ):
            assert ask(served.port, "/", ours(served, *headers), source=source).status == status, (source, headers)
            opened = handshake(served.port, ours(served, *headers), source=source).status
            assert opened == (101 if status == 200 else 403), (source, headers)
        assert "token" not in served.printed()
        assert ask(served.port, HEALTH, ["Host: a.load.balancer"]).status == 200
