"""Brings the page to a browser: Streamlit in this process, behind the gate, until it has to end."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import uvicorn
from streamlit.starlette import App
from streamlit.web import bootstrap

from pipeline.analysis.rules.rule import all_rules
from pipeline.config.settings import load_settings
from pipeline.dashboard.sql import connect_readable
from pipeline.dashboard.web.page_context import LAKE
from pipeline.dashboard.web.pictures.colours import DARK, LIGHT
from pipeline.dashboard.web.serving.access import Access
from pipeline.dashboard.web.serving.gate import Gate
from pipeline.dashboard.web.serving.headers import answer_headers
from pipeline.errors import UserError

_SCRIPT = Path(__file__).parents[1] / "app.py"
_OPTIONS = {
    "server.headless": True,  # asks for no email address and opens no browser: we do
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    # What a file of Streamlit's settings in the current folder could else open or move.
    "server.baseUrlPath": "",
    "server.enableStaticServing": False,
    "server.enableAgentApi": False,
    "server.scriptHealthCheckEnabled": False,
    "global.developmentMode": False,
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
    "theme.headingFontSizes": ["2rem", "1.2rem", "1.1rem"],
    # With both, the page is light or dark as the system is; else what is above would make it light for everybody.
    "theme.light.backgroundColor": LIGHT.background,
    # Captions have 60 % of these, and 4.5 : 1 against the sidebar's grey all the same.
    "theme.light.textColor": "#111111",
    "theme.light.codeTextColor": "#111111",
    "theme.dark.codeTextColor": "#FAFAFA",
    # What is chosen is written in it, on a tint of it; white on the dark one could not be read: no button is primary.
    "theme.light.primaryColor": "#0A5FA3",
    "theme.dark.primaryColor": "#6CB4EE",
    "theme.dark.backgroundColor": DARK.background,
}
_WAITING = 2048
"""Connections that wait to be accepted."""
_PING_SECONDS = 30
_END_SECONDS = 5
"""How long open connections may take to end when the page has to end."""


def serve(lake: str, host: str, port: int, access: Access, ready: Callable[[str], None], *, browser: bool) -> None:
    """Serve the page until SIGINT or SIGTERM.

    Args:
        lake: the lake's folder or URL.
        host: the address to listen on, a name or an IP address.
        port: the TCP port.
        access: what a request must show.
        ready: gets the page's URL once it can be opened, with the token if it was made for this run.
        browser: whether to open it in the user's browser; not where it takes a token or a proxy, since others on this
            machine see the address that a browser is started with.

    Raises:
        UserError: the address is not ours to listen on.
    """
    listener = _listen(host, port)
    os.environ[LAKE] = lake
    _warm(lake)
    bootstrap.load_config_options({**_OPTIONS, "server.address": host, "server.port": port})
    config = uvicorn.Config(
        Gate(App(_SCRIPT), access, port, answer_headers()),
        http="h11",
        ws="websockets-sansio",
        ws_ping_interval=_PING_SECONDS,
        ws_ping_timeout=_PING_SECONDS,
        ws_per_message_deflate=False,
        proxy_headers=False,  # who connects is who connects, whatever a header claims
        server_header=False,
        access_log=False,  # addresses have the token in them, once
        log_config=None,
        log_level="warning",
        timeout_graceful_shutdown=_END_SECONDS,
    )
    url = page_url(host, port)
    link = f"{url}/?token={quote(access.token, safe='')}" if access.token and access.is_token_new else url

    def begun() -> None:
        ready(link)
        if browser and access.token is None and access.proxy is None:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    with listener:
        _Server(config, begun).run(sockets=[listener])


def _warm(lake: str) -> None:
    """Load and open what the first page needs, so that whoever opens it does not wait for that."""
    all_rules()
    with suppress(UserError):  # the page reports it
        connect_readable(lake, load_settings().sql).connection.close()


class _Server(uvicorn.Server):
    """Reports when it can be asked, and ends well on a signal."""

    def __init__(self, config: uvicorn.Config, begun: Callable[[], None]) -> None:
        super().__init__(config)
        self._begun = begun

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin, and report it."""
        await super().startup(sockets)
        if self.started:
            self._begun()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at a signal; uvicorn's own would send it once more when all has ended, which then is no good end."""
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def page_url(host: str, port: int) -> str:
    """What to type into a browser on this machine: an address that stands for all of them becomes the loopback one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"http://{host}:{port}"
    if address.is_unspecified:
        return f"http://localhost:{port}"
    return f"http://[{host}]:{port}" if address.version == 6 else f"http://{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    listener = None
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, number)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # all addresses are those of IPv4, too
        listener.bind(address)
        listener.listen(_WAITING)
    except OSError as error:
        if listener is not None:
            listener.close()
        reason = error.strerror or str(error)
        raise UserError(
            f"cannot listen on {host}, port {port}: {reason}. Choose another one: --port {port + 1}"
        ) from error
    return listener
