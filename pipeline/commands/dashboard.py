"""``wirelake dashboard``: the web page. Reads the lake without a JVM."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from pipeline.config.common_options import Conf, required
from pipeline.config.settings import environment_of, load_settings
from pipeline.errors import UserError
from pipeline.setup.system import how_to_install
from pipeline.terminal.console import Console


def dashboard(
    lake: Annotated[str | None, typer.Option(help="The lake's folder.")] = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; by default this machine alone can reach it. On any other address the page "
            "asks for a token; the printed link contains it."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="TCP port to listen on.")] = 8501,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            envvar="WIRELAKE_PAGE_ALLOW_HOST",
            help="A further host name under which people reach the page; may be given several times (in the "
            "environment, separated by spaces). Requests for other names are refused, which protects against "
            "DNS rebinding.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="WIRELAKE_PAGE_TOKEN_FILE",
            help="File with the token that the page asks for, for services; or put it into WIRELAKE_PAGE_TOKEN.",
        ),
    ] = None,
    behind_proxy: Annotated[
        str | None,
        typer.Option(metavar="HEADER", help="Header in which a proxy with a login names the user; asks for no token."),
    ] = None,
    proxy_from: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="Address or network of that proxy; the header is ignored from any other address."
        ),
    ] = None,
    conf: Conf = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Serve the page without opening a browser.")] = False,
) -> None:
    """Show the lake as a web page.

    It has findings, groups and partitions, transactions, clients, latency, exchanges and SQL.

    On the loopback address no token is asked for unless one is set. Ctrl-C ends it. The exit code is 2 if there is no
    lake, or the page cannot listen there.

    Examples:

      wirelake dashboard --lake demo-lake

      wirelake dashboard --lake lake --port 8600 --no-browser    # then: ssh -L 8600:localhost:8600 this-machine

      wirelake dashboard --lake lake --host 0.0.0.0 --allow-host dash.example.org    # prints a link with a token

      wirelake dashboard --lake lake --host 10.1.2.3 --token-file /etc/wirelake/page-token

      wirelake dashboard --lake lake --allow-host dash.example.org --behind-proxy X-User --proxy-from 127.0.0.1

      wirelake dashboard --lake lake --conf conf/local.yaml    # its sql: what a query may take
    """
    settings = load_settings(conf, lake=lake)
    place = required(settings, "lake")
    try:
        from pipeline.dashboard.web.serving.access import access  # noqa: PLC0415
        from pipeline.dashboard.web.serving.server import serve  # noqa: PLC0415 - loads Streamlit
    except ImportError as error:
        raise UserError(f"this command needs Streamlit: {how_to_install('dashboard')} ({error})") from error
    shown = access(
        host,
        allow_hosts=allow_host or (),
        token_file=token_file,
        behind_proxy=behind_proxy,
        proxy_from=proxy_from or (),
    )
    from pipeline.dashboard.sql import connect  # noqa: PLC0415 - an extra

    connect(place, settings.sql).close()
    console = Console(stderr=True)

    def ready(url: str) -> None:
        console.print(Text(f"The dashboard of {place} is at {url} (Ctrl-C ends it)"), soft_wrap=True)
        if shown.is_token_new:
            console.print(Text("Whoever has this link can read the lake; it is shown once."), soft_wrap=True)
        elif shown.token is not None:
            console.print(Text("It asks for its token: open it with ?token=… at the end, once."), soft_wrap=True)

    os.environ.update(environment_of(settings, "sql"))  # where the page's scripts look for it, as for the lake
    serve(place, host, port, shown, ready, browser=not no_browser)
