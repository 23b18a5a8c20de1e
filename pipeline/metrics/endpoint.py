"""The HTTP endpoint of ``--metrics``: samples for Prometheus, and whether the process lives and does its work."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from pipeline.errors import UserError
from pipeline.metrics.sample import Sample
from pipeline.metrics.supervisor import Supervisor
from pipeline.setup.system import lacking_package

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

LOOPBACK = "127.0.0.1"
OPTION_HELP = (
    "Serve Prometheus metrics at /metrics, and /healthz and /readyz for a supervisor, on this port. Without "
    "HOST only this machine reaches it. There is no login: whoever reaches it sees names of queries and counts."
)
MetricsOption = Annotated[str | None, typer.Option("--metrics", metavar="[HOST:]PORT", help=OPTION_HELP)]
_PATIENCE_S = 10
"""How long a connection may be silent, s."""


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """``PORT``, ``HOST:PORT`` or ``[IPv6]:PORT``.

        Raises:
            UserError: it is none of these.
        """
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not port.isascii() or not port.isdecimal() or not 0 <= int(port) < 65_536 or (":" in text and not host):
            raise UserError(f"--metrics {text}: give a TCP port, alone or with an address, e.g. 9464 or 0.0.0.0:9464")
        return cls(host or LOOPBACK, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Exposed:
    """What the endpoint shows; the process shows samples, threads of the endpoint read them.

    Args:
        most_silent_s: seconds without :meth:`beat` after which the process is not ready; None: it need not beat.
        must_hold: asked at each question whether the process is ready; gives why it is not, or None.
    """

    def __init__(self, most_silent_s: float | None = None, must_hold: Callable[[], str | None] = lambda: None) -> None:
        self._samples: Sequence[Sample] = ()
        self._most_silent_s = most_silent_s
        self._must_hold = must_hold
        self._beat: float | None = None
        self._supervisor = Supervisor()

    def show(self, samples: Iterable[Sample]) -> None:
        """Show these samples instead of those before."""
        self._samples = tuple(samples)

    def beat(self) -> None:
        """The process continues with its work."""
        self._beat = time.monotonic()
        self._supervisor.alive()

    @property
    def samples(self) -> Sequence[Sample]:
        """Those shown last."""
        return self._samples

    def why_not_ready(self) -> str | None:
        """Why the process does not do its work, in a sentence; None: it does."""
        if self._beat is None:
            return "it has not begun yet"
        silent_s = time.monotonic() - self._beat
        if self._most_silent_s is not None and silent_s > self._most_silent_s:
            return f"it has not continued for {silent_s:.0f} s"
        return self._must_hold()


@contextmanager
def serving(text: str | None, exposed: Exposed, on_start: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Serve metrics around the work of a process.

    Args:
        text: the address, see :meth:`Address.parse`; None: serve nothing.
        exposed: what is served.
        on_start: takes a line that names the address.

    Raises:
        UserError: the address is none, is taken, or the Prometheus client is not installed.
    """
    if text is None:
        yield
        return
    address, handler = Address.parse(text), _handler(exposed)
    try:
        server = _server_class(address)(address, handler)
    except OSError as error:
        raise UserError(f"--metrics {text}: cannot listen there: {error.strerror or error}") from error
    with server:
        thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        thread.start()
        on_start(f"metrics: http://{Address(address.host, server.server_port)}/metrics")
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _handler(exposed: Exposed) -> type[BaseHTTPRequestHandler]:
    """Answers /metrics, /healthz and /readyz."""
    try:
        from prometheus_client import PlatformCollector, ProcessCollector  # noqa: PLC0415 - an extra
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415
        from prometheus_client.registry import CollectorRegistry  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UserError(lacking_package(error, "--metrics") or str(error)) from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(exposed))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S
        server_version = "wirelake"

        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/metrics":
                    encode, kind = choose_encoder(self.headers.get("Accept", ""))
                    self._answer(HTTPStatus.OK, encode(registry), kind)
                case "/healthz":
                    self._say(HTTPStatus.OK, "it runs")
                case "/readyz":
                    why = exposed.why_not_ready()
                    status = HTTPStatus.OK if why is None else HTTPStatus.SERVICE_UNAVAILABLE
                    self._say(status, why or "it does its work")
                case _:
                    self._say(HTTPStatus.NOT_FOUND, "there are /metrics, /healthz and /readyz")

        def _say(self, status: HTTPStatus, text: str) -> None:
            self._answer(status, f"{text}\n".encode(), "text/plain; charset=utf-8")

        def _answer(self, status: HTTPStatus, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
            """Print no line for each request."""

    return Handler


class _Collector:
    """Gives the samples shown last to the Prometheus client."""

    def __init__(self, exposed: Exposed) -> None:
        self._exposed = exposed

    def collect(self) -> Iterator[Metric]:
        """The samples by metric, and whether the process is ready."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415 - an extra

        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for one in self._exposed.samples:
            if (family := families.get(one.name)) is None:
                made = CounterMetricFamily if one.kind == "counter" else GaugeMetricFamily
                family = families[one.name] = made(one.name, one.text, labels=sorted(one.labels))
            family.add_metric([one.labels[name] for name in sorted(one.labels)], one.value)
        yield from families.values()
        ready = GaugeMetricFamily("wirelake_ready", "1 while the process does its work, as /readyz says.")
        ready.add_metric([], float(self._exposed.why_not_ready() is None))
        yield ready


def _server_class(address: Address) -> type[ThreadingHTTPServer]:
    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        daemon_threads = True

        def server_bind(self) -> None:
            """As its base class, but without asking name servers who this machine is."""
            TCPServer.server_bind(self)
            self.server_name, self.server_port = address.host, self.socket.getsockname()[1]

    return Server
