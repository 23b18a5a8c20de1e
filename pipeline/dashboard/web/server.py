"""How does the page come to a browser? Streamlit in this process, on one address, until it is told to end."""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path

from streamlit.web import bootstrap

from pipeline.dashboard.web.here import LAKE
from pipeline.errors import UserError

_SCRIPT = Path(__file__).with_name("app.py")
_OPTIONS = {
    "server.headless": True,  # asks for no email address and opens no browser: we do
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "type",
    "client.showErrorLinks": False,
    "runner.magicEnabled": False,
    # A click waits for the query that runs: DuckDB refuses a second thread on a session's connection.
    "runner.fastReruns": False,
    "logger.hideWelcomeMessage": True,
    "logger.level": "warning",
    "theme.paddingTop": "1rem",
    "theme.paddingBottom": "3rem",
    "theme.headingFontSizes": ["2rem", "1.4rem", "1.2rem"],
}
_POLL_SECONDS = 0.1


def serve(lake: str, host: str, port: int, ready: Callable[[str], None], *, browser: bool) -> None:
    """Serve the page until SIGINT or SIGTERM.

    Args:
        lake: the lake's folder or URL.
        host: the address to listen on, a name or an IP address.
        port: the TCP port.
        ready: is told the page's URL once it can be opened, in another thread.
        browser: whether to open it in the user's browser.

    Raises:
        UserError: the address is not ours to listen on.
    """
    _demand_free(host, port)
    os.environ[LAKE] = lake
    options = {**_OPTIONS, "server.address": host, "server.port": port}
    bootstrap.load_config_options(flag_options=options)
    threading.Thread(target=_announce, args=(page_url(host, port), ready, browser), daemon=True).start()
    bootstrap.run(str(_SCRIPT), False, [], options)


def page_url(host: str, port: int) -> str:
    """What to type into a browser on this machine: an address that stands for all of them becomes the loopback one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"http://{host}:{port}"
    if address.is_unspecified:
        return f"http://localhost:{port}"
    return f"http://[{host}]:{port}" if address.version == 6 else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _demand_free(host: str, port: int) -> None:
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, number) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"cannot listen on {host}, port {port}: {reason}. Choose another one: --port {port + 1}"
        ) from error


def _announce(url: str, ready: Callable[[str], None], browser: bool) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # our own address needs no proxy
    while True:
        try:
            with opener.open(f"{url}/_stcore/health", timeout=5):
                break
        except (urllib.error.URLError, OSError):
            time.sleep(_POLL_SECONDS)
    ready(url)
    if browser:
        webbrowser.open(url)
