"""Who may see the page: what the command line and the environment may state about it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.dashboard.web.serving.access import TOKEN, access
from pipeline.errors import UserError

LONG = "0123456789abcdef"
ANYBODY = "0.0.0.0"  # noqa: S104 - a text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_on_this_machine_nothing_is_asked_for_unless_a_token_is_set(host: str) -> None:
    assert access(host, environment={}).token is None
    shown = access(host, environment={TOKEN: LONG})
    assert (shown.token, shown.is_token_new) == (LONG, False)


@pytest.mark.parametrize("host", [ANYBODY, "::", "10.1.2.3", "dash.example", "localhost.evil.example", ""])
def test_beyond_it_a_token_is_made_each_time_anew(host: str) -> None:
    first, second = (access(host, environment={}) for _ in range(2))
    assert first.is_token_new
    assert first.token is not None
    assert len(first.token) == 43
    assert first.token != second.token
    assert access(host, environment={TOKEN: LONG}).token == LONG


def test_the_token_leaves_the_environment() -> None:
    environment = {TOKEN: LONG, "PATH": "/bin"}
    access("127.0.0.1", environment=environment)
    assert environment == {"PATH": "/bin"}


def test_a_token_in_a_file_wins(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{LONG}-of-the-file\n")
    file.chmod(0o640)
    assert access(ANYBODY, token_file=file, environment={TOKEN: LONG}).token == f"{LONG}-of-the-file"
    file.chmod(0o644)
    with pytest.raises(UserError, match="open to everybody on this machine: chmod 600"):
        access(ANYBODY, token_file=file, environment={})
    with pytest.raises(UserError, match=r"cannot read the token file .*nowhere: No such file"):
        access(ANYBODY, token_file=tmp_path / "nowhere", environment={})
    file.write_bytes(b"\xff" * 40)
    file.chmod(0o600)
    with pytest.raises(UserError, match="it is not text"):
        access(ANYBODY, token_file=file, environment={})


@pytest.mark.parametrize("token", ["", "short-secret", "a secret with spaces", "x" * 1025, "secret\x1b[31m-0123456789"])
def test_a_weak_token_is_refused_and_not_printed(token: str) -> None:
    with pytest.raises(UserError, match="16 to 1024 characters without spaces") as refused:
        access("127.0.0.1", environment={TOKEN: token})
    assert "secret" not in str(refused.value)


def test_a_file_without_a_token_does_not_open_the_page(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    with pytest.raises(UserError, match="16 to 1024 characters"):
        access(ANYBODY, token_file=file, environment={})


def test_a_proxy_needs_to_be_known() -> None:
    shown = access(ANYBODY, behind_proxy="X-Forwarded-User", proxy_from=["10.0.0.0/24", "::1"], environment={})
    assert shown.proxy is not None
    assert (shown.token, shown.proxy.header) == (None, "x-forwarded-user")
    for header, places, words in (
        ("X-Forwarded-User", [], "needs to know whom to believe: .*--proxy-from 127.0.0.1"),
        ("X-Forwarded-User", ["0.0.0.0/0"], "allows every address"),
        ("X-Forwarded-User", ["::/0"], "allows every address"),
        ("X-Forwarded-User", ["proxy.example"], "is not an address or network"),
        ("X-Forwarded-User", ["10.0.0.1/24"], "is not an address or network"),
        ("X User", ["10.0.0.1"], "is not the name of a header"),
        ("", ["10.0.0.1"], "is not the name of a header"),
        (None, ["10.0.0.1"], "--proxy-from needs --behind-proxy"),
    ):
        with pytest.raises(UserError, match=words):
            access(ANYBODY, behind_proxy=header, proxy_from=places, environment={})


def test_names_are_names() -> None:
    shown = access("Dash.Example.", allow_hosts=["B.example", "10.1.2.3", "2001:DB8::1"], environment={})
    assert shown.names == {"dash.example", "b.example", "10.1.2.3", "2001:db8::1"}
    assert access(ANYBODY, environment={}).names == frozenset()
    for wrong in ("http://a.example", "a.example:80", "*", "*.example", "", "a b", "a@b", ANYBODY, "::", "127.1"):
        with pytest.raises(UserError, match="is not the name of a host"):
            access("127.0.0.1", allow_hosts=[wrong], environment={})
