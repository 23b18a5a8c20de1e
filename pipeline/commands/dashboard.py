"""``wirelake dashboard``: the web page. Reads the lake without a JVM."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from pipeline.dashboard.sql import connect
from pipeline.errors import UserError
from pipeline.terminal import Console


def dashboard(
    lake: Annotated[str, typer.Option(help="The lake's folder.")],
    host: Annotated[str, typer.Option(help="Address to listen on; by default this machine alone can reach it.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=1, max=65_535, help="TCP port to listen on.")] = 8501,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only serve; open no browser.")] = False,
) -> None:
    """Show the lake as a web page: findings, groups and partitions, transactions, clients, latency, exchanges, SQL.

    It has no login: whoever reaches the address can read the lake. Ctrl-C ends it.

    Examples:

      wirelake dashboard --lake demo-lake

      wirelake dashboard --lake lake --port 8600 --no-browser    # then: ssh -L 8600:localhost:8600 this-machine
    """
    try:
        from pipeline.dashboard.web.server import is_loopback, serve  # noqa: PLC0415 - loads Streamlit
    except ImportError as error:
        raise UserError(
            f"this command needs Streamlit: pip install 'wirelake[dashboard]', with Python 3.11 or newer ({error})"
        ) from error
    connect(lake).close()
    console = Console(stderr=True)

    def ready(url: str) -> None:
        console.print(Text(f"The dashboard of {lake} is at {url} (Ctrl-C ends it)"), soft_wrap=True)
        if not is_loopback(host):
            console.print(Text("It has no login: whoever reaches this address can read the lake.", "bold yellow"))

    serve(lake, host, port, ready, browser=not no_browser)
