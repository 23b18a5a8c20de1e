"""``wirelake dashboard``: what it refuses, where it listens, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pipeline.commands.dashboard import dashboard
from pipeline.errors import UserError
from tests.paths import ROOT
from tests.pipeline.dashboard.web.browser.served import Served, free_port, serve
from tests.requirements import require_streamlit

pytestmark = pytest.mark.slow

app = typer.Typer()
app.command()(dashboard)


def run(*arguments: str | Path) -> None:
    done = CliRunner().invoke(app, [*map(str, arguments), "--no-browser"])
    if done.exception:
        raise done.exception


def test_without_streamlit_it_names_what_to_install(hand_made_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pipeline.dashboard.web.serving.server", None)
    with pytest.raises(UserError, match=r"needs Streamlit: pip install '.\[dashboard\]' in the checkout"):
        run("--lake", hand_made_lake)


def test_without_a_lake_it_does_not_start(tmp_path: Path) -> None:
    require_streamlit()
    with pytest.raises(UserError, match="there is no lake at"):
        run("--lake", tmp_path)


def test_a_port_in_use_is_reported(hand_made_lake: Path) -> None:
    require_streamlit()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"cannot listen on 127\.0\.0\.1, port {port}: Address already in use"):
            run("--lake", hand_made_lake, "--port", str(port))


def test_an_address_of_another_machine_is_refused(hand_made_lake: Path) -> None:
    require_streamlit()
    with pytest.raises(UserError, match=r"cannot listen on 192\.0\.2\.1"):
        run("--lake", hand_made_lake, "--host", "192.0.2.1")


@pytest.mark.parametrize(
    ("host", "url", "loopback"),
    [
        ("127.0.0.1", "http://127.0.0.1:80", True),
        ("::1", "http://[::1]:80", True),
        ("localhost", "http://localhost:80", True),
        ("0.0.0.0", "http://localhost:80", False),  # noqa: S104 - a text
        ("::", "http://localhost:80", False),
        ("dash.example", "http://dash.example:80", False),
    ],
)
def test_what_to_type_into_a_browser(host: str, url: str, loopback: bool) -> None:
    require_streamlit()
    from pipeline.dashboard.web.serving.names import is_loopback  # noqa: PLC0415
    from pipeline.dashboard.web.serving.server import page_url  # noqa: PLC0415 - loads Streamlit

    assert (page_url(host, 80), is_loopback(host)) == (url, loopback)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_listens_on_one_address_and_ends_on_a_signal(hand_made_lake: Path, number: signal.Signals) -> None:
    require_streamlit()
    with serve(hand_made_lake) as served:
        assert served.get("/_stcore/health") == "ok"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", served.port), timeout=5)
        served.process.send_signal(number)
        assert served.process.wait(60) == 0
        assert "Traceback" not in served.printed()


def test_where_others_can_reach_it_the_link_has_a_token(hand_made_lake: Path) -> None:
    require_streamlit()
    with serve(hand_made_lake, "--host", "0.0.0.0") as served:  # noqa: S104 - what is tested
        assert isinstance(served, Served)
        served.wait_for("Whoever has this link can read the lake")
        assert re.search(rf" is at http://localhost:{served.port}/\?token=[A-Za-z0-9_-]{{43}} ", served.printed())


def test_a_token_of_the_environment_is_not_printed(hand_made_lake: Path) -> None:
    require_streamlit()
    with serve(hand_made_lake, WIRELAKE_PAGE_TOKEN="of-this-service-0123") as served:  # noqa: S106 - a test's
        served.wait_for("It asks for its token")
        assert "of-this-service" not in served.printed()


def test_the_command_line_ends_with_code_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "dashboard", "--lake", str(tmp_path), "--port", str(free_port())],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
